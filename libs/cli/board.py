"""What a person sees of jobs that run: one line a job, and how it changes with each event of its stream.

Pure: events in, lines out. Owns the words. Rich draws them where there is a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from headgate_contracts import Stage, Status
from libs.cli.streams import StreamEvent

STAGES: Final = tuple(stage.value for stage in Stage)
ENDS: Final = frozenset(status.value for status in Status if status.is_end)
WAITING: Final = frozenset({"queued", "scheduled", "waiting", "awaiting_confirmation"})
STYLES: Final = {"ready": "green", "failed": "red", "cancelled": "yellow", "awaiting_confirmation": "magenta"}


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job, as far as its stream has told."""

    id: str
    title: str = ""
    status: str = ""
    iteration: int = 0
    note: str = ""  # the position, the question, the failure
    stage: str = ""  # the last one that was begun

    @property
    def ended(self) -> bool:
        return self.status in ENDS

    @property
    def words(self) -> str:
        """The status, in a few words."""
        iteration = f", iteration {self.iteration}" if self.iteration > 1 and self.status in STAGES else ""
        note = f": {self.note}" if self.note else ""
        return f"{self.status.replace('_', ' ')}{iteration}{note}"

    def titled(self, text: str) -> str:
        """What is said of this one, where there are several."""
        return f"{self.title}  {text}" if self.title else text


def advanced(line: JobLine, event: StreamEvent) -> JobLine:
    """The line after this event; the same one where the event shows nothing."""
    match event.name:
        case "snapshot":
            return _from_snapshot(line, event.data)
        case "status":
            return _from_status(line, event.data)
        case "position" if line.status == "queued":
            return replace(line, note=_part(event.data, "queue").get("position_message", line.note))
        case "confirmation" if "next_batch" in event.data:
            used, more = event.data["iterations_used"], event.data["next_batch"]
            return replace(line, note=f"{used} iterations used; it asks whether to continue for {more} more")
        case _:
            return line


def drawn(lines: Iterable[JobLine]) -> Table:
    """All lines, for a terminal."""
    table = Table.grid(padding=(0, 2))
    for line in lines:
        title = (Text(line.title, style="bold"),) if line.title else ()
        table.add_row(*title, stages_of(line), Text(line.words, STYLES.get(line.status, "")))
    return table


def stages_of(line: JobLine) -> Text:
    """`✔ scaffold  ● code  · deps  · checks`; where a job has ended in a stage, `✘ code`."""
    under_way = line.status in STAGES
    reached = STAGES.index(line.stage) if line.stage and (under_way or line.ended) else -1
    text = Text()
    for number, stage in enumerate(STAGES):
        if line.status == "ready" or number < reached:
            text.append(f"✔ {stage}  ", "green")
        elif number == reached:
            text.append(f"{'●' if under_way else '✘'} {stage}  ", "bold cyan" if under_way else "red")
        else:
            text.append(f"· {stage}  ", "dim")
    return text


def _from_snapshot(line: JobLine, job: Mapping[str, Any]) -> JobLine:
    status, iterations = job["status"], _part(job, "iterations")
    note = job.get("message", "") if status in WAITING else _part(job, "error").get("summary", "")
    if not note and status == line.status:  # all that led here was told before
        note = line.note
    return _at(replace(line, iteration=iterations.get("used", 0), note=note), status)


def _from_status(line: JobLine, data: Mapping[str, Any]) -> JobLine:
    """A status of its own. What stood beside the one before it is gone."""
    note = {
        "failed": data.get("summary", ""),
        "cancelled": f"by {data.get('by', 'somebody')}",
        "given_back": f"given back ({data.get('reason', '')})",
        "ready": f"{data['duration_s']:.1f} s" if "duration_s" in data else "",
    }.get(data["event"], "")
    iteration = data.get("iteration") or data.get("iterations") or line.iteration
    return _at(replace(line, iteration=iteration, note=note), data["status"])


def _at(line: JobLine, status: str) -> JobLine:
    return replace(line, status=status, stage=status if status in STAGES else line.stage)


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object inside an object; an empty one where it is null or not there."""
    return data.get(name) or dict[str, Any]()
