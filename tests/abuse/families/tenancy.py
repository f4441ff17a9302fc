"""Tenants: what is ann's is for bob as if it were not there, and stays as it is whatever he asks."""

from __future__ import annotations

from typing import Any, Final

from tests.abuse.attempts import Asks, Attempt, Meddles
from tests.abuse.steps import tenancy

READS: Final = ("", "/events", "/explain", "/input", "/log", "/result", "/files", "/files/README.md")
PRIORITY: Final = {"priority": "low"}


def _reads(*names: str) -> dict[str, Attempt]:
    return {
        f"{what or '/'} of a job that is {name}": Meddles(f"GET /v1/jobs/<{name}>{what}")
        for name in names
        for what in READS
    }


def _own(query: str) -> Asks:
    """A list that holds nothing of ann's, for all that it is asked about hers."""
    return Asks(f"GET /v1/jobs{query}", who="bob", gets=200, never="<of ann>")


def _changes(*names: str) -> dict[str, Attempt]:
    asked: dict[str, tuple[str, Any]] = {
        "cancel": ("POST /v1/jobs/<{}>/cancel", {}),
        "confirm": ("POST /v1/jobs/<{}>/confirm", None),
        "retry": ("POST /v1/jobs/<{}>/retry", None),
        "priority": ("PATCH /v1/jobs/<{}>", PRIORITY),
    }
    return {
        f"{verb} one that is {name}": Meddles(line.format(name), json=body)
        for name in names
        for verb, (line, body) in asked.items()
    }


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "another's job is not read": _reads("running", "ready"),
    "another's job that failed is not read": _reads("failed"),
    "another's job in the queue is not read": _reads("queued", "waiting"),
    "another's job that waits is not read": _reads("asking", "scheduled"),
    "another's job is not changed": _changes("queued", "running", "asking", "failed", "scheduled"),
    "another's workflow is nobody's": {
        "read": Meddles("GET /v1/workflows/<workflow>"),
        "cancelled": Meddles("POST /v1/workflows/<workflow>/cancel", json={}),
        "a phase of it read": Meddles("GET /v1/jobs/<workflow>-1"),
        "a phase of it cancelled": Meddles("POST /v1/jobs/<workflow>-1/cancel", json={}),
        "a phase that is not there": Meddles("GET /v1/jobs/<workflow>-99"),
        "a phase by another's workflow": Meddles("GET /v1/workflows/<workflow>-2"),
    },
    "another's job is not followed": {
        "its stream": Meddles("GET /v1/jobs/<running>/stream"),
        "its stream from the beginning": Meddles("GET /v1/jobs/<running>/stream?replay=true"),
        "its stream after a line": Meddles("GET /v1/jobs/<running>/stream?log_after=0"),
        "the stream of one that is over": Meddles("GET /v1/jobs/<ready>/stream?replay=true"),
        "its stream by a ticket": tenancy.STREAM_BY_TICKET,
        "its stream by ann's ticket, used again": tenancy.TICKET_TWICE,
        "its events in one's own stream": tenancy.OWN_STREAM,
    },
    "lists hold what is one's own": {
        "all": _own(""),
        "by ann's project": _own("?project=shop"),
        "by ann's project in full": _own("?project=ann:shop"),
        "by ann's workflow": _own("?workflow=<workflow>"),
        "by every status": _own("?status=ready&status=failed&status=queued&status=code"),
        "by ann's cursor": tenancy.FOREIGN_CURSOR,
        "the queue": Asks("GET /v1/queue", who="bob", gets=200, never="<of ann>"),
        "usage": Asks("GET /v1/usage", who="bob", gets=200, says='"iterations_used":0'),
        "the queue, when ann's job waits": Asks("GET /v1/queue", who="bob", gets=200, never="to have some that wait"),
    },
    "many at once are one's own": {
        "by ann's project": tenancy.cancelling({"project": "shop"}),
        "by ann's project in full": tenancy.cancelling({"project": "ann:shop"}),
        "by ann's workflow": tenancy.cancelling({"workflow": "<workflow>"}),
        "by ann's label": tenancy.cancelling({"label": "of=ann"}),
    },
    "a name is its user's own": {
        "a project of ann's by its name": tenancy.same_project("shop"),
        "a project of ann's in full": tenancy.same_project("ann:shop"),
        "ann's project that is paused": tenancy.same_project("later"),
        "a group of ann's": tenancy.SAME_GROUP,
        "ann's key": tenancy.SAME_KEY,
        "ann's key, of a workflow": tenancy.SAME_KEY_OF_A_WORKFLOW,
    },
    "what is refused says nothing of others": {
        "a pause, to who waits for another": Asks(
            "GET /v1/jobs/<queued>/explain", who="bob", gets=404, never="to have some that wait"
        ),
        "how many wait": Asks("GET /v1/jobs", who="bob", gets=200, never="prompt-of-ann"),
        "metrics": Asks("GET /metrics", who="bob", gets=404),
        "who is ready": Asks("GET /readyz", who="bob", gets=404),
        "metrics, by a longer path": Asks("GET /v1/metrics", who="bob", gets=404),
        "an admin of the gateway": Asks("GET /config/", who="bob", gets=404),
        "profiles": Asks("GET /debug/pprof/", who="bob", gets=404),
        "a page of the framework": Asks("GET /docs", who="bob", gets=404),
    },
}
