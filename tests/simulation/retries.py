"""What has failed or was cancelled is submitted again by its user, once, to go on from the work that it has left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headgate_contracts import Event
from headgate_contracts.envelope import utc
from headgate_contracts.events import JobCancelled, JobFailed
from headgate_contracts.tokens import job_id_for_key
from libs.eventlog.values import Record
from libs.twins.virtual import Process
from services.admission.limits import Asker
from services.admission.outcomes import Accepted
from tests.simulation.admissions import UseCases
from tests.simulation.clients import Client, asked_surely, job_told
from tests.simulation.network import Link
from tests.simulation.plan import POLICY, USERS, Order
from tests.simulation.system import System

THINKS_S = (0.2, 6.0)


def again_id(order: Order) -> str:
    """Of the job that an order becomes then."""
    return job_id_for_key(order.user, f"{order.name} again")


def retries(system: System, by_job: dict[str, Client]) -> Callable[[Record], None]:
    """Hears of each record. Where it is the end of a job whose client wants that, it is asked for once more."""

    def heard(record: Record) -> None:
        data = record.event.data if isinstance(record.event, Event) else None
        client = by_job.get(data.job_id) if isinstance(data, JobFailed | JobCancelled) else None
        if client is not None and client.order.submits_again and not client.order.phases:
            system.loop.create_task(_ask(system, client, data.job_id))  # type: ignore[union-attr]

    return heard


async def _ask(system: System, client: Client, job_id: str) -> None:
    order = client.order
    await asyncio.sleep(system.dice.between(f"{order.name} thinks", *THINKS_S))

    async def retry(use_cases: UseCases) -> Any:
        asker = Asker(
            user_id=order.user, tier=USERS[order.user], policy=POLICY, now=utc(use_cases.changing.clock.now_ms())
        )
        return await use_cases.retrying.retry(await job_told(use_cases, job_id), new_id=again_id(order), asker=asker)

    link = Link(system.network, Process(f"client of {order.name} again", system.loop), "clients")
    if isinstance(await asked_surely(system, link, retry), Accepted):
        client.promised(again_id(order))
