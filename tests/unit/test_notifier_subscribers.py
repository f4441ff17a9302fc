"""What is told to everybody: read where somebody listens to it, and by the subject alone where nobody does."""

from __future__ import annotations

import pytest
from faststream.nats import NatsBroker, TestNatsBroker
from pydantic import ValidationError

from headgate_contracts.commands import PositionChanged, position_subject
from services.notifier.fanout import Fanout, Interest, OfJob, OfUser
from services.notifier.subscribers import subscribe

SUBJECT = position_subject("main", "ann", "job-1")


@pytest.mark.parametrize("interest", [OfJob("job-1"), OfUser("ann")])
async def test_a_position_reaches_who_listens_to_its_job_or_its_user(interest: Interest) -> None:
    broker, fanout = NatsBroker(), Fanout()
    subscribe(broker, fanout, shard="main")

    async with TestNatsBroker(broker):
        with fanout.attached([interest]) as tap, fanout.attached([OfJob("job-2"), OfUser("bob")]) as other:
            await broker.publish(PositionChanged(job_id="job-1", queue=None), SUBJECT)
            [told] = await tap.take(within_s=1)
            nothing = await other.take(within_s=0)

    assert told.frames.startswith(b"event: position\ndata: ")
    assert b'"job-1"' in told.frames
    assert nothing == []


async def test_a_position_that_nobody_listens_to_is_not_read() -> None:
    """It is told by its subject: what is said is looked at only where somebody is to be sent it."""
    broker, fanout = NatsBroker(), Fanout()
    subscribe(broker, fanout, shard="main")

    async with TestNatsBroker(broker):
        await broker.publish({"no": "position"}, SUBJECT)
        with fanout.attached([OfUser("ann")]), pytest.raises(ValidationError):
            await broker.publish({"no": "position"}, SUBJECT)
