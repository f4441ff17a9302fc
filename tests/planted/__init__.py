"""Bugs to be planted, so that a proof can show what it would find: each is one function with one mistake in it.

Each is one that a careful engineer might make: a plain job still runs through, and it shows only where things happen at
once, fail, come late or run full. A twin calls the sound function for all that it does right, so it survives a change
of it. Nothing here is ever imported by the project itself.

    log · queue · slots · policy · scheduler · worker · admission · notifier       by what they are planted in
"""

from __future__ import annotations

from typing import Final

from tests.planted.admission import ADMISSION
from tests.planted.bug import Bug
from tests.planted.log import LOG
from tests.planted.notifier import NOTIFIER
from tests.planted.policy import POLICY
from tests.planted.queue import QUEUE
from tests.planted.scheduler import SCHEDULER
from tests.planted.slots import SLOTS
from tests.planted.worker import WORKER

__all__ = ["BUGS", "Bug"]

BUGS: Final[tuple[Bug, ...]] = (*LOG, *QUEUE, *SLOTS, *POLICY, *SCHEDULER, *WORKER, *ADMISSION, *NOTIFIER)
