"""The thread and the loop of a Headgate in memory: the loop runs only while somebody waits for something on it.

    the test ──drive──► the thread: the loop runs until that is done ──► its outcome
                          └── between two of them nothing runs, and no time passes

Owns when the loop runs and what becomes of a fault in it. Refuses to know what runs there.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from libs.twins.loop import TwinLoop
from libs.twins.virtual import Stuck

T = TypeVar("T")
LoopWork = Callable[[], Coroutine[Any, Any, T]]


class TwinFailed(Exception):
    """The {name} of this Headgate in memory has ended by a fault: {fault}"""

    def __init__(self, name: str, fault: str = "the log has it.") -> None:
        super().__init__((type(self).__doc__ or "").format(name=name, fault=fault))


class DrivenLoop:
    """All methods may be called from any thread; `make` first, `end` last. `check`: raises where what is to live on the
    loop does so no more, after each thing that was done there."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._thread = ThreadPoolExecutor(1, "headgate in memory")
        self._deeds = 0
        self._waiting: list[Future[None]] = []
        self._inbox: deque[tuple[LoopWork[Any], Future[Any]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._settled: asyncio.Event
        self._is_broken = False
        self._loop: TwinLoop

    def make(self, setting: Callable[[TwinLoop], None]) -> None:
        """The loop, and on its thread what is needed before it runs."""

        def begin() -> None:
            self._loop = TwinLoop()
            self._loop.hears(self._begin_arrivals)
            self._settled = asyncio.Event()
            setting(self._loop)

        self._thread.submit(begin).result()

    def drive(self, work: LoopWork[T]) -> Future[T]:
        """Somebody does something: who waits because nothing was left to do looks again."""
        self._deeds += 1
        waiting, self._waiting = self._waiting, []
        driven = self.carry_on(work)
        for each in waiting:
            if not each.done():
                each.set_result(None)
        return driven

    def carry_on(self, work: LoopWork[T]) -> Future[T]:
        """Begun as soon as the loop looks, also while it runs for somebody else. For itself it is nobody's deed."""
        driven: Future[T] = Future()
        driven.set_running_or_notify_cancel()  # it is carried out, whatever becomes of who waits for it
        self._inbox.append((work, driven))
        self._thread.submit(self._turn, driven)
        return driven

    @property
    def deeds(self) -> int:
        """How often somebody has done something."""
        return self._deeds

    def after(self, deeds: int) -> Future[None]:
        """Done when somebody has done something more than that."""
        deed: Future[None] = Future()
        self._waiting.append(deed)
        if self._deeds != deeds and deed in self._waiting:
            self._waiting.remove(deed)
            deed.set_result(None)
        return deed

    def end(self, last: LoopWork[None], *, then: Callable[[], None]) -> Future[None]:
        """The last that is done there; then nothing of it is left. What has broken the loop before was told to who
        waited then."""
        ended = self._thread.submit(self._end, last, then)
        self._thread.shutdown(wait=False)
        return ended

    # ── on the thread ─────────────────────────────────────────────────────────

    def _turn(self, driven: Future[Any]) -> None:
        """The loop runs until that is done."""

        async def done() -> None:
            while not driven.done():
                self._settled.clear()
                await self._settled.wait()

        if not driven.done():
            try:
                self._run_until(done())
            except BaseException as fault:  # noqa: BLE001 - the waiter's to judge, who would wait for ever
                self._is_broken = True
                if not driven.done():
                    driven.set_exception(_shown(fault))

    def _run_until(self, work: Coroutine[Any, Any, None]) -> None:
        """It is done. A stage that leaves by `sys.exit` ends its attempt, which has heard of it, and not the loop."""
        task = self._loop.create_task(work)
        self._loop.begin()
        while not task.done():
            with suppress(SystemExit):
                self._loop.run_until_complete(task)

    def _begin_arrivals(self) -> None:
        while self._inbox:
            self._tasks.add(task := self._loop.create_task(self._carry_out(*self._inbox.popleft())))
            task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, work: LoopWork[Any], driven: Future[Any]) -> None:
        try:
            outcome = await work()
            self._check()
        except BaseException as fault:  # noqa: BLE001 - the waiter's to judge
            if not driven.done():
                driven.set_exception(_shown(fault))
        else:
            if not driven.done():  # else the loop broke meanwhile
                driven.set_result(outcome)
        finally:
            self._settled.set()

    def _end(self, last: LoopWork[None], then: Callable[[], None]) -> None:
        try:
            for each in (last, _cancel_all, self._loop.shutdown_asyncgens):
                self._end_by(each)
        finally:
            self._loop.close()
            then()

    def _end_by(self, last: LoopWork[None]) -> None:
        try:
            self._run_until(last())
        except BaseException as fault:  # noqa: BLE001 - as of any other turn
            if not self._is_broken:
                raise _shown(fault) from None


async def _cancel_all() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)


def _shown(fault: BaseException) -> BaseException:
    """To who waits, whose own process is not to end by it."""
    if isinstance(fault, Stuck):
        return TwinFailed("loop", fault.__doc__ or "")
    return fault if isinstance(fault, Exception | asyncio.CancelledError) else TwinFailed("loop", repr(fault))
