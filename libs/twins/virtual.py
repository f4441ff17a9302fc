"""asyncio without a clock and without sockets: time jumps to the next timer, and processes can be held back or end.

    loop = VirtualLoop()
    process = Process("worker-1", loop)
    process.start(body())                its tasks, and all that they start, belong to it
    process.pause(); process.resume()    its callbacks wait; time goes on
    process.crash()                      all of it is cancelled, and nothing of it reaches outside any more

Callbacks run in the order in which they became ready, timers in the order of their moments. So the adversary decides
what comes before what by the moments it chooses, and not by how many steps a Python takes inside.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from typing import Any, Final

PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
ROUNDS_AT_ONCE: Final = 20_000
FORGET_AT: Final = 64  # tasks, of which most are done by then


class Stuck(Exception):
    """Nothing is ready and nothing ever will be, or something goes round and round and no time passes."""


class DueCall(list[Any]):
    """A callback that is due: its context, what to call and with what; empty once it is cancelled.

    It is what asyncio's own handle is, and made as a list is: a run makes 15,000 of them.
    """

    __slots__ = ()
    cancel: Any = list[Any].clear


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop for one simulation."""

    _stopping: bool
    get_debug: Any = staticmethod(bool)  # no; each future asks

    def __init__(self) -> None:
        super().__init__()
        self._now_s, self.elapsed_ms = 0.0, 0
        self._rounds = 0  # since time has passed
        self._ready: deque[DueCall] = deque()
        self._timers: list[
            tuple[float, int, DueCall]
        ] = []  # those of one moment in the order in which they were asked for
        self._asked = 0
        self.broken: list[str] = []  # what no task has caught
        self.set_task_factory(_in_its_process)
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self._now_s

    def ready_again(self, calls: Iterable[DueCall]) -> None:
        """They were held back."""
        self._ready.extend(calls)

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:
        self._ready.append(call := DueCall((copy_context() if context is None else context, callback, args)))
        return call

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        self._asked += 1
        call = DueCall((copy_context() if context is None else context, callback, args))
        heappush(self._timers, (self._now_s + delay, self._asked, call))
        return call

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        self._asked += 1
        call = DueCall((copy_context() if context is None else context, callback, args))
        heappush(self._timers, (when, self._asked, call))
        return call

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """At once: a thread would come back in its own time."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as fault:  # noqa: BLE001 - the waiter's to judge
            done.set_exception(fault)
        return done

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:
        """A process is told to stop by its machine."""

    def remove_signal_handler(self, sig: int) -> bool:
        return True

    def _run_once(self) -> None:
        """Round after round: in each what was ready when it began."""
        ready, next_one, timers, process_of = self._ready, self._ready.popleft, self._timers, PROCESS
        while not self._stopping:
            self._begin_round()
            while timers and timers[0][0] <= self._now_s:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                call = next_one()
                if not call:
                    continue
                context, callback, args = call
                process = context.get(process_of)
                if process is not None and process.paused:
                    process.held.append(call)
                    continue
                try:
                    context.run(callback, *args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as fault:  # noqa: BLE001 - as asyncio does: the loop goes on
                    self.call_exception_handler({"message": f"in {callback}", "exception": fault})

    def _begin_round(self) -> None:
        if not self._ready:
            self._go_on_in_time()
        self._rounds += 1
        if self._rounds > ROUNDS_AT_ONCE:
            raise Stuck

    def _go_on_in_time(self) -> None:
        """To the next timer that anybody still waits for."""
        timers = self._timers
        while timers and not timers[0][2]:
            heappop(timers)
        if not timers:
            raise Stuck
        if timers[0][0] > self._now_s:
            self._now_s = timers[0][0]
            self.elapsed_ms = int(self._now_s * 1000 + 1e-6)
        self._rounds = 0

    def _write_to_self(self) -> None:
        """No thread wakes us."""

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.broken.append(f"{context.get('message')}: {context.get('exception')!r}")


class Process:
    """Tasks that pause and end together. `children` end with it; they do not pause with it."""

    def __init__(self, name: str, loop: VirtualLoop) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.held: list[DueCall] = []
        self.children: list[Process] = []
        self._loop = loop
        self._tasks: list[asyncio.Task[Any]] = []
        self._look_at = FORGET_AT
        self._context = copy_context()
        self._context.run(PROCESS.set, self)

    def start(self, body: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._context.copy().run(self._loop.create_task, body)

    def call(self, function: Callable[[], Any]) -> None:
        """As if it came in from outside: not before the process goes on."""
        self._loop.call_soon(function, context=self._context.copy())

    def owns(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if len(self._tasks) >= self._look_at:
            self._forget()

    def child(self, name: str) -> Process:
        child = Process(name, self._loop)
        self.children.append(child)
        return child

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        held, self.held = self.held, []
        self._loop.ready_again(held)

    def crash(self) -> None:
        self.alive = False
        self.resume()
        self._forget()
        for task in tuple(self._tasks):
            task.cancel()
        for child in self.children:
            child.crash()

    def require_life(self) -> None:
        """For whatever leads outside: the dead say nothing."""
        if not self.alive:
            raise asyncio.CancelledError

    def _forget(self) -> None:
        """Those that are done: now and then, since a callback of each would cost more than it frees."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.exception()  # what became of it is its waiter's to judge
        self._tasks = [task for task in self._tasks if not task.done()]
        self._look_at = 2 * len(self._tasks) + FORGET_AT


class LoopClock:
    """A machine's clocks: the one that only grows begins anywhere, the other may be set."""

    def __init__(self, loop: VirtualLoop, *, start_ms: int, ahead_ms: int = 0, up_ms: int = 0) -> None:
        self._loop = loop
        self._start_ms = start_ms
        self._up_ms = up_ms
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return self._start_ms + self.ahead_ms + self._loop.elapsed_ms

    def monotonic_ms(self) -> int:
        return self._up_ms + self._loop.elapsed_ms

    async def sleep_ms(self, duration_ms: int) -> None:
        await asyncio.sleep(max(0, duration_ms) / 1000)


def _in_its_process(loop: Any, body: Any, **more: Any) -> Any:
    task = asyncio.Task(body, loop=loop, **more)
    context = more.get("context")
    process = PROCESS.get() if context is None else context.get(PROCESS)
    if process is not None:
        process.owns(task)
        if not process.alive:
            task.cancel()
    return task
