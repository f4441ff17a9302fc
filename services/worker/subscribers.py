"""The NATS edge of a worker: what it is told without having asked. Handlers are short, so they are FastStream's.

A grant that is lost is learned by asking again, a wish for the end of a job comes with the next heartbeat too, and that
an operator wants an attempt's slots is told each second until it was given back. There is no answer: an append waits
for the answer of the log, and FastStream would send it one of its own.
"""

from faststream.nats import NatsBroker, NatsMessage

from headgate_contracts import ContractError, Event, EventName, Holder, consumer_filter, parse_event
from headgate_contracts.commands import LeaseReply, granted_subject
from headgate_contracts.events import JobCancelRequested
from services.worker.attempt.run import Attempt
from services.worker.attempts import Attempts
from services.worker.domain import Interruption


def subscribe(broker: NatsBroker, attempts: Attempts, *, shard: str) -> None:
    """Grants go to the attempt that waits, wishes to the attempts of their job; others' are passed over."""

    @broker.subscriber(granted_subject(shard, "x").removesuffix("x") + "*", no_reply=True)
    async def granted(reply: LeaseReply) -> None:
        for attempt in attempts:
            _hear(attempt, reply)

    @broker.subscriber(consumer_filter(event=EventName.CANCEL_REQUESTED), no_reply=True)
    async def cancel_requested(message: NatsMessage) -> None:
        """On its way into the log, or refused there: hence a look into the log and no more."""
        try:
            event = parse_event(message.body)
        except ContractError:
            return
        if isinstance(event, Event) and isinstance(event.data, JobCancelRequested):
            for attempt in attempts.of_job(event.data.job_id):
                attempt.look_soon()


def _hear(attempt: Attempt, reply: LeaseReply) -> None:
    if reply.state != "not_yours":
        attempt.slots.granted(reply.lease)
    elif Holder.parse(attempt.holder).token == reply.lease:
        attempt.interrupt(Interruption.FORCED)
