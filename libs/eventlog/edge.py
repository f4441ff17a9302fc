"""Where nats-py's exceptions and the server's error codes become ours: here, once, and nowhere else.

Every exception class of nats-py stands in exactly one of four groups; a test fails when the client grows a new one.

    UNSENT      the message never left this process, or nobody was there to take it
    SILENT      it may have arrived
    ANSWERED    the server answered with an error code
    MISUSED     our own programming error, or one in the configuration
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import nats.errors as core
import nats.js.errors as js
from nats.protocol.parser import ErrProtocol
from pydantic_core import from_json

from libs.eventlog.errors import LogError, LogFull, LogMissing, LogRefused, LogUnavailable
from libs.eventlog.wire import Accepted, Contradicted, Declined, Unanswered, Unsent, WireAnswer
from libs.runtime.eventually import cancellable

UNSENT: Final = (
    core.OutboundBufferLimitError,
    core.ConnectionClosedError,
    core.ConnectionDrainingError,
    core.ConnectionReconnectingError,
    core.NoRespondersError,
    core.NoServersError,
    core.AuthorizationError,
    core.SecureConnFailedError,
    js.NoStreamResponseError,
    js.TooManyStalledMsgsError,
)
SILENT: Final = (
    core.TimeoutError,
    core.FlushTimeoutError,
    core.DrainTimeoutError,
    core.StaleConnectionError,
    core.UnexpectedEOF,
    core.SlowConsumerError,
    core.ProtocolError,
    ErrProtocol,
    core.JsonParseError,
    js.FetchTimeoutError,
    js.ConsumerSequenceMismatchError,
    TimeoutError,
    OSError,
)
ANSWERED: Final = (
    js.APIError,
    js.ServiceUnavailableError,
    js.ServerError,
    js.NotFoundError,
    js.BadRequestError,
    js.ConsumerInvalidResetError,
    js.BucketNotFoundError,
    js.BadBucketError,
    js.KeyValueError,
    js.KeyDeletedError,
    js.KeyNotFoundError,
    js.KeyWrongLastSequenceError,
    js.NoKeysError,
    js.KeyHistoryTooLargeError,
    js.ObjectNotFoundError,
    js.ObjectDeletedError,
)
MISUSED: Final = (
    core.Error,
    core.SecureConnRequiredError,
    core.SecureConnWantedError,
    core.BadSubscriptionError,
    core.BadSubjectError,
    core.BadHeaderError,
    core.BadTimeoutError,
    core.MaxPayloadError,
    core.InvalidUserCredentialsError,
    core.InvalidCallbackTypeError,
    core.ServerNotInPoolError,
    core.NotJSMessageError,
    core.MsgAlreadyAckdError,
    js.Error,
    js.InvalidKeyError,
    js.InvalidBucketNameError,
    js.InvalidObjectNameError,
    js.BadObjectMetaError,
    js.LinkIsABucketError,
    js.DigestMismatchError,
    js.ObjectAlreadyExists,
    js.KeyValueLimitMarkerTTLNotSupportedError,
)
CLIENT_ERRORS: Final = (core.Error, TimeoutError, OSError)

NO_MESSAGE: Final = 10037
MISSING: Final = {10059: "stream", 10014: "consumer"}
CONTRADICTIONS: Final = {
    10071: "another sequence than the expected one",
    10164: "the same, told while another write is under way on a replicated stream",
    10158: "a message with this id is under way on a replicated stream",
    10201: "a batch holds an id that the stream knows",
}
FULL: Final = {
    10077: "the stream's max_bytes, or its disk",
    10047: "the server's storage",
    10023: "the server's resources",
    10002: "the account's resources",
}
PASSING: Final = {
    10007: "the server is being given its streams",
    10009: "the server does not lead",
    10041: "the servers do not agree",
    10026: "the stream has as many consumers as it may have",
}
NOT_BEGUN: Final = {
    10176: "the beginning of a batch was lost with the connection that it was sent on",
    10210: "too many batches are under way",
}


def answer_in(reply: bytes) -> WireAnswer:
    """What the server said to an append."""
    said: dict[str, Any] = from_json(reply)
    error: dict[str, Any] | None = said.get("error")
    if error is None:
        return Accepted(said["seq"])
    code, fault = error["err_code"], fault_in(error)
    if code in CONTRADICTIONS:
        return Contradicted(str(fault))
    if code in NOT_BEGUN:
        return Unsent(str(fault))
    known = code in FULL or error["code"] < 500
    return Declined(fault) if known else Unanswered(str(fault))


def answer_for(error: Exception) -> WireAnswer:
    """What an exception says of an append that was tried."""
    if isinstance(error, UNSENT):
        return Unsent(_words(error))
    return Unanswered(_words(error)) if isinstance(error, SILENT) else Declined(fault_for(error))


def fault_in(error: Mapping[str, Any], *, about: str = "JOBS") -> LogError:
    """The server's error. `err_code` tells what it is; `code` is as coarse as an HTTP status."""
    code = error.get("err_code", 0)
    reason = f"{error.get('description', 'no description')} (JetStream error {code})"
    if code in FULL:
        return LogFull(reason=reason)
    if code in MISSING:
        return LogMissing(what=f"{MISSING[code]} {about}")
    if code in PASSING or code in NOT_BEGUN or error.get("code") == 503:
        return LogUnavailable(reason=reason)
    return LogRefused(reason=reason)


def fault_for(error: Exception, *, about: str = "JOBS") -> LogError:
    """An exception of nats-py, raised by anything but an append."""
    if isinstance(error, js.BucketNotFoundError):
        return LogMissing(what=f"stream {about}")
    if isinstance(error, js.APIError):
        known = {"code": error.code or 0, "err_code": error.err_code or 0, "description": error.description}
        return fault_in(known, about=about)
    if isinstance(error, (*UNSENT, *SILENT)):
        return LogUnavailable(reason=_words(error))
    return LogRefused(reason=_words(error))


@contextmanager
def translated(about: str) -> Generator[None]:
    """Around whatever nats-py does for us that is not an append."""
    try:
        with cancellable():
            yield
    except CLIENT_ERRORS as error:
        raise fault_for(error, about=about) from error


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
