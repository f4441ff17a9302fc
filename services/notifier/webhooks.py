"""Calls to a job's `notify_url`: when it asks its user, reminds them, or ends.

    JOBS ──► consumer `webhooks` (shared by all replicas) ──► sender ──► POST, signed ──► 2xx: done · else: again later

Signed as Standard Webhooks say: `webhook-id` is the event's own id, so a receiver that remembers it acts once; what is
signed is `<id>.<timestamp>.<body>`, with HMAC-SHA256 and the secrets of this receiver, one signature each. Only hosts
that policy lists are called, at addresses that were looked at, and no redirect is followed. Nothing rests on a call: it
is told again and then let go, and the page says the same.
"""

import asyncio
import base64
import hashlib
import hmac
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from opentelemetry.trace import SpanKind
from pydantic_core import to_json

from headgate_contracts import Event, Job
from headgate_contracts.events import JobData
from headgate_contracts.shown import shown_event
from headgate_contracts.vocabulary import EventName
from libs.eventlog import LogUnavailable
from libs.eventlog.decoding import job_in
from libs.eventlog.ports import Dispatch, Dispatches, EventLog
from libs.policy import Policy
from libs.runtime.clock import Clock
from libs.runtime.spans import mark, step
from libs.runtime.telemetry import carried_context, trace_headers
from services.notifier.calling import Call, Caller
from services.notifier.errors import AddressRefused
from services.notifier.receivers import Receivers

logger = logging.getLogger(__name__)

CONSUMER: Final = "webhooks"
EVENTS: Final = (
    EventName.AWAITING_CONFIRMATION,
    EventName.CONFIRMATION_REMINDER,
    EventName.READY,
    EventName.FAILED,
    EventName.CANCELLED,
)
SENDERS: Final = 8  # calls at once; a host that hangs holds up one of them
LONGEST_PAUSE_S: Final = 3600.0
TAKEN: Final = "taken"


def call_for(event: Event[JobData], *, url: str, keys: Iterable[bytes], now_s: int) -> Call:
    """The event, as its job's owner may see it, signed with each of the keys."""
    shown = {"id": event.id, "type": event.type, "time": event.time, "data": shown_event(event.data)}
    body = to_json(shown, by_alias=True)
    signed = f"{event.id}.{now_s}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "headgate",
        "webhook-id": event.id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
    return Call(url, body, headers)


def pause_s(tries: int, *, first_s: float) -> float:
    """How long to wait after that many tries."""
    return min(LONGEST_PAUSE_S, first_s * 2 ** (tries - 1))


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Takes one event after the other, and calls."""

    dispatches: Dispatches
    log: EventLog
    caller: Caller
    policy: Policy
    clock: Clock
    receivers: Receivers
    count: Callable[[str], None]  # a call, by its outcome

    async def run(self, stopping: asyncio.Event) -> None:
        """Until told to stop, and cancelled in what is under way: that comes again, to another replica."""
        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(self._send_on(stopping))

    async def _send_on(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():  # a call may have kept the cancellation for itself
            dispatch = await self.dispatches.next()
            try:
                await self.handle(dispatch)
            except LogUnavailable as away:  # it comes again when the time for its ack is over
                logger.info("a webhook waits: %s", away)
            except Exception:  # one strange job must end neither the others' calls nor this replica's streams
                logger.exception("a webhook could not be made: record %s", dispatch.record.seq)

    async def handle(self, dispatch: Dispatch) -> None:
        """One event: nothing to do, done, or again later."""
        match dispatch.record.event:
            case Event(data=JobData() as data) as event:
                job = job_in(await self.log.read(data.job_id))
                state = job.submission.tracestate if job else None
                with carried_context(data.job_id, dispatch.record.traceparent, state=state):
                    url = self._url_of(job)
                    if url is None or await self._is_taken(event, url):
                        await dispatch.ack()
                    else:
                        await self._again(dispatch)
            case _:
                await dispatch.ack()

    def _url_of(self, job: Job | None) -> str | None:
        url = job.submission.notify_url if job else None
        if url is not None and not self.policy.webhooks.allows(url):
            logger.warning("a webhook is not called: policy does not list its host (any more)")
            return None
        if url is not None and not self.receivers.keys_for(url):
            logger.warning("a webhook is not called: HEADGATE_WEBHOOK_SECRETS has none for what its address names")
            return None
        return url

    async def _is_taken(self, event: Event[Any], url: str) -> bool:
        about = {"headgate.job.id": event.data.job_id, "headgate.event": event.data.EVENT.value}
        with step("call webhook", about, kind=SpanKind.CLIENT) as span:
            outcome = await self._called(event, url)
            span.set_attribute("headgate.outcome", outcome)
            if outcome != TAKEN:
                mark(f"the webhook's call: {outcome}", span)
        self.count(outcome)
        return outcome == TAKEN

    async def _called(self, event: Event[Any], url: str) -> str:
        """What became of one call. The receiver is told the trace, and can go on with it."""
        call = call_for(event, url=url, keys=self.receivers.keys_for(url), now_s=self.clock.now_ms() // 1000)
        try:
            async with asyncio.timeout(self.policy.webhooks.timeout_s):  # the client's own is for each read
                status = await self.caller.status_of(replace(call, headers={**call.headers, **trace_headers()}))
        except AddressRefused as refused:
            logger.warning("a webhook is not called: %s", refused)
            return "address refused"
        except (httpx2.HTTPError, OSError) as error:  # nobody answered in time, or knew the name
            logger.info("a webhook was not answered by %s: %s", urlsplit(url).hostname, type(error).__name__)
            return "not answered"
        if status >= 300:
            logger.info("a webhook was answered by %s with %s", urlsplit(url).hostname, status)
        return TAKEN if status < 300 else "refused"

    async def _again(self, dispatch: Dispatch) -> None:
        rules = self.policy.webhooks
        if dispatch.tries >= rules.tries:
            logger.warning("a webhook was let go after %s tries", dispatch.tries)
            self.count("let go")
            await dispatch.ack()
        else:
            await dispatch.nak(after_s=pause_s(dispatch.tries, first_s=rules.first_pause_s))
