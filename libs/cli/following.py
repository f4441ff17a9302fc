"""Watching jobs until they end: live in a terminal, line by line in a pipe, as JSON lines for a program."""

from collections.abc import AsyncIterable, Generator, Sequence
from contextlib import contextmanager

from rich.live import Live

from headgate import Event, Headgate
from libs.cli.board import Board, JobLine, advanced, failed_checks
from libs.cli.calling import called
from libs.cli.client import in_words
from libs.cli.errors import Interrupted
from libs.cli.interrupts import interruptible
from libs.cli.merging import merged
from libs.cli.output import Output
from libs.cli.target import Target

Watched = tuple[JobLine, AsyncIterable[Event]]


def watch(target: Target, job_id: str, out: Output) -> int:
    """Until the end; 0 where the job became ready. Who watches one job knows which."""
    try:
        with in_words(target.url):
            line = interruptible(_watched(target, job_id, out))
    except Interrupted:
        out.say(f"The job goes on: `{called()} jobs follow {job_id}` watches it again.")
        raise
    if line.status == "failed":
        if line.detail:
            out.say(line.detail)
        out.say(f"`{called()} jobs show {job_id}` says why.")  # the row of a terminal may be too short for it
    return 0 if line.status == "ready" else 1


async def _watched(target: Target, job_id: str, out: Output) -> JobLine:
    async with Headgate(target.url, target.token) as hg:
        [line] = await watch_all([(JobLine(job_id), hg.events(job_id))], out, hints=True)
    return line


async def watch_all(watched: Sequence[Watched], out: Output, *, hints: bool = False) -> list[JobLine]:
    """All of them at once, each to the end of its stream; how each stood then. `hints`: of what answers a question."""
    lines = [line for line, _ in watched]
    with _screen(out) as live:
        async for number, event in merged([events for _, events in watched]):
            before, lines[number] = lines[number], advanced(lines[number], event)
            out.line({"job_id": before.id, "event": event.kind, "id": event.id, "data": event.data})
            if event.kind == "log":
                style = "red" if failed_checks(event.data, last=before.last) else None
                out.log(event.data["line"], before=before.titled(f"{event.data['stage']} │ "), style=style)
            if live and lines[number] != before:
                live.update(Board(tuple(lines)), refresh=True)
            elif not live and lines[number].words != before.words:
                out.say(before.titled(lines[number].words))
            if hints and lines[number].asks and not before.asks:
                out.say(_answering(lines[number]))
    return lines


def _answering(line: JobLine) -> str:
    if line.asks == "ask":
        return f"`{called()} jobs answer {line.id} ANSWER` answers it; `{called()} jobs show {line.id}` has all of it."
    return f"`{called()} jobs confirm {line.id}` lets it go on, `{called()} jobs cancel {line.id}` ends it."


@contextmanager
def _screen(out: Output) -> Generator[Live | None]:
    if not out.is_terminal:
        yield None
        return
    with Live(console=out.console, auto_refresh=False) as live:
        yield live
