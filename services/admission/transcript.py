"""The log of a job as its readers get it: every line as it was, and a mark where some are gone.

Pure. What the stream has dropped, because it was too old or too much, is marked; what the worker itself cut says so in
a line of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headgate_contracts.commands import LogLine
from libs.eventlog.lines import Gaps, Line


@dataclass(slots=True)
class Plain:
    """Text for people: a heading for each attempt and stage, then its lines."""

    gaps: Gaps = field(default_factory=Gaps)
    heading: tuple[int, str] | None = None

    def page(self, lines: Iterable[Line]) -> str:
        return "".join(f"{row}\n" for each in self.gaps.marked(lines) for row in self._rows(each.line))

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
        return "".join(f"{each.line.model_dump_json(exclude={'job_id'})}\n" for each in self.gaps.marked(lines))


Format = Plain | JsonLines
