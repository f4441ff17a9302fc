"""A Headgate in memory, for an application's own tests: real admission, rules, scheduler, attempts and streams over
twins of the servers, in virtual time.

    async with Headgate.testing() as hg:
        job = await hg.submit("a URL shortener", project="shop")
        await hg.testing.run()
        assert (await job.refreshed()).status == "ready"

Time passes only where somebody waits: for an answer, for the end of a job, in `run()` and `advance()`. Builds write
nothing: they are done after a few seconds of that time, unless `testing` says otherwise; pipelines of one's own are run
as they are. What is behind it is the server's code (the extra `testing`).
"""

import importlib
import tomllib
from asyncio import timeout, wrap_future
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final

import httpx

from headgate.async_driver import AsyncDriver
from headgate.asynchronous import Headgate
from headgate.edge import Target
from headgate.exchange import Patience
from headgate.handles import JobHandle
from headgate.sync_driver import SyncDriver
from headgate.synchronous import SyncHeadgate

TWINS: Final = "libs.twins"  # of the server's wheel
URL: Final = "http://twins"
NOW: Final = datetime(2027, 1, 15, 9, tzinfo=UTC)
USER: Final = ("jobs:read", "jobs:write", "leases")
OPERATOR: Final = (*USER, "ops")
NONE_FREE: Final = 429
MOMENT_S: Final = 0.02  # of the machine's time, for others of the test to give a slot back
PATIENCE_S: Final = 10.0  # of the machine's time, until nothing can come any more

AnyJob = JobHandle[Any] | str


class NothingHappens(AssertionError):
    """Something is waited for that does not come: nothing is left to do, and nobody does anything."""

    def __init__(self, why: str) -> None:
        super().__init__(f"nothing is left to do, and nobody does anything: {why}; act, or let time pass (`advance`)")


class TestingControls:
    """What becomes of builds, and what time it is there. What is said without a job is said of all that are not
    named."""

    __test__ = False  # it is no test of pytest's

    def __init__(self, twins: Any, patience_s: float) -> None:
        self.twins = twins
        self.patience_s = patience_s

    @property
    def now(self) -> datetime:
        """The time there."""
        return self.twins.now

    def lasts(self, seconds: float, *, job: AnyJob | None = None) -> None:
        """Each of its stages takes so long; a second, where nothing is said."""
        self.twins.scripts.lasts(seconds, _id_of(job))

    def makes(self, files: Mapping[str, bytes | str], *, job: AnyJob | None = None) -> None:
        """What its result holds."""
        self.twins.scripts.makes(files, _id_of(job))

    def fails(
        self,
        summary: str,
        *,
        detail: str = "",
        stage: str | None = None,
        passes_after: int | None = None,
        job: AnyJob | None = None,
    ) -> None:
        """It fails in this stage, or in the first. With `passes_after` so many tries of the stage fail, and the next
        one does not."""
        self.twins.scripts.fails(summary, detail, stage=stage, passes_after=passes_after, job_id=_id_of(job))

    def fails_checks(self, times: int, *, job: AnyJob | None = None) -> None:
        """So many iterations end with failed checks. After those of a batch, its user is asked whether to continue."""
        self.twins.scripts.fails_checks(times, _id_of(job))

    def asks(
        self,
        text: str,
        *,
        choices: Sequence[str] | None = None,
        schema: Mapping[str, Any] | None = None,
        stage: str | None = None,
        job: AnyJob | None = None,
    ) -> None:
        """This stage, or the first, asks its user, after what it was told to ask before."""
        self.twins.scripts.asks(text, choices=choices, schema=schema, stage=stage, job_id=_id_of(job))

    def forget(self) -> None:
        """All that was said of builds."""
        self.twins.scripts.forget()

    def _target(self, user: str, tier: str, scopes: Sequence[str], projects: Sequence[str]) -> Target:
        if isinstance(scopes, str) or isinstance(projects, str):  # each letter would be one
            raise TypeError("scopes and projects: name a list of them, not a text")
        return Target(URL, self.twins.token(user, tier=tier, scopes=scopes, projects=projects))

    def _now_s(self) -> float:
        return self.now.timestamp()


class Testing(TestingControls):
    """What goes on behind a `Headgate.testing()`."""

    async def run(self) -> None:
        """Until nothing is left to do: each job has ended, or waits for its user, its day or its hour, or for a slot
        that nobody gives back."""
        await wrap_future(self.twins.run())

    async def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        await wrap_future(self.twins.advance(seconds))

    def user(
        self, name: str, *, tier: str = "partner", scopes: Sequence[str] = USER, projects: Sequence[str] = ()
    ) -> Headgate:
        """The same Headgate, asked by another user."""
        transport = _AsyncTransport(self)
        target = self._target(name, tier, scopes, projects)
        there: dict[str, Any] = {"now_s": self._now_s, "held": self.twins.held.leases}
        hg = Headgate(driver=AsyncDriver(target, Patience(), transport, pause=self.advance, **there))
        hg.behind = self
        return hg

    def operator(self, name: str = "operator") -> Headgate:
        """The same Headgate, asked by an operator."""
        return self.user(name, scopes=OPERATOR)


class SyncTesting(TestingControls):
    """What goes on behind a `SyncHeadgate.testing()`."""

    def run(self) -> None:
        """Until nothing is left to do: each job has ended, or waits for its user, its day or its hour, or for a slot
        that nobody gives back."""
        self.twins.run().result()

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        self.twins.advance(seconds).result()

    def user(
        self, name: str, *, tier: str = "partner", scopes: Sequence[str] = USER, projects: Sequence[str] = ()
    ) -> SyncHeadgate:
        """The same Headgate, asked by another user."""
        transport = _SyncTransport(self)
        target = self._target(name, tier, scopes, projects)
        there: dict[str, Any] = {"now_s": self._now_s, "held": self.twins.held.leases}
        hg = SyncHeadgate(driver=SyncDriver(target, Patience(), transport, pause=self.advance, **there))
        hg.behind = self
        return hg

    def operator(self, name: str = "operator") -> SyncHeadgate:
        """The same Headgate, asked by an operator."""
        return self.user(name, scopes=OPERATOR)


class _Opening:
    """A Headgate in memory, from its first moment to its last.

    `pipelines` are run as they are, beside `build` and `rehearsal`. `policy` is what differs from the default, as a
    mapping or a file of TOML. `now` is when it begins, `slots` are the worker's.
    """

    def __init__(
        self,
        *,
        user: str = "ann",
        tier: str = "partner",
        scopes: Sequence[str] = USER,
        projects: Sequence[str] = (),
        pipelines: Sequence[Any] = (),
        policy: Mapping[str, Any] | Path | str | None = None,
        now: datetime = NOW,
        slots: int = 4,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._who: dict[str, Any] = {"name": user, "tier": tier, "scopes": scopes, "projects": projects}
        self._how: dict[str, Any] = {"pipelines": pipelines, "policy": _rules_in(policy), "now": now, "slots": slots}
        self._patience_s = patience_s

    def _system(self) -> Any:
        try:
            return importlib.import_module(TWINS).TwinSystem(**self._how)
        except ModuleNotFoundError as missing:
            name = "headgate-server" if TWINS.startswith(str(missing.name)) else missing.name
            wrong = f"a Headgate in memory runs the server's own code, and {name} is not installed"
            raise RuntimeError(f"{wrong}: the wheel headgate-server brings it") from missing


class OpenTesting(_Opening):
    """`async with Headgate.testing() as hg:`"""

    async def __aenter__(self) -> Headgate:
        self._twins = self._system()
        try:
            await wrap_future(self._twins.start())
        except BaseException:
            self._twins.stop().result()
            raise
        self._hg = Testing(self._twins, self._patience_s).user(**self._who)
        return self._hg

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._hg.close()
        finally:
            await wrap_future(self._twins.stop())


class OpenSyncTesting(_Opening):
    """`with SyncHeadgate.testing() as hg:`"""

    def __enter__(self) -> SyncHeadgate:
        self._twins = self._system()
        try:
            self._twins.start().result()
        except BaseException:
            self._twins.stop().result()
            raise
        self._hg = SyncTesting(self._twins, self._patience_s).user(**self._who)
        return self._hg

    def __exit__(self, *_: object) -> None:
        try:
            self._hg.close()
        finally:
            self._twins.stop().result()


# ── in the place of a network ─────────────────────────────────────────────────


class _InLine:
    """Who stands in line for a slot that nothing but a deed of the test frees, and since when by the machine's time."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since_s: dict[bytes, float] = {}

    def is_refused(self, asked: Any, status: int) -> bool:
        if asked.takes_slot and status == NONE_FREE:
            return True
        self._since_s.pop(asked.content, None)
        return False

    def require_patience(self, asked: Any) -> None:
        now_s = monotonic()
        if now_s - self._since_s.setdefault(asked.content, now_s) >= self._patience_s:
            raise NothingHappens(f"{asked.path.partition('/concurrency/')[2]} waits for a slot that nobody gives back")


class _AsyncTransport(httpx.AsyncBaseTransport):
    def __init__(self, testing: TestingControls) -> None:
        self._testing = testing
        self._in_line = _InLine(testing.patience_s)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        twins, asked = self._testing.twins, _asked(request, await request.aread())
        exchange = await wrap_future(twins.ask(asked))
        try:
            deeds = twins.deeds
            await wrap_future(twins.head(exchange))
            if self._in_line.is_refused(asked, exchange.status) and await wrap_future(twins.is_quiet()):
                self._in_line.require_patience(asked)
                with suppress(TimeoutError):
                    async with timeout(MOMENT_S):
                        await wrap_future(twins.after(deeds))
        except BaseException:
            twins.hang_up(exchange)
            raise
        return httpx.Response(exchange.status, headers=exchange.headers, stream=_AsyncPieces(self._testing, exchange))


class _AsyncPieces(httpx.AsyncByteStream):
    """An answer, as its pieces come."""

    def __init__(self, testing: TestingControls, exchange: Any) -> None:
        self._testing, self._exchange = testing, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        twins = self._testing.twins
        while True:
            deeds = twins.deeds
            piece: Any = await wrap_future(twins.piece(self._exchange))
            if piece is None:
                return
            if isinstance(piece, bytes):
                yield piece
                continue
            try:
                async with timeout(self._testing.patience_s):
                    await wrap_future(twins.after(deeds))
            except TimeoutError:
                raise NothingHappens(twins.unfinished()) from None

    async def aclose(self) -> None:
        await wrap_future(self._testing.twins.hang_up(self._exchange))


class _SyncTransport(httpx.BaseTransport):
    def __init__(self, testing: TestingControls) -> None:
        self._testing = testing
        self._in_line = _InLine(testing.patience_s)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        twins, asked = self._testing.twins, _asked(request, request.read())
        exchange = twins.ask(asked).result()
        try:
            deeds = twins.deeds
            twins.head(exchange).result()
            if self._in_line.is_refused(asked, exchange.status) and twins.is_quiet().result():
                self._in_line.require_patience(asked)
                with suppress(FutureTimeout):
                    twins.after(deeds).result(timeout=MOMENT_S)
        except BaseException:
            twins.hang_up(exchange).exception()  # what is raised here is more than what comes of that
            raise
        return httpx.Response(exchange.status, headers=exchange.headers, stream=_SyncPieces(self._testing, exchange))


class _SyncPieces(httpx.SyncByteStream):
    """An answer, as its pieces come."""

    def __init__(self, testing: TestingControls, exchange: Any) -> None:
        self._testing, self._exchange = testing, exchange

    def __iter__(self) -> Iterator[bytes]:
        twins = self._testing.twins
        while True:
            deeds = twins.deeds
            piece: Any = twins.piece(self._exchange).result()
            if piece is None:
                return
            if isinstance(piece, bytes):
                yield piece
                continue
            waiting: Future[None] = twins.after(deeds)
            try:
                waiting.result(timeout=self._testing.patience_s)
            except FutureTimeout:
                raise NothingHappens(twins.unfinished()) from None

    def close(self) -> None:
        self._testing.twins.hang_up(self._exchange).result()


def _asked(request: httpx.Request, content: bytes) -> Any:
    make: Callable[..., Any] = importlib.import_module(TWINS).TwinRequest
    return make(request.method, request.url.raw_path, tuple(request.headers.raw), content)


def _rules_in(policy: Mapping[str, Any] | Path | str | None) -> Mapping[str, Any]:
    if isinstance(policy, str | Path):
        return tomllib.loads(Path(policy).read_text(encoding="utf-8"))
    return policy or {}


def _id_of(job: AnyJob | None) -> str | None:
    return job.id if isinstance(job, JobHandle) else job
