"""The words in which a model hands over files, and their strict reading.

    === FILE src/shop/cart.py ===
    ...the whole file...
    === END ===
    === DELETE tests/test_old.py ===
    === NEEDS ===
    httpx>=0.28
    === END ===

Lines of their own, so that code needs no escaping: models break JSON around code far more often. What stands outside of
a block is talk and is left alone. A block ends with END, with the next block, or with the answer; a block that the end
of the answer has left open is reported, because an answer that was cut off ends like that.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from services.worker.build.template import MAX_NEEDS, is_plain_need
from services.worker.build.tree import TreeRefused, checked_path

_MARK: Final = re.compile(r"=== (?:(FILE|DELETE) (\S[^\n]*?)|(NEEDS|END)) ===\s*")
_FENCE: Final = "```"


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What an answer says. `left_open` is the file that it ended in; `problems` are what cannot be accepted."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    deleted: frozenset[str] = frozenset()
    needs: tuple[str, ...] | None = None
    left_open: str | None = None
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    """A model's answer, half read."""

    package: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    deleted: set[str] = field(default_factory=set[str])
    needs: tuple[str, ...] | None = None
    problems: list[str] = field(default_factory=list[str])
    block: str | None = None  # "NEEDS", or the path of a file
    lines: list[str] = field(default_factory=list[str])

    def take(self, line: str) -> None:
        mark = _MARK.fullmatch(line)
        if mark is None:
            self.lines.append(line)
            return
        self.close()
        word, path, other = mark.groups()
        if word == "DELETE":
            self._delete(path)
        elif word == "FILE":
            self.block = path
        elif other == "NEEDS":
            self.block = "NEEDS"

    def close(self) -> None:
        block, lines = self.block, self.lines
        self.block, self.lines = None, []
        if block == "NEEDS":
            self._need([line.strip() for line in lines if line.strip() and not line.strip().startswith(_FENCE)])
        elif block is not None:
            self._file(block, lines)

    def _file(self, path: str, lines: list[str]) -> None:
        text = "\n".join(_without_fence(lines)).strip("\n") + "\n"
        if "\0" in text:
            self.problems.append(f"{path[:200]!r} holds a NUL character")
        elif checked := self._checked(path):
            self.files[checked] = text
            self.deleted.discard(checked)

    def _delete(self, path: str) -> None:
        if checked := self._checked(path):
            self.deleted.add(checked)
            self.files.pop(checked, None)

    def _need(self, lines: list[str]) -> None:
        for line in lines:
            if not is_plain_need(line):
                self.problems.append(f"NEEDS: {line[:200]!r} is no plain requirement such as httpx>=0.28")
        if len(lines) > MAX_NEEDS:
            self.problems.append(f"NEEDS: {len(lines)} requirements are more than {MAX_NEEDS}")
        self.needs = tuple(line for line in lines if is_plain_need(line))[:MAX_NEEDS]

    def _checked(self, path: str) -> str | None:
        try:
            return checked_path(path, package=self.package)
        except TreeRefused as refused:
            self.problems.append(str(refused))
            return None


def read_answer(text: str, *, package: str, was_cut: bool = False) -> ModelAnswer:
    """What the answer says. Where it was cut off, the block that it ended in is dropped and reported."""
    reading = _Reading(package)
    for line in _clean(text).split("\n"):
        reading.take(line)
    left_open = reading.block if was_cut else None
    if left_open is None:
        reading.close()
    return ModelAnswer(reading.files, frozenset(reading.deleted), reading.needs, left_open, tuple(reading.problems))


def _without_fence(lines: list[str]) -> list[str]:
    """Without the code fence that models put around a whole file."""
    said = [number for number, line in enumerate(lines) if line.strip()]
    if len(said) < 2 or not lines[said[0]].startswith(_FENCE) or lines[said[-1]].strip() != _FENCE:
        return lines
    return lines[said[0] + 1 : said[-1]]


def _clean(text: str) -> str:
    """With one kind of line end, and of what can be written into a file."""
    return text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
