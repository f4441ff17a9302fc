"""Where nats-py's exceptions and JetStream's codes become ours."""

import json
from collections import Counter

import nats.errors
import nats.js.errors
import nats.protocol.parser
import pytest

from libs.eventlog import LogError, LogFull, LogMissing, LogRefused, LogUnavailable
from libs.eventlog.edge import (
    ANSWERED,
    MISUSED,
    SILENT,
    UNSENT,
    answer_for,
    answer_in,
    fault_for,
    translated,
)
from libs.eventlog.wire import Accepted, Contradicted, Declined, Unanswered, Unsent

BUILTIN = {TimeoutError, OSError}


def all_kinds(root: type[Exception]) -> set[type[Exception]]:
    """Without the names of older versions, which nothing raises."""
    kinds = {root}.union(*(all_kinds(kind) for kind in root.__subclasses__()))
    return {kind for kind in kinds if kind.__module__ != "nats.aio.errors"}


def test_every_exception_of_the_client_stands_in_one_group() -> None:
    """A client that grew a new one needs a decision: can the message have arrived?"""
    grouped = Counter((*UNSENT, *SILENT, *ANSWERED, *MISUSED))

    assert set(grouped) - BUILTIN == all_kinds(nats.errors.Error)
    assert set(grouped.values()) == {1}


def test_a_group_agrees_with_the_one_that_catches_its_parents() -> None:
    """`except` goes by parents too, so a class must not be caught as something else first."""
    for kind in SILENT:
        assert not issubclass(kind, UNSENT)
    for kind in MISUSED:
        assert not issubclass(kind, (*UNSENT, *SILENT, *ANSWERED))


@pytest.mark.parametrize(
    ("code", "err_code", "description", "answer"),
    [
        (400, 10071, "wrong last sequence: 7", Contradicted),
        (400, 10164, "wrong last sequence", Contradicted),
        (409, 10158, "duplicate message id is in process", Contradicted),
        (400, 10201, "atomic publish batch contains duplicate message id", Contradicted),
        (503, 10077, "maximum bytes exceeded", Declined),
        (500, 10047, "insufficient storage resources available", Declined),
        (400, 10054, "message size exceeds maximum allowed", Declined),
        (400, 10174, "atomic publish is disabled", Declined),
        (400, 10176, "atomic publish batch is incomplete", Unsent),
        (429, 10210, "atomic publish too many inflight", Unsent),
        (503, 10008, "JetStream system temporarily unavailable", Unanswered),
        (500, 10041, "raft: proposal failed", Unanswered),
        (500, 10051, "something else went wrong", Unanswered),
    ],
)
def test_a_code_is_what_it_means_for_the_copy(code: int, err_code: int, description: str, answer: type) -> None:
    error = {"code": code, "err_code": err_code, "description": description}

    said = answer_in(json.dumps({"error": error, "stream": "JOBS", "seq": 0}).encode())

    assert type(said) is answer
    assert f"{description} (JetStream error {err_code})" in said.reason  # type: ignore[union-attr]


@pytest.mark.parametrize("duplicate", [False, True])
def test_a_duplicate_is_accepted_like_the_first(*, duplicate: bool) -> None:
    reply = {"stream": "JOBS", "seq": 12, "duplicate": duplicate}

    assert answer_in(json.dumps(reply).encode()) == Accepted(12)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (nats.errors.OutboundBufferLimitError(), Unsent("nats: outbound buffer limit exceeded")),
        (nats.errors.NoRespondersError(), Unsent("nats: no responders available for request")),
        (nats.errors.TimeoutError(), Unanswered("nats: timeout")),
        (TimeoutError(), Unanswered("TimeoutError")),
        (ConnectionResetError("reset by peer"), Unanswered("reset by peer")),
    ],
)
def test_an_exception_is_what_it_means_for_the_copy(error: Exception, answer: Unsent | Unanswered) -> None:
    assert answer_for(error) == answer


def test_a_message_that_the_client_refuses_is_declined() -> None:
    answer = answer_for(nats.errors.MaxPayloadError())

    assert isinstance(answer, Declined)
    assert isinstance(answer.error, LogRefused)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (nats.errors.ConnectionClosedError(), LogUnavailable),
        (nats.errors.TimeoutError(), LogUnavailable),
        (nats.js.errors.NotFoundError(code=404, err_code=10059, description="stream not found"), LogMissing),
        (nats.js.errors.ServiceUnavailableError(code=503, err_code=10077, description="full"), LogFull),
        (nats.js.errors.ServerError(code=500, err_code=10041, description="raft"), LogUnavailable),
        (nats.js.errors.ServerError(code=500, err_code=10057, description="delete not permitted"), LogRefused),
        (nats.js.errors.BadRequestError(code=400, err_code=10052, description="bad setting"), LogRefused),
        (nats.errors.BadSubjectError(), LogRefused),
    ],
)
async def test_what_nats_py_raises_is_raised_as_ours(error: Exception, fault: type[LogError]) -> None:
    with pytest.raises(fault) as raised, translated("JOBS"):
        raise error

    assert type(raised.value) is fault
    assert raised.value.__cause__ is error


async def test_what_is_no_error_of_the_client_passes_untouched() -> None:
    with pytest.raises(KeyError), translated("JOBS"):
        raise KeyError("ours")


def test_a_missing_stream_is_named() -> None:
    error = nats.js.errors.NotFoundError(code=404, err_code=10059, description="stream not found")

    assert str(fault_for(error, about="KV_INPUTS")) == (
        "There is no stream KV_INPUTS. Run `headgate migrate`, then start again."
    )
