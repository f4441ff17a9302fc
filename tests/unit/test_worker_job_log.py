"""Lines of job logs on their way out: in order, bounded, and saying where something is missing."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from headgate_contracts.commands import LogLine
from libs.policy import Runs
from libs.runtime.clock import SystemClock
from services.worker.attempt import job_log
from services.worker.attempt.job_log import JobLog, LinePump
from services.worker.child.messages import cut
from tests.fixtures.lives import job_after


class Out:
    """A stream that keeps what it is given, unless it is away or breaks every n-th try."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.away = False
        self.breaks_at = 0
        self.tries = 0

    async def put(self, line: LogLine, *, line_id: str) -> bool:
        self.tries += 1
        breaks = self.breaks_at and self.tries % self.breaks_at == 0
        await asyncio.sleep(0)
        if self.away or breaks:
            return False
        self.kept[line_id] = line.line
        return True

    @property
    def texts(self) -> list[str]:
        return list(self.kept.values())


@pytest.fixture
def out() -> Out:
    return Out()


@pytest_asyncio.fixture
async def pump(out: Out, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LinePump]:
    monkeypatch.setattr(job_log, "AGAIN_AFTER_MS", 1)
    pump = LinePump(out, SystemClock())
    running = asyncio.create_task(pump.run(asyncio.Event()))
    yield pump
    running.cancel()
    await asyncio.wait([running])


def log_of(pump: LinePump, *, secrets: tuple[str, ...] = (), **bounds: int) -> JobLog:
    runs = Runs.model_validate(bounds)
    return JobLog(job_after("queued dispatched started"), pump, clock=SystemClock(), runs=runs, secrets=secrets)


async def test_what_looks_like_a_secret_is_masked_over_all_its_lines(pump: LinePump, out: Out) -> None:
    log = log_of(pump, secrets=("our own key",))

    for line in ("with our own key", "-----BEGIN PRIVATE KEY-----", "MIIEow", "-----END PRIVATE KEY-----", "after"):
        log.add("code", line)
    await pump.sent(within_s=1)

    assert out.texts == ["with [masked]", "[masked]", "[masked]", "[masked]", "after"]


async def test_a_log_is_cut_at_its_bytes_and_says_so(pump: LinePump, out: Out) -> None:
    log = log_of(pump, log_bytes=25)

    for _ in range(5):
        log.add("code", "é" * 5)  # ten bytes
    await pump.sent(within_s=1)

    assert out.texts == ["é" * 5, "é" * 5, "… [cut: the log of an attempt has at most 25 bytes]"]


async def test_lines_arrive_in_order(pump: LinePump, out: Out) -> None:
    log = log_of(pump)
    for number in range(100):
        log.add("code", str(number))

    await pump.sent(within_s=5)

    assert out.texts == [str(number) for number in range(100)]


async def test_a_line_that_was_not_kept_is_sent_again_under_the_same_id(pump: LinePump, out: Out) -> None:
    out.breaks_at = 3
    log = log_of(pump)
    for number in range(20):
        log.add("code", str(number))

    await pump.sent(within_s=5)

    assert sorted(out.texts, key=int) == [str(number) for number in range(20)]
    assert out.tries > 20


async def test_nobody_waits_for_a_stream_that_is_away(pump: LinePump, out: Out) -> None:
    out.away = True
    log_of(pump).add("code", "here")

    await pump.sent(within_s=0.01)

    assert out.texts == []


async def test_what_waited_through_an_outage_arrives_and_what_did_not_fit_is_counted(
    pump: LinePump, out: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_log, "MAX_WAITING", 5)
    log = log_of(pump)
    for number in range(12):
        log.add("code", str(number))
    await pump.sent(within_s=5)

    log.add("code", "after")
    await pump.sent(within_s=5)

    assert out.texts == ["0", "1", "2", "3", "4", "… [7 lines are missing: too many came at once]", "after"]


async def test_lines_that_are_missing_at_the_end_are_counted_there(
    pump: LinePump, out: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_log, "MAX_WAITING", 5)
    log = log_of(pump)
    for number in range(12):
        log.add("code", str(number))

    log.close()
    log.close()
    await pump.sent(within_s=5)

    assert out.texts == ["0", "1", "2", "3", "4", "… [7 lines are missing: too many came at once]"]


async def test_a_log_that_is_cut_while_too_many_lines_wait_says_both(
    pump: LinePump, out: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_log, "MAX_WAITING", 2)
    log = log_of(pump, log_lines=4)
    for number in range(9):
        log.add("code", str(number))

    log.close()
    await pump.sent(within_s=5)

    missing, cut_off = (
        "… [2 lines are missing: too many came at once]",
        "… [cut: the log of an attempt has at most 4 lines]",
    )
    assert out.texts == ["0", "1", missing, cut_off]


async def test_a_log_has_an_end_and_says_so_once(pump: LinePump, out: Out) -> None:
    log = log_of(pump, log_lines=3)
    for number in range(9):
        log.add("code", str(number))

    await pump.sent(within_s=5)

    assert out.texts == ["0", "1", "2", "… [cut: the log of an attempt has at most 3 lines]"]


@pytest.mark.parametrize("length", [0, 1, 99, 100])
def test_a_line_within_the_bound_stays_as_it_is(length: int) -> None:
    assert cut("x" * length, max_chars=100) == "x" * length


def test_a_longer_line_is_as_long_as_allowed_and_says_how_long_it_was() -> None:
    line = cut("x" * 101, max_chars=100)

    assert len(line) == 100
    assert line.endswith("… [cut: the line has 101 characters]")
