"""`with hg.slot(…)`: a slot for as long as the block runs. A thread extends it."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from headgate.errors import HeadgateError, SlotLost
from headgate.holding import Tenure
from headgate.leasing import extend_slot, give_slot_back, new_lease, take_slot
from headgate.sync_driver import SyncDriver


class SyncSlot:
    """One of a project's group. A block of code cannot be stopped from outside: it looks at `lost`, or calls `check`;
    at its end `SlotLost` comes out of it where it was lost meanwhile."""

    def __init__(
        self,
        driver: SyncDriver,
        name: str,
        *,
        project: str,
        limit: int | None = None,
        ttl_s: int | None = None,
        wait_s: float | None = None,
    ) -> None:
        self._driver = driver
        self._name, self._project = name, project
        self._limit, self._ttl_s, self._wait_s = limit, ttl_s, wait_s
        self._tenure = Tenure(new_lease())
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name=f"slot {self._tenure.lease}", daemon=True)

    @property
    def lease(self) -> str:
        """Its name, as the status of the group shows it."""
        return self._tenure.lease

    @property
    def lost(self) -> bool:
        return self._tenure.is_lost

    def check(self) -> None:
        """Raises `SlotLost` where it is."""
        if self.lost:
            raise SlotLost(self._name)

    def __enter__(self) -> Self:
        asked_s, lease = time.monotonic(), self._tenure.lease
        self._driver.held.add(lease)
        taking = take_slot(
            self._name, lease, project=self._project, limit=self._limit, ttl_s=self._ttl_s, wait_s=self._wait_s
        )
        try:
            state = self._driver.run(taking)
            self._tenure.extended(state, asked_s=asked_s)
            if time.monotonic() >= self._tenure.due_s:  # it waited for long: from when on it is held is not known
                self._extend()
        except BaseException:
            self._give_back()  # it may have been granted in this very moment
            raise
        self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._keeper.join()
        if not self.lost:
            self._give_back()
            return
        self._driver.held.discard(self.lease)
        if error is None:
            raise SlotLost(self._name)

    def _keep(self) -> None:
        pause_s: float | None = self._tenure.due_s - time.monotonic()
        while pause_s is not None and not self._over.wait(max(0.0, pause_s)):
            try:
                self._extend()
                pause_s = self._tenure.due_s - time.monotonic()
            except HeadgateError as fault:
                pause_s = self._tenure.failed(fault, now_s=time.monotonic())

    def _extend(self) -> None:
        asked_s, tenure = time.monotonic(), self._tenure
        extending = extend_slot(
            self._name,
            tenure.lease,
            project=self._project,
            limit=self._limit,
            ttl_s=self._ttl_s,
            held_until=tenure.expires_at,
            within_s=tenure.within_s(asked_s),
        )
        tenure.extended(self._driver.run(extending), asked_s=asked_s)

    def _give_back(self) -> None:
        try:
            with suppress(HeadgateError):
                self._driver.run(give_slot_back(self._name, self.lease, project=self._project))
        finally:
            self._driver.held.discard(self.lease)
