"""What a person sees of jobs that run: one line a job, and how it changes with each event of its stream.

Pure: events in, lines out. Owns the words. Rich draws them where there is a terminal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from headgate import Event
from headgate_contracts import Status
from headgate_contracts.commands import CHECKS_FAILED
from libs.cli.output import STYLES
from libs.runtime.terminal import plain

GAP: Final = 2  # between columns
WORDS_WIDTH: Final = len("queued: You are #10 in queue")  # at least, where the stages are named beside them
ENDS: Final = frozenset(status.value for status in Status if status.is_end)
WAITING: Final = frozenset({"queued", "scheduled", "waiting", "awaiting_confirmation"})


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job, as far as its stream has told."""

    id: str
    title: str = ""
    status: str = ""
    iteration: int = 0
    note: str = ""  # the position, the question, the failure
    stages: tuple[str, ...] = ()  # of its pipeline, once a worker has told them
    stage: str = ""  # the last one that was begun
    under_way: bool = False
    why: str = ""  # the checks of the iteration before failed
    detail: str = ""  # of its failure
    asks: str = ""  # the kind of its question, while that is open

    @property
    def ended(self) -> bool:
        return self.status in ENDS

    @property
    def last(self) -> str:
        """The stage whose checks decide."""
        return self.stages[-1] if self.stages else ""

    @property
    def words(self) -> str:
        """The status, in a few words."""
        iteration = f", iteration {self.iteration}" if self.iteration > 1 and self.under_way else ""
        note = f": {one_line(self.note)}" if self.note else ""
        status = self.stage if self.under_way else self.status
        return f"{status.replace('_', ' ')}{iteration}{note}"

    @property
    def words_in_full(self) -> str:
        """Beside its stages: what failed before in the place of the one that they show."""
        if self.why and self.under_way and self.iteration > 1:
            return f"iteration {self.iteration}: {one_line(self.why)}"
        return self.words

    def titled(self, text: str) -> str:
        """What is said of this one, where there are several."""
        return f"{self.title}  {text}" if self.title else text


def one_line(text: str) -> str:
    """Words of others, as a row may hold them."""
    return " ".join(plain(text).split())


def advanced(line: JobLine, event: Event) -> JobLine:
    """The line after this event; the same one where the event shows nothing."""
    match event.kind:
        case "snapshot":
            return _from_snapshot(line, event.data)
        case "status":
            return _from_status(line, event.data)
        case "position" if line.status == "queued":
            place: str = _part(event.data, "queue").get("position_message", "")
            return replace(line, note=with_pause(place, event.data) or line.note)
        case "log":
            return replace(line, why=failed_checks(event.data, last=line.last) or line.why)
        case "progress" if event.data["stage"] == line.stage and line.under_way:
            return replace(line, note=_how_far(event.data))
        case "confirmation" if "next_batch" in event.data:
            return replace(line, note=_asked(event.data))
        case _:
            return line


@dataclass(frozen=True, slots=True)
class Board:
    """All lines, for a terminal: each job on one row, however narrow that is."""

    lines: Sequence[JobLine]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        longest = max((cell_len(line.title) for line in self.lines), default=0)
        title = min(longest, options.max_width // 4)
        stages = max((cell_len(stages_of(line).plain) for line in self.lines), default=0)
        named = options.max_width - (title + GAP + stages + GAP) >= WORDS_WIDTH
        stages = stages if named else max((len(line.stages) for line in self.lines), default=0)
        for line in self.lines:
            row = Text(no_wrap=True, overflow="ellipsis")
            if title:
                row.append(_cut(Text(one_line(line.title), "bold"), title, pad=True).append(" " * GAP))
            if stages:
                row.append(_cut(stages_of(line, named=named), stages, pad=True)).append(" " * GAP)
            row.append(line.words_in_full, STYLES.get(line.status, ""))
            yield _cut(row, options.max_width)


def stages_of(line: JobLine, *, named: bool = True) -> Text:
    """`✔ scaffold  ● code  · deps  ✘ checks`, or `✔●·✘`. Failed is the stage that a job has ended in, and what failed
    before is until it runs again."""
    text = Text()
    for number, stage in enumerate(line.stages):
        mark, style = _mark(line, number)
        text.append(f"{mark} {stage}{'  ' if number + 1 < len(line.stages) else ''}" if named else mark, style)
    return text


def _mark(line: JobLine, number: int) -> tuple[str, str]:
    under_way = line.under_way
    reached = line.stages.index(line.stage) if line.stage in line.stages and (under_way or line.ended) else -1
    if line.status == "ready" or number < reached:
        return "✔", "green"
    if number == reached:
        return ("●", "bold cyan") if under_way else ("✘", "red")
    return ("✘", "red") if line.why and under_way and number + 1 == len(line.stages) else ("·", "dim")


def _cut(text: Text, width: int, *, pad: bool = False) -> Text:
    text.truncate(width, overflow="ellipsis", pad=pad)
    return text


def failed_checks(said: Mapping[str, Any], *, last: str) -> str:
    """What failed, where this line of a job's log says that the checks of its last stage did; else empty."""
    line: str = said["line"] if said["stage"] == last else ""
    return line.removeprefix(CHECKS_FAILED) if line.startswith(CHECKS_FAILED) else ""


def _from_snapshot(line: JobLine, job: Mapping[str, Any]) -> JobLine:
    status, iterations = job["status"], _part(job, "iterations")
    note = with_pause(job.get("message", ""), job) if status in WAITING else _part(job, "error").get("summary", "")
    note = note or _how_far(_part(job, "progress"))
    if not note and status == line.status:  # all that led here was told before
        note = line.note
    stage = job.get("stage") or ""
    return replace(
        line,
        status=status,
        iteration=iterations.get("used", 0),
        note=note,
        stages=_names(job),
        stage=stage or line.stage,
        under_way=bool(stage) and status not in ENDS,
        detail=_part(job, "error").get("detail", ""),
        asks=_kind(job),
    )


def _from_status(line: JobLine, data: Mapping[str, Any]) -> JobLine:
    """A status of its own. What stood beside the one before it is gone."""
    tried: Mapping[str, Any] = _part(data, "tried")
    note = {
        "failed": data.get("summary", ""),
        "cancelled": f"by {data.get('by', 'somebody')}",
        "try_failed": f"failed {tried.get('tries')} of {tried.get('most', 0) + 1} times: {tried.get('summary')}",
        "given_back": f"given back ({data.get('reason', '')})",
        "ready": f"{data['duration_s']:.1f} s" if "duration_s" in data else "",
    }.get(data["event"], "")
    iteration = data.get("iteration") or data.get("iterations") or line.iteration
    stage, stages = data.get("stage", "") or tried.get("stage", ""), _names(data) or line.stages
    return replace(
        line,
        status=data["status"],
        iteration=iteration,
        note=note,
        why="" if stages[-1:] == (stage,) else line.why,
        stages=stages,
        stage=stage or line.stage,
        under_way=bool(stage),
        detail=data.get("detail", "") if data["event"] == "failed" else "",
        asks=_kind(data),
    )


def with_pause(place: str, said: Mapping[str, Any]) -> str:
    """Where it stands, and the pause that holds it there. A queued job has no number while it is paused."""
    paused = next((reason["message"] for reason in said.get("waiting_on") or () if reason["reason"] == "paused"), "")
    is_queued = said.get("status", "queued") == "queued"
    return paused or place if is_queued else "; ".join(part for part in (place, paused) if part)


def _how_far(told: Mapping[str, Any]) -> str:
    return f"{told['fraction']:.0%} {told['message']}".rstrip() if told else ""


def _kind(said: Mapping[str, Any]) -> str:
    """Of the question that is open, whether or not it is told."""
    is_open = said["status"] == "awaiting_confirmation"
    return str(_part(said, "question").get("kind", "continue")) if is_open else ""


def _asked(data: Mapping[str, Any]) -> str:
    if data.get("kind") == "ask":
        return f"it asks: {data['text']}"
    used, more = data["iterations_used"], data["next_batch"]
    reason = _part(data, "reason").get("summary")
    return f"{used} iterations used; it asks whether to continue for {more} more{f': {reason}' if reason else ''}"


def _names(said: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(stage["name"] for stage in said.get("stages") or ())


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object inside an object; an empty one where it is null or not there."""
    return data.get(name) or dict[str, Any]()
