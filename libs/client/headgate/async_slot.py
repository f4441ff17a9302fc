"""`async with hg.slot(…)`: a slot for as long as the block runs."""

import asyncio
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from headgate.async_driver import AsyncDriver
from headgate.errors import HeadgateError, SlotLost
from headgate.holding import Tenure
from headgate.leasing import extend_slot, give_slot_back, new_lease, take_slot

GIVEN_BACK_WITHIN_S: Final = 5.0  # else it ends by itself


class Slot:
    """One of a project's group. It extends itself. Where it is lost the block is cancelled, and `SlotLost` comes out of
    it; with `cancel=False` the block goes on, and may look at `lost`."""

    def __init__(
        self,
        driver: AsyncDriver,
        name: str,
        *,
        project: str,
        limit: int | None = None,
        ttl_s: int | None = None,
        wait_s: float | None = None,
        cancel: bool = True,
    ) -> None:
        self._driver = driver
        self._name, self._project = name, project
        self._limit, self._ttl_s, self._wait_s = limit, ttl_s, wait_s
        self._cancel = cancel
        self._tenure = Tenure(new_lease())
        self._body: asyncio.Task[object] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._cancelled = False

    @property
    def lease(self) -> str:
        """Its name, as the status of the group shows it."""
        return self._tenure.lease

    @property
    def lost(self) -> bool:
        return self._tenure.is_lost

    async def __aenter__(self) -> Self:
        asked_s, lease = time.monotonic(), self._tenure.lease
        self._driver.held.add(lease)
        taking = take_slot(
            self._name, lease, project=self._project, limit=self._limit, ttl_s=self._ttl_s, wait_s=self._wait_s
        )
        try:
            state = await self._driver.run(taking)
            self._tenure.extended(state, asked_s=asked_s)
            if time.monotonic() >= self._tenure.due_s:  # it waited for long: from when on it is held is not known
                await self._extend()
        except BaseException:
            await self._give_back()  # it may have been granted in this very moment
            raise
        self._body = asyncio.current_task()
        self._keeper = asyncio.create_task(self._keep(), name=f"slot {lease}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._keeper is not None
        self._keeper.cancel()
        await asyncio.wait((self._keeper,))
        if not self.lost:
            await self._give_back()
            return
        self._driver.held.discard(self.lease)
        if self._cancelled and self._body is not None:
            self._body.uncancel()
            if kind is not None and issubclass(kind, asyncio.CancelledError):
                raise SlotLost(self._name) from None
        if error is None:
            raise SlotLost(self._name)

    async def _keep(self) -> None:
        while not self.lost:
            await asyncio.sleep(max(0.0, self._tenure.due_s - time.monotonic()))
            try:
                await self._extend()
            except HeadgateError as fault:
                pause_s = self._tenure.failed(fault, now_s=time.monotonic())
                await asyncio.sleep(pause_s or 0)
        if self._cancel and self._body is not None:
            self._cancelled = self._body.cancel()

    async def _extend(self) -> None:
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
        tenure.extended(await self._driver.run(extending), asked_s=asked_s)

    async def _give_back(self) -> None:
        try:
            with suppress(HeadgateError, TimeoutError):
                async with asyncio.timeout(GIVEN_BACK_WITHIN_S):
                    await self._driver.run(give_slot_back(self._name, self.lease, project=self._project))
        finally:
            self._driver.held.discard(self.lease)
