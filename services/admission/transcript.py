"""The log of a job as its readers get it: every line as it was, and a mark where some are gone.

Pure. A worker numbers the lines of an attempt from 1; where a number is missing the stream has dropped lines, because
they were too old or too many. What the worker itself cut says so in a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from headgate_contracts.commands import LogLine
from libs.eventlog.lines import Line


class Format(Protocol):
    """One way of writing lines down, page by page."""

    def page(self, lines: Iterable[Line]) -> str: ...


@dataclass(slots=True)
class Gaps:
    """Puts a mark in the place of lines that are gone. It remembers the last line, so that pages join."""

    attempt: int = 0
    number: int = 0

    def marked(self, lines: Iterable[Line]) -> Iterator[LogLine]:
        for each in lines:
            line = each.line
            if line.attempt != self.attempt:
                self.attempt, self.number = line.attempt, 0
            if each.number is not None:
                gone = each.number - self.number - 1
                self.number = each.number
                if gone > 0:
                    words = "line is" if gone == 1 else "lines are"
                    yield line.model_copy(update={"line": f"… [{gone} {words} gone: the log was cut here]"})
            yield line


@dataclass(slots=True)
class Plain:
    """Text for people: a heading for each attempt and stage, then its lines."""

    gaps: Gaps = field(default_factory=Gaps)
    heading: tuple[int, str] | None = None

    def page(self, lines: Iterable[Line]) -> str:
        return "".join(f"{row}\n" for line in self.gaps.marked(lines) for row in self._rows(line))

    def _rows(self, line: LogLine) -> Iterator[str]:
        heading = (line.attempt, line.stage)
        if heading != self.heading:
            self.heading = heading
            yield f"── attempt {line.attempt} · {line.stage} · {line.ts:%Y-%m-%d %H:%M:%S} UTC"
        yield line.line


@dataclass(slots=True)
class JsonLines:
    """For programs: one object a line, as on the stream, and the attempt."""

    gaps: Gaps = field(default_factory=Gaps)

    def page(self, lines: Iterable[Line]) -> str:
        return "".join(f"{line.model_dump_json(exclude={'job_id'})}\n" for line in self.gaps.marked(lines))
