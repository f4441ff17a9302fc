"""Exhaustion: a client that takes too much is told so, and everybody else goes on."""

from __future__ import annotations

from typing import Any, Final

from tests.abuse.attempts import Asks, Attempt, Sends
from tests.abuse.steps import exhaustion as steps

MIB: Final = 1024 * 1024
KIB: Final = 1024
WORDS, JOB, FLOW, BATCH = 16 * KIB, 256 * KIB, 4 * MIB, 7 * MIB
BODIES: Final = {
    "POST /v1/jobs": JOB,
    "POST /v1/jobs/batch": BATCH,
    "POST /v1/workflows": FLOW,
    "POST /v1/jobs/cancel": WORDS,
    "POST /v1/jobs/x/cancel": WORDS,
    "POST /v1/workflows/x/cancel": WORDS,
    "PATCH /v1/jobs/x": WORDS,
    "POST /v1/queue/move": WORDS,
    "POST /v1/queue/pause": WORDS,
    "POST /v1/queue/resume": WORDS,
    "PUT /v1/concurrency/db": WORDS,
    "POST /v1/tokens/revoke": WORDS,
}


def _announced(line: str, length: int, *, token: bytes = b"<olga>") -> bytes:
    """A head alone: whatever is refused is refused without a byte of the body."""
    head = f"{line} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
    return head.encode() + b"Authorization: Bearer " + token + b"\r\n\r\n"


def _of_a_pool(line: str, body: dict[str, Any]) -> Asks:
    """Refused with the pools that there are: else such jobs fill the queue, and nobody takes them out."""
    return Asks(line, json=body, gets=422, says="default")


def _chunked(line: str, length: int) -> bytes:
    head = f"{line} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    return head.encode() + b"Authorization: Bearer <olga>\r\n\r\n" + b"%x\r\n" % length + b" " * length + b"\r\n"


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "a body that is too large is refused by its length": {
        line: Sends(_announced(line, limit + 1), (413,)) for line, limit in BODIES.items()
    },
    "a body that says no length is counted": {
        line: Sends(_chunked(line, limit + 1), (413,))
        for line, limit in BODIES.items()
        if limit < MIB and "cancel" not in line
    },
    "nobody's body is waited for": {
        line: Sends(_announced(line, 1000, token=b"x"), (401,)) for line in list(BODIES)[:6]
    },
    "a user has so many streams": {
        "one too many of all": steps.streams("/v1/stream"),
        "one too many of a job": steps.streams("/v1/jobs/<own>/stream"),
        "one too many, by tickets": steps.STREAMS_BY_TICKETS,
        "of one user, to others": steps.OTHERS_STREAM,
        "and one that ended is none": steps.STREAMS_THAT_ENDED,
    },
    "a user has so many tickets": {"31 at once": steps.TICKETS, "of one user, to others": steps.OTHERS_TICKET},
    "a user submits so fast": {
        "61 jobs": steps.JOBS_AT_ONCE,
        "a batch of 100": steps.BATCH,
        "four workflows of 20 phases": steps.WORKFLOWS,
        "3 MiB of inputs": steps.BYTES,
        "61 by one key": steps.ONE_KEY,
        "of one user, to others": steps.OTHERS_JOB,
    },
    "a user waits with so many": {
        "51 in the queue": steps.QUEUE_SHARE,
        "a day more than there is": Asks(
            "POST /v1/jobs?dry_run=true",
            json={"project_id": "a", "input": {}, "run_at": "2027-06-01T00:00:00Z"},
            gets=422,
        ),
        "a workflow longer than the tier's day": steps.POOR_WORKFLOW,
        "six jobs of a tier with five a day": steps.POOR_DAY,
    },
    "a pool has workers, or no jobs": {
        "a job": _of_a_pool("POST /v1/jobs", {"input": {}, "project_id": "a", "pool": "gpu"}),
        "a dry run": _of_a_pool("POST /v1/jobs?dry_run=true", {"input": {}, "project_id": "a", "pool": "gpu"}),
        "a workflow": _of_a_pool("POST /v1/workflows", {"project_id": "a", "phases": [{"input": {}, "pool": "gpu"}]}),
        "the pool of all others": _of_a_pool("POST /v1/jobs", {"input": {}, "project_id": "a", "pool": "DEFAULT"}),
    },
    "who stays away or says nothing holds nobody up": {
        "200 connections without a word": steps.idle(200, b""),
        "200 that say half a head": steps.idle(200, b"GET /livez HTTP/1.1\r\nHost: h\r\nA: "),
        "100 that owe a body": steps.idle(100, _announced("POST /v1/jobs", 1000)),
        "100 that owe a body, of nobody": steps.idle(100, _announced("POST /v1/jobs", 1000, token=b"x")),
        "100 streams that nobody may open": steps.idle(100, b"GET /v1/stream HTTP/1.1\r\nHost: h\r\n\r\n"),
        "six bodies of 7 MiB, all brackets": steps.LARGE_AT_ONCE,
    },
    "what is written small stays small": {
        "2,000 keys in an input": steps.WIDE,
        "5,000 fields that nobody knows": steps.UNKNOWN_FIELDS,
        "500 ranges of a result": Asks(
            "GET /v1/jobs/<ready>/result", gets=200, headers=(("Range", "bytes=" + ",".join(["0-0"] * 500)),)
        ),
        "a list of 500 tags": Asks(
            "GET /v1/jobs/<ready>/result", gets=200, headers=(("If-None-Match", ",".join(['"x"'] * 500)),)
        ),
        "500 parameters": Asks("GET /v1/jobs?" + "&".join(f"a{number}=1" for number in range(500)), gets=422),
        "200 statuses": Asks("GET /v1/jobs?" + "&".join(["status=ready"] * 200), gets=200),
        "a scope that takes a regular expression long": Asks(
            "POST /v1/queue/pause", who="olga", json={"scope": "project:" + "a" * 5000 + "\n"}, gets=422
        ),
        "a tag that never ends": Asks(
            "PATCH /v1/jobs/<queued>", json={"priority": "low"}, gets=400, headers=(("If-Match", '"a",' * 500 + '"'),)
        ),
    },
}
