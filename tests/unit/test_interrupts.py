"""Being told to end: nothing is raised where a signal arrives, and what runs clears up first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from libs.cli.errors import Failed, Interrupted
from libs.cli.interrupts import Interrupts
from libs.cli.merging import merged
from libs.cli.run_folder import run_folder

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def _hangups_are_heard() -> Iterator[None]:
    """Also where the tests were started by nohup: a signal that is ignored at the start stays so."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", SIGNALS)
async def test_what_runs_is_cancelled_where_it_waits_and_clears_up(number: signal.Signals) -> None:
    done: list[str] = []

    async def work() -> None:
        try:
            signal.raise_signal(number)
            done.append("went on")
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0)
            done.append("cleared up")

    with pytest.raises(Interrupted) as interrupted, Interrupts() as told:
        await told.obeyed_by(work())

    assert done == ["went on", "cleared up"]
    assert interrupted.value.exit_code == 128 + number


async def test_further_signals_disturb_nothing_and_can_be_waited_for() -> None:
    heard: list[int] = []

    async def work(told: Interrupts) -> None:
        try:
            await asyncio.sleep(600)
        finally:
            for number in SIGNALS:
                signal.raise_signal(number)
            await told.more_than(2)
            heard.append(told.count)

    async def told_before_anything_runs() -> None:
        with Interrupts() as told:
            signal.raise_signal(signal.SIGTERM)
            await told.obeyed_by(work(told))

    with pytest.raises(Interrupted) as interrupted:
        await told_before_anything_runs()

    assert (interrupted.value.exit_code, heard) == (143, [4])


async def test_the_first_signal_outranks_a_fault_that_comes_of_it() -> None:
    async def work() -> None:
        signal.raise_signal(signal.SIGHUP)
        raise OSError(5, "the terminal is gone")

    with pytest.raises(Interrupted), Interrupts() as told:
        await told.obeyed_by(work())


def test_a_signal_after_the_work_is_told_at_the_end_and_a_fault_outranks_it() -> None:
    def told(fault: Exception | None) -> None:
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
            if fault:
                raise fault

    with pytest.raises(Interrupted):
        told(None)
    with pytest.raises(Failed):
        told(Failed(reason="no"))


async def test_work_that_nobody_interrupts_gives_what_it_gives() -> None:
    async def work(fault: Exception | None) -> str:
        if fault:
            raise fault
        return "done"

    with Interrupts() as told:
        assert await told.obeyed_by(work(None)) == "done"
        with pytest.raises(Failed):
            await told.obeyed_by(work(Failed(reason="no")))


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    with Interrupts():
        assert [signal.getsignal(number) for number in SIGNALS] != before

    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as told:
            signal.raise_signal(signal.SIGHUP)
        assert told.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_streams_are_read_as_one_and_what_is_left_of_them_is_closed() -> None:
    closed: list[str] = []

    async def letters(text: str, *, for_ever: bool = False) -> AsyncIterator[str]:
        try:
            for letter in text:
                yield letter
            await asyncio.sleep(600 if for_ever else 0)
        finally:
            closed.append(text)

    async def broken() -> AsyncIterator[str]:
        yield "x"
        raise ZeroDivisionError

    assert sorted([piece async for piece in merged([letters("ab"), letters("c")])]) == [(0, "a"), (0, "b"), (1, "c")]
    with pytest.raises(ZeroDivisionError):
        _ = [piece async for piece in merged([letters("d", for_ever=True), broken()])]
    assert sorted(closed) == ["ab", "c", "d"]


@pytest.mark.parametrize("end", [None, Interrupted(signal.SIGINT), BrokenPipeError(32, "gone"), OSError(5, "gone")])
def test_the_folder_of_a_run_that_did_not_fail_goes_whatever_is_in_it(
    end: BaseException | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with suppress(Interrupted, OSError), run_folder("run-") as folder:
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "file").touch()
        (folder / "a" / "away").symlink_to(tmp_path)
        (folder / "a" / "b").chmod(0o000)
        (folder / "a").chmod(0o500)
        if end:
            raise end

    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


def test_the_folder_of_a_run_that_failed_stays_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    for name in ("worker.log", None):  # the second one fails before anything is in it
        with suppress(Failed), run_folder("run-") as folder:
            if name:
                (folder / name).touch()
            raise Failed(reason="no")

    [kept] = tmp_path.iterdir()
    assert [path.name for path in kept.iterdir()] == ["worker.log"]
    assert capsys.readouterr().err == f"headgate: what this run has left is in {kept}\n"
