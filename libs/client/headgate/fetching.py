"""A result, fetched in parts and compared with its checksum.

A download that breaks off goes on from its last byte (`Range`, `If-Range`). Its ETag is the SHA-256 of all of it, so
what was put together is what Headgate has, or an error.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, TypeVar
from uuid import uuid4

from headgate.errors import Conflict, HeadgateError, NotAsPromised, NotStored, Unreachable, fault_of
from headgate.exchange import Answer, NoAnswer, Pause, Request, Script, done, opened, path_of, taken, terms
from headgate.repeating import answered, pause_after
from headgate.unpacking import unpack
from headgate.verbs import history
from headgate.waiting import SEEN_EVERY_S, SEEN_WITHIN_S

T = TypeVar("T")

AS_IT_IS: Final = {"Accept-Encoding": "identity"}  # a packed answer has bytes of its own, and no parts


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """What is known of a result before it is fetched. `digest` is its SHA-256."""

    job_id: str
    size: int
    digest: str


@dataclass(slots=True)
class Download:
    """How much of a result is there. Pure."""

    job_id: str
    etag: str | None = None
    size: int | None = None
    got: int = 0
    _sum: Any = field(default_factory=hashlib.sha256)

    @property
    def request(self) -> Request:
        parts = {"Range": f"bytes={self.got}-", "If-Range": self.etag} if self.etag and self.got else {}
        return Request(path=path_of("jobs", self.job_id, "result"), headers={**AS_IT_IS, **parts})

    @property
    def is_whole(self) -> bool:
        return self.size is not None and self.got >= self.size

    def begins(self, head: Answer) -> None:
        """With the rest, or where it has changed meanwhile with all of it."""
        self.etag = head.headers.get("etag")
        if head.status != 206:
            said = head.headers.get("content-length", "")
            self.size = int(said) if said.isdecimal() else None
            self.got, self._sum = 0, hashlib.sha256()

    def takes(self, piece: bytes) -> None:
        self.got += len(piece)
        self._sum.update(piece)

    def compare(self) -> None:
        if digest_of(self.etag) != self._sum.hexdigest():
            raise NotAsPromised(f"the result of job {self.job_id} is damaged: {self.got} bytes with another checksum")


def facts(job_id: str) -> Script[ResultFacts]:
    """Its size and checksum, by its first byte: a refusal to answer without a body could not say why."""
    request = Request(path=path_of("jobs", job_id, "result"), headers={**AS_IT_IS, "Range": "bytes=0-0"})
    told = (yield from _once_seen(job_id, partial(answered, request))).headers
    size = told.get("content-range", "").rpartition("/")[2] or told.get("content-length", "")
    return ResultFacts(job_id, int(size) if size.isdecimal() else 0, digest_of(told.get("etag")))


def download(job_id: str, file: BinaryIO) -> Script[int]:
    """Into the file, from where that stands; how many bytes it has."""
    return (yield from _once_seen(job_id, partial(_download, job_id, file)))


def content(job_id: str) -> Script[bytes]:
    """All of it, in memory."""
    with TemporaryFile() as file:
        yield from download(job_id, file)
        return (yield from _here(partial(_read, file)))


def save(job_id: str, path: Path | str) -> Script[Path]:
    """As a .tar.gz of that name, which is replaced when all of it is there."""
    target = _place_of(path)
    yield from _here(partial(_require_no_other, target), target)
    part = target.parent / f".{uuid4().hex}.part"  # of its own: the same may be saved twice at once
    try:
        with _or_not_stored(partial(part.open, "xb"), target) as file:
            yield from download(job_id, file)
        yield from _here(partial(part.replace, target), target)
    finally:
        part.unlink(missing_ok=True)
    return target


def extract(job_id: str, folder: Path | str) -> Script[tuple[Path, ...]]:
    """Below the folder, which is made; what was put there. Nothing is unpacked before all of it is there and whole. A
    folder that was not there is there with all of it or not at all; in one that was, whole files are replaced one after
    the other."""
    place = _place_of(folder)
    with TemporaryFile() as file:
        yield from download(job_id, file)
        yield from _here(partial(file.seek, 0))
        return (yield from _here(partial(unpack, file, place), place))


def digest_of(etag: str | None) -> str:
    return (etag or "").removeprefix("W/").strip('"')


def _once_seen(job_id: str, ask: Callable[[], Script[T]]) -> Script[T]:
    """Who heard that a job is ready may be a moment ahead of who is asked for its result."""
    known = yield from terms()
    ends_s = known.now_s() + SEEN_WITHIN_S
    while True:
        try:
            return (yield from ask())
        except Conflict as fault:
            if fault.slug != "no-result" or known.now_s() >= ends_s:
                raise
            if (yield from history(job_id))[-1].event != "ready":
                raise
        yield Pause(SEEN_EVERY_S)


def _download(job_id: str, file: BinaryIO) -> Script[int]:
    known = yield from terms()
    begin = yield from _here(file.tell)
    it, number, furthest = Download(job_id), 0, 0
    while True:
        fault = yield from _part(it, file, begin)
        if fault is None:
            it.compare()
            return it.got
        if it.got > furthest:  # what gets on may be cut as often as it is: its size is its bound
            number, furthest = 0, it.got
        pause_s = pause_after(fault, it.request, number, patience=known.patience)
        if pause_s is None or pause_s > known.patience.within_s or number + 1 == known.patience.tries:
            raise fault
        number += 1
        yield Pause(pause_s)


def _part(it: Download, file: BinaryIO, begin: int) -> Script[HeadgateError | None]:
    """One connection; nothing where all of it is there now."""
    outcome = yield from opened(it.request)
    fault = fault_of(outcome)
    if fault is not None:
        return fault
    assert not isinstance(outcome, NoAnswer)
    it.begins(outcome)
    yield from _here(partial(file.seek, begin + it.got))
    yield from _here(file.truncate)
    while True:
        piece = yield from taken()
        if isinstance(piece, NoAnswer):
            return Unreachable(piece.reason)
        if not piece:
            return None if it.size is None or it.is_whole else Unreachable("the answer was cut off")
        it.takes(piece)
        yield from _here(partial(file.write, piece))


def _place_of(path: Path | str) -> Path:
    if "\0" in str(path):
        raise NotStored(f"{str(path)!r} names no place: it holds a NUL")
    return Path(path)


def _require_no_other(target: Path) -> None:
    """Than a file: one in place of a device or a folder would be worse than none."""
    with suppress(FileNotFoundError):
        if not S_ISREG(target.stat().st_mode):
            raise NotStored(f"{target} is there and is no file: name another place")


def _here(work: Callable[[], T], place: Path | None = None) -> Script[T]:
    return (yield from done(partial(_or_not_stored, work, place)))


def _or_not_stored(work: Callable[[], T], place: Path | None = None) -> T:
    """`place` is what the caller named: what is made beside it meanwhile has a name that says nothing."""
    try:
        return work()
    except OSError as fault:
        where = f"{place or fault.filename}: " if place or fault.filename else ""
        raise NotStored(f"{where}{fault.strerror or fault}") from fault


def _read(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()
