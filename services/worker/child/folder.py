"""What an attempt has on disk, and what of it outlives the attempt.

    <folder>/workspace      what the stages write; commands of the job may write here and nowhere else
    <folder>/failure.txt    what the last failed checks said: beside the workspace, so that no command writes it
    <home>                  HOME and TMPDIR of the process itself, which are thrown away

The first two together are packed after each stage, without environments and caches, and unpacked where the job goes on.
Owns what is left out. Runs in the attempt's process, between two stages or in a thread beside the stage that asks.
"""

from collections.abc import Iterable
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath

from headgate_pipeline.rules import NEVER_KEPT
from libs.runtime.archives import Most
from services.worker.child.messages import MAX_FAILURE_CHARS, Begin, StoreReady, cut
from services.worker.child.packing import MAX_ENTRIES, UNPACKED, pack
from services.worker.child.unpacking import unpack
from services.worker.sandbox.remains import MOST_LEVELS


class Folder:
    """The folder of one attempt."""

    def __init__(self, begin: Begin, *, not_kept: Iterable[str] = ()) -> None:
        self.workspace = Path(begin.folder) / "workspace"
        self._folder = Path(begin.folder)
        self._failure = self._folder / "failure.txt"
        self._store = Path(begin.store)
        self.home = self._store.parent
        self._max_bytes = begin.store_bytes
        self._not_kept = frozenset(PurePosixPath("workspace", path) for path in not_kept)
        self._kept: bytes | None = None  # the digest of what was kept last

    @property
    def failure(self) -> str:
        """What the last failed checks said."""
        with suppress(FileNotFoundError):
            return self._failure.read_text(encoding="utf-8")
        return ""

    def failed(self, why: str) -> None:
        """What the next iteration is to know."""
        self._failure.write_text(cut(why, max_chars=MAX_FAILURE_CHARS), encoding="utf-8", errors="replace")

    def pack(self) -> StoreReady | None:
        """All of it, as it is told to the worker; null where that was kept last, or where there is nothing."""
        if self._kept is None and not any(self.workspace.iterdir()) and not self._failure.exists():
            return None
        packed = pack(self._folder, self._store, max_bytes=self._max_bytes, leave_out=self._is_left_out, in_memory=True)
        content = packed if isinstance(packed, bytes) else None
        digest, before = _digest_of(self._store) if content is None else sha256(content).digest(), self._kept
        self._kept = digest
        return None if digest == before else StoreReady(content=content)

    def restore(self) -> None:
        """Begin with what is in the store."""
        most = Most(size_bytes=UNPACKED * self._max_bytes, entries=MAX_ENTRIES, levels=MOST_LEVELS)
        unpack(self._store, self._folder, most=most)
        self.workspace.mkdir(exist_ok=True)
        self._kept = _digest_of(self._store)

    def _is_left_out(self, path: PurePosixPath) -> bool:
        return path.name in NEVER_KEPT or path in self._not_kept


def _digest_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()
