"""Which jobs are looked for, in which order, and the question that this is to the index. Pure.

Owns the filters, the orders and the cursor. A cursor names the list it belongs to and the job to go on after: it means
nothing in another list, and is refused there.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from headgate_contracts import Status
from libs.capacity.projection import epoch_ms

MOST_WORDS: Final = 16
SEQ_BITS: Final = 44  # of a key: some 17 million million records


class Sort(StrEnum):
    """An order of jobs."""

    NEWEST = "newest"
    OLDEST = "oldest"
    UPDATED = "updated"
    PRIORITY = "priority"

    @property
    def column(self) -> str:
        """What comes before the age, the same for all where nothing does."""
        return {Sort.UPDATED: "jobs.updated", Sort.PRIORITY: "jobs.class"}.get(self, "0")

    @property
    def is_ascending(self) -> bool:
        return self in (Sort.OLDEST, Sort.PRIORITY)

    def key(self, value: int, seq: int) -> int:
        """A job's place in this order, for a cursor."""
        return value << SEQ_BITS | seq


class Facet(StrEnum):
    """By what jobs are counted."""

    STATUS = "status"
    PROJECT = "project"
    PIPELINE = "pipeline"
    POOL = "pool"
    LABEL = "label"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs. `user`: whose; null for everybody's."""

    user: str | None
    ids: frozenset[str] = frozenset()
    text: str = ""
    statuses: frozenset[Status] = frozenset()
    project: str | None = None
    pipeline: str | None = None
    pool: str | None = None
    label: str | None = None
    workflow: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def name(self, epoch: str, sort: Sort = Sort.NEWEST) -> str:
        """The same for the same list, and for no other: a sequence means something in one log alone."""
        parts = asdict(self) | {"statuses": sorted(self.statuses), "ids": sorted(self.ids)}
        return hashlib.sha256(json.dumps([epoch, sort, parts], default=str).encode()).hexdigest()[:16]


def page_query(wanted: JobFilter, sort: Sort, *, before: int | None, count: int) -> tuple[str, list[Any]]:
    """The statement and its values: sort value, sequence and state of each job. A search for a word begins at the
    words, for a label at the labels, for named jobs at them; else a user's own jobs are walked, or all. `+` keeps
    SQLite from an order of its own in which it would have to sort."""
    conditions = list(_conditions(wanted))
    if before is not None:
        value, seq = before >> SEQ_BITS, before & ((1 << SEQ_BITS) - 1)
        compared = ">" if sort.is_ascending else "<"
        if sort.column == "0":
            conditions.append((f"jobs.seq {compared} ?", seq))
        else:
            conditions += [(f"({sort.column}, jobs.seq) {compared} (?, ?)", (value, seq))]
    where, values = _joined(conditions)
    way = "ASC" if sort.is_ascending else "DESC"
    order = f"{_age(wanted)} {way}" if sort.column == "0" else f"{sort.column} {way}, jobs.seq {way}"
    chosen = " ".join(
        ("SELECT", sort.column, ", jobs.seq FROM", _sources(wanted), "WHERE", where, "ORDER BY", order, "LIMIT ?")
    )
    packed = ("SELECT found.*, states.state FROM (", chosen, ") AS found CROSS JOIN states ON states.seq = found.seq")
    return " ".join(packed), [*values, count]


def count_query(wanted: JobFilter, facet: Facet, *, most: int) -> tuple[str, list[Any]]:
    """The statement and its values: each name, how many jobs, and the newest of them. The most frequent come first."""
    by_label = facet is Facet.LABEL
    sources = _sources(wanted) + (" CROSS JOIN labels AS counted ON counted.seq = jobs.seq" if by_label else "")
    name = "counted.label" if by_label else f"jobs.{facet.value}"
    where, values = _joined(_conditions(wanted))
    chosen = ("SELECT", name, ", count(*), max(jobs.seq) FROM", sources, "WHERE", where)
    return " ".join((*chosen, "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?")), [*values, most]


def match_of(text: str) -> str:
    """Each word quoted, and any that begins with it is meant; an operator's word is a word like others."""
    words = [word.replace('"', '""') for word in text.split()[:MOST_WORDS]]
    return " ".join(f'"{word}"*' for word in words)


def cursor_of(before: int, *, name: str) -> str:
    """Where to go on, in this list."""
    return base64.urlsafe_b64encode(f"{before}.{name}".encode()).decode().rstrip("=")


def read_cursor(text: str, *, name: str) -> int | None:
    """Null where it does not belong to this list."""
    try:
        before, _, named = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(".")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return int(before) if named == name and before.isascii() and before.isdigit() and len(before) < 40 else None


def _joined(conditions: Iterable[tuple[str, Any]]) -> tuple[str, list[Any]]:
    pairs = list(conditions)
    where = " AND ".join(condition for condition, _ in pairs) or "1"
    return where, [each for _, value in pairs for each in (value if isinstance(value, tuple) else (value,))]


def _sources(wanted: JobFilter) -> str:
    if wanted.text.strip():
        return "words CROSS JOIN jobs ON jobs.seq = words.rowid"
    if wanted.label is not None:
        return "labels CROSS JOIN jobs ON jobs.seq = labels.seq"
    return "jobs"


def _age(wanted: JobFilter) -> str:
    """The same number, in the table that is walked."""
    if wanted.text.strip():
        return "words.rowid"
    return "labels.seq" if wanted.label is not None else "jobs.seq"


def _conditions(wanted: JobFilter) -> Iterator[tuple[str, Any]]:
    yield from _found_by(wanted)
    if wanted.statuses:
        statuses = tuple(sorted(status.value for status in wanted.statuses))
        yield f"+jobs.status IN ({','.join('?' * len(statuses))})", statuses
    if wanted.ids:
        yield f"jobs.id IN ({','.join('?' * len(wanted.ids))})", tuple(sorted(wanted.ids))
    compared = {
        f"{'+' if wanted.ids else ''}jobs.user =": wanted.user,
        "+jobs.project =": wanted.project,
        "+jobs.pipeline =": wanted.pipeline,
        "+jobs.pool =": wanted.pool,
        "+jobs.workflow =": wanted.workflow,
        "+jobs.created >=": wanted.since and epoch_ms(wanted.since),
        "+jobs.created <": wanted.until and epoch_ms(wanted.until),
    }
    yield from ((f"{condition} ?", value) for condition, value in compared.items() if value is not None)


def _found_by(wanted: JobFilter) -> Iterator[tuple[str, Any]]:
    if wanted.text.strip():
        yield "words MATCH ?", match_of(wanted.text)
        if wanted.label is not None:
            yield "EXISTS (SELECT 1 FROM labels WHERE label = ?)", wanted.label  # once: none has it
            yield "EXISTS (SELECT 1 FROM labels WHERE label = ? AND labels.seq = jobs.seq)", wanted.label
    elif wanted.label is not None:
        yield "labels.label = ?", wanted.label
