"""The errors of the client, as one tree: catch `HeadgateError`, or those that you can handle.

HeadgateError
├── NotConfigured     the URL or the token is missing, or cannot be sent as it is
├── Unreachable       no answer came to any of the tries
├── NotHeadgate       something else answers at that URL; `elsewhere` is the URL that it redirects to
├── NotInTime         the job has not ended in time, as far as is known; a TimeoutError too
├── ServerFault       Headgate failed: ask with `debug_id`
├── TryLater          `retry_after` says when, in seconds: later than the client was allowed to wait
│   ├── Busy          the queue is full
│   ├── TooFast       more requests than one user may send in that time
│   ├── NoSlot        every slot of the group is taken
│   ├── OverShare     the user has as much as one user may: some of it has to end first
│   └── Unavailable   a server is away for a moment
├── Rejected          the same request will be refused again
│   ├── Invalid       `fields` says what is wrong, by field
│   ├── NotSignedIn   no token, or an invalid one
│   ├── NotAllowed    the token does not let its user do that
│   ├── NotFound      it does not exist, or is somebody else's
│   ├── Gone          it existed, and is no longer kept
│   └── Conflict      not in the current state: the job has ended, has changed, asks nothing
├── SlotLost          a slot was lost while its block ran
├── NotAsPromised     a download has another checksum than Headgate says
├── NotStored         a download cannot be written: the disk is full, or the folder is not writable
└── UnsafeArchive     a result that would be unpacked outside the folder, or beyond the limits
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from headgate.exchange import Answer, NoAnswer


class HeadgateError(Exception):
    """The root of the tree."""


class NotConfigured(HeadgateError):
    """The URL or the token is in no argument and no variable of the environment, or cannot be sent as it is."""


class NotHeadgate(HeadgateError):
    """Something else than Headgate answers. `elsewhere` is the URL that it redirects to."""

    def __init__(self, elsewhere: str | None = None) -> None:
        super().__init__(
            f"something else than Headgate answers there: set HEADGATE_URL to {elsewhere or 'where it runs'}"
        )
        self.elsewhere = elsewhere


class NotInTime(HeadgateError, TimeoutError):
    """The job has not ended within the time that was given for waiting."""


class NotAsPromised(HeadgateError):
    """The download has another checksum than Headgate says."""


class SlotLost(HeadgateError):
    """The slot ended, or was freed by an operator, before the end of its block."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the slot of {name} was lost")


class NotStored(HeadgateError):
    """The download cannot be written on this machine. Its cause is the system's own error."""


class UnsafeArchive(HeadgateError):
    """The result is unsafe to unpack, and nothing of it was unpacked."""


class Unreachable(HeadgateError):
    """No answer came from Headgate."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no answer ({reason})")
        self.reason = reason


class Problem(HeadgateError):
    """An answer that is no success (RFC 9457). `slug` is the last word of its type."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.slug = str(problem.get("type", "")).rpartition("/")[2]
        self.detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        self.debug_id = str(problem.get("debug_id") or "unknown")
        self.retry_after = retry_after
        self.problem = problem
        super().__init__(self.detail)


class ServerFault(Problem):
    """Headgate failed. If the gateway got no answer, the request may have been carried out."""

    @property
    def is_silence(self) -> bool:
        """Nobody behind the gateway answered."""
        return self.status in {502, 503, 504}


class TryLater(Problem):
    """Not possible now. Nothing was changed."""


class Busy(TryLater):
    """The queue is full."""


class TooFast(TryLater):
    """The user has sent too many requests."""


class OverShare(TryLater):
    """The user's share is full."""


class NoSlot(TryLater):
    """All slots of the group are taken."""


class Unavailable(TryLater):
    """A server is away for a moment."""


class Rejected(Problem):
    """The request is refused, and will be refused again."""


class Invalid(Rejected):
    """The request is invalid. `fields` says what is wrong, by field."""

    @property
    def fields(self) -> Mapping[str, str]:
        errors = self.problem.get("errors")
        if not isinstance(errors, list):
            return {}
        wrong = [cast("Mapping[str, object]", each) for each in cast("list[object]", errors) if isinstance(each, dict)]
        return {str(each.get("field", "")): str(each.get("message", "")) for each in wrong}


class NotSignedIn(Rejected):
    """There is no token, or it is invalid."""


class NotAllowed(Rejected):
    """The token does not allow this."""


class NotFound(Rejected):
    """It does not exist, or is somebody else's."""


class Gone(Rejected):
    """It is no longer kept."""


class Conflict(Rejected):
    """It cannot be done in the current state."""


BY_SLUG: Final[Mapping[str, type[Problem]]] = {
    "busy": Busy,
    "no-slot": NoSlot,
    "share": OverShare,
    "input-share": OverShare,
    "lease-share": OverShare,
    "horizon": OverShare,
}
BY_STATUS: Final[Mapping[int, type[Problem]]] = {
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: Conflict,
    429: TooFast,
}


def fault_of(outcome: Answer | NoAnswer) -> HeadgateError | None:
    """Nothing where it is a success."""
    if isinstance(outcome, NoAnswer):
        return Unreachable(outcome.reason)
    if outcome.status < 300:
        return None
    if outcome.status < 400:
        return NotHeadgate(_elsewhere(outcome.headers.get("location", "")))
    return problem_of(outcome.status, outcome.problem, outcome.retry_after_s)


def problem_of(status: int, problem: Mapping[str, Any], retry_after_s: float | None) -> Problem:
    """By its slug where that says more than the status."""
    fault = Problem(status, problem, retry_after_s)
    kind = BY_SLUG.get(fault.slug) or BY_STATUS.get(status) or _by_class(status, retry_after_s)
    return kind(status, problem, retry_after_s)


def _elsewhere(location: str) -> str | None:
    """The URL under which the API would be there."""
    url = location.partition("/v1/")[0]
    return url if url.isprintable() and url.startswith(("http://", "https://")) else None


def _by_class(status: int, retry_after_s: float | None) -> type[Problem]:
    if status == 503 and retry_after_s is not None:
        return Unavailable
    return ServerFault if status >= 500 else Invalid
