"""How far running jobs are: the last word of each, in a bucket and in no event.

    worker ──publish──► the bucket's subject ─┬─► notifiers, which listen to the subject itself
                                              └─► kept for who asks later, one message a job

Nothing waits for it and nothing rests on it: what cannot be told is told by the next word, and where nobody can be
asked a job is shown without.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from nats.aio.client import Client
from pydantic import ValidationError

from headgate_contracts import ContractError
from headgate_contracts.commands import JobProgress
from libs.eventlog.buckets import MemoryBucket
from libs.eventlog.edge import translated
from libs.eventlog.errors import LogError
from libs.eventlog.streams import PROGRESS
from libs.eventlog.titles import DirectKeys

PROGRESS_SUBJECTS: Final = f"$KV.{PROGRESS}.*"


def progress_in(content: bytes) -> JobProgress | None:
    """Null where it was erased, or cannot be read."""
    with suppress(ContractError, ValidationError):
        return JobProgress.model_validate_json(content) if content else None
    return None


class JetStreamProgress(DirectKeys):
    """The bucket of progress, and the subject on which it is published."""

    def __init__(self, nc: Client) -> None:
        super().__init__(nc, PROGRESS)

    async def report(self, said: JobProgress) -> None:
        """Without waiting whether it arrives."""
        with suppress(LogError), translated(PROGRESS):
            await self._nc.publish(self._subject(said.job_id), said.model_dump_json().encode())

    async def of(self, ids: Sequence[str]) -> dict[str, JobProgress]:
        """Those that have told, by their ids; none where nobody can say."""
        if not ids:
            return {}
        with suppress(LogError):
            return _read(await self.newest(ids))
        return {}


class MemoryProgress(MemoryBucket):
    """The twin of `JetStreamProgress`, in memory."""

    async def report(self, said: JobProgress) -> None:
        await self.put(said.job_id, said.model_dump_json().encode())

    async def of(self, ids: Sequence[str]) -> dict[str, JobProgress]:
        return _read({job_id: await self.get(job_id) or b"" for job_id in ids})


def _read(kept: dict[str, bytes]) -> dict[str, JobProgress]:
    found = {job_id: progress_in(content) for job_id, content in kept.items()}
    return {job_id: said for job_id, said in found.items() if said is not None}
