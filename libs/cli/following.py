"""Watching jobs until they end: live in a terminal, line by line in a pipe, as JSON lines for a program."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

from rich.live import Live

from libs.cli.board import JobLine, advanced, drawn
from libs.cli.calling import called
from libs.cli.client import Api
from libs.cli.output import Output
from libs.cli.streams import StreamEvent, follow

Watched = tuple[JobLine, Iterable[StreamEvent]]
_Heard = tuple[int, StreamEvent | Exception | None]


def watch(api: Api, job_id: str, out: Output) -> int:
    """Until the end; 0 where the job became ready. Whoever watches one job knows which."""
    try:
        [line] = watch_all([(JobLine(job_id), follow(api, job_id))], out)
    except KeyboardInterrupt:
        out.say(f"The job goes on: `{called()} jobs follow {job_id}` watches it again.")
        raise
    return 0 if line.status == "ready" else 1


def watch_all(watched: Sequence[Watched], out: Output) -> list[JobLine]:
    """All of them at once, each to the end of its stream; how each stood then."""
    lines = [line for line, _ in watched]
    with _screen(out) as live:
        for number, event in _merged([events for _, events in watched]):
            before, lines[number] = lines[number], advanced(lines[number], event)
            out.line({"job_id": before.id, "event": event.name, "id": event.id, "data": event.data})
            if event.name == "log":
                out.say(before.titled(f"{event.data['stage']} │ {event.data['line']}"), style="dim")
            if live:
                live.update(drawn(lines))
            elif lines[number] != before:
                out.say(before.titled(lines[number].words))
    return lines


@contextmanager
def _screen(out: Output) -> Generator[Live | None]:
    if not out.is_terminal:
        yield None
        return
    with Live(console=out.console, refresh_per_second=8) as live:
        yield live


def _merged(streams: Sequence[Iterable[StreamEvent]]) -> Generator[tuple[int, StreamEvent]]:
    """The events of all streams, each as soon as it is there: a thread reads each of them."""
    heard = SimpleQueue[_Heard]()
    for number, events in enumerate(streams):
        threading.Thread(target=_read, args=(number, events, heard), daemon=True).start()
    open_streams = len(streams)
    while open_streams:
        number, said = heard.get()
        match said:
            case None:
                open_streams -= 1
            case StreamEvent():
                yield number, said
            case fault:
                raise fault


def _read(number: int, events: Iterable[StreamEvent], heard: SimpleQueue[_Heard]) -> None:
    try:
        for event in events:
            heard.put((number, event))
    except Exception as fault:  # noqa: BLE001 - it is raised where the events are read
        heard.put((number, fault))
    else:
        heard.put((number, None))
