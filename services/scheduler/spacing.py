"""Room between jobs of a class that stand on consecutive numbers, so that others can be put between them again.

Owns the question who must not move: who runs or asks its user, about whom nothing can be written, and who holds a
place without being in the log yet. A place that is reserved in the very moment can still end on the other side of a
neighbour: that costs it one place, and no limit.
"""

from collections.abc import Mapping
from typing import Final

from headgate_contracts import Status
from libs.capacity.ledger import Ledger
from libs.capacity.ports import ViewReadings
from libs.capacity.rows import CLASS_STEP
from libs.capacity.spacing import PlacedJob, spread
from services.scheduler.domain import Decision, spaced

QUEUE_LOOK: Final = 1000  # entries looked through for places that are only held


async def spread_out(view: ViewReadings, ledger: Ledger, *, aside: Mapping[str, int]) -> list[Decision]:
    """The moves around the first two neighbours who stand too close and can be spread; none where there are none."""
    for job_id in ledger.places.narrow:
        near = ledger.places.near(ledger.jobs[job_id])
        fixed = {name for _, name in near if ledger.jobs[name].status is not Status.QUEUED or name in aside}
        if not spread(near, job_id, fixed=fixed, arrivals=ledger.orders.arrivals):
            continue
        held = await _held_between(view, near, class_number=ledger.places.narrow[job_id])
        spots = sorted([*near, *(spot for spot in held if spot not in near)])
        moves = spread(spots, job_id, fixed=fixed.union(name for _, name in held), arrivals=ledger.orders.arrivals)
        if moves:
            return [spaced(ledger.jobs[name], place) for place, name in moves]
    return []


async def _held_between(view: ViewReadings, near: list[PlacedJob], *, class_number: int) -> list[PlacedJob]:
    """Places held for events to come. Behind the last one too: no job may be moved past those."""
    first, floor = near[0][0], class_number * CLASS_STEP
    queue = await view.queue(count=QUEUE_LOOK)
    return [
        (entry.score - floor, entry.job)
        for entry in queue
        if entry.reserved and floor + first <= entry.score < floor + CLASS_STEP
    ]
