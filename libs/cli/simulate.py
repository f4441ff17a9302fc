"""`headgate simulate`: the recorded events under another policy, and the waits that it would have given.

Reads the log and nothing else, with the credentials of a read-only consumer. Changes nothing anywhere.
"""

import asyncio
import os
from argparse import Namespace
from collections.abc import Callable, Generator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from libs.cli.bars import Group, bar, svg
from libs.cli.errors import Failed
from libs.cli.output import Output
from libs.cli.reporting import reported
from libs.cli.target import running_here
from libs.eventlog import JetStreamLog, connect
from libs.eventlog.api import state_of
from libs.eventlog.errors import SettingsDiffer
from libs.eventlog.streams import JOBS
from libs.forecast.recorded import Recorder
from libs.forecast.simulate import OTHER, RECORDED, SOURCES, TODAY, ComparedKind, Comparison, compare
from libs.policy import load_policy
from libs.runtime.tls import authorities_in, trusting
from libs.runtime.wording import counted

NATS_URL: Final = "HEADGATE_NATS_URL"
POLICY: Final = "HEADGATE_POLICY"
HEAD: Final = ("PRIORITY", "TIER", "", "JOBS", "MEAN", "P50", "P90", "P99")
WIDEST_BAR: Final = 24
WORDS: Final = {RECORDED: "recorded", TODAY: "today's policy", OTHER: "the other"}

Tell = Callable[[int, int], None]


def simulate(args: Namespace, out: Output) -> int:
    """Read, replay twice, and put the waits beside each other."""
    with reported():
        other = load_policy(args.policy, environ=os.environ)
        today_file = args.today or (Path(os.environ[POLICY]) if os.environ.get(POLICY) else None)
        today = load_policy(today_file, environ=os.environ)
        recorder = Recorder()
        with _progress(out, "reading the log") as tell:
            asyncio.run(_read(recorder, tell))
    since_ms = round(args.since.timestamp() * 1000) if args.since else 0
    with _progress(out, "replaying") as tell:
        jobs = recorder.jobs
        found = compare(
            recorder,
            today=today,
            other=other,
            since_ms=since_ms,
            told=lambda source, started: tell(started + jobs * (source == OTHER), 2 * jobs),
        )
    if not found.kinds:
        raise Failed(reason="No job has started in that time, so there is no wait to compare.")
    _show(found, out)
    if args.plot is not None:
        _draw(found, args.plot, out)
    return 0


async def _read(recorder: Recorder, tell: Tell) -> None:
    """To where the log ended when we came."""
    url = os.environ.get(NATS_URL) or running_here(instead=NATS_URL).nats_url
    client = await connect(url, name="headgate simulate", tls=trusting(authorities_in(os.environ)))
    try:
        state = await state_of(client, JOBS)
        if state.epoch is None:
            raise SettingsDiffer(differences=f"{JOBS}: it has no epoch")
        log = JetStreamLog(client, epoch=state.epoch)
        async with aclosing(log.follow(after=max(0, state.first_seq - 1))) as pages:
            async for page in pages:
                recorder.take(page.records)
                read = page.records[-1].seq if page.records else state.last_seq
                tell(read - state.first_seq + 1, state.last_seq - state.first_seq + 1)
                if read >= state.last_seq:
                    return
    finally:
        await client.close()


@contextmanager
def _progress(out: Output, what: str) -> Generator[Tell]:
    """A bar, where somebody looks at it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=out.console, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task(what, total=None)

        def tell(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield tell


# ── what is shown ─────────────────────────────────────────────────────────────


def _show(found: Comparison, out: Output) -> None:
    out.data(_as_json(found))
    out.say(f"{counted(found.jobs, 'job')}. Waits from the queue to the first start, in seconds.")
    out.say()
    lines = [line for kind in found.kinds for line in _lines(kind)]
    room = out.room_beside(HEAD, [cells for cells, _ in lines])
    width, greatest = min(room, WIDEST_BAR), max(mean for _, mean in lines)
    out.table((*HEAD, ""), [(*cells, bar(mean, greatest, width=width)) for cells, mean in lines])
    out.say()
    for source in (TODAY, OTHER):
        refused, deferred = found.refused[source], found.deferred[source]
        out.say(f"{WORDS[source]}: {deferred} scheduled for a later day, {refused} refused because the queue was full")


def _lines(kind: ComparedKind) -> list[tuple[tuple[str, ...], float]]:
    """The cells of each, and the mean as it stands there, which is drawn beside them."""
    lines: list[tuple[tuple[str, ...], float]] = []
    for source in SOURCES:
        waits = kind.waits.get(source)
        names = (kind.priority.value, kind.tier.value) if source == RECORDED else ("", "")
        if waits is None:
            lines.append(((*names, WORDS[source], "0", "", "", "", ""), 0.0))
            continue
        numbers = (f"{value:,.1f}" for value in (waits.mean, waits.p50, waits.p90, waits.p99))
        lines.append(((*names, WORDS[source], str(waits.count), *numbers), round(waits.mean, 1)))
    return lines


def _as_json(found: Comparison) -> dict[str, Any]:
    return {
        "jobs": found.jobs,
        "waits": [
            {
                "priority": kind.priority.value,
                "tier": kind.tier.value,
                **{
                    source: waits.model_dump(mode="json", exclude={"priority", "tier"})
                    for source, waits in kind.waits.items()
                },
            }
            for kind in found.kinds
        ],
        "refused": dict(found.refused),
        "deferred": dict(found.deferred),
    }


def _draw(found: Comparison, file: Path, out: Output) -> None:
    groups = [
        Group(
            f"{kind.priority.value} · {kind.tier.value}",
            {WORDS[source]: waits.mean for source, waits in kind.waits.items()},
        )
        for kind in found.kinds
    ]
    picture = svg("Mean wait by priority and tier", groups, [WORDS[source] for source in SOURCES], unit="s")
    try:
        file.write_text(picture)
    except OSError as error:
        raise Failed(reason=f"{file} cannot be written: {error.strerror}. Name another file.") from error
    out.say(f"drawn into {file}")
