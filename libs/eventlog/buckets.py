"""What jobs are made from and what they made: bytes under a name, beside the log and never in it.

    Inputs    one message a job, written before the job's first event, read by workers alone
    Objects   RESULTS and WORKSPACES: in chunks, as they grow past what one message may hold

Both are read from the leader: what was put a moment ago must be found.
"""

from __future__ import annotations

import base64
import hashlib

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from pydantic_core import from_json

from headgate_contracts.tokens import check_token
from libs.eventlog.api import message_in
from libs.eventlog.edge import fault_in, translated
from libs.eventlog.streams import INPUTS

PUT_WITHIN_S = 5.0


class JetStreamInputs:
    """The inputs of jobs. Put twice, the later one stands: a job's input is the same each time."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc

    async def put(self, job_id: str, content: bytes) -> None:
        """Durable when this returns."""
        with translated(INPUTS):
            reply = await self._nc.request(_input_subject(job_id), content, timeout=PUT_WITHIN_S)
        error = from_json(reply.data).get("error")
        if error is not None:
            raise fault_in(error, about=INPUTS)

    async def get(self, job_id: str) -> bytes | None:
        """Null where there is none, or none any more."""
        message = await message_in(self._nc, f"KV_{INPUTS}", {"last_by_subj": _input_subject(job_id)})
        return None if message is None or not message.get("data") else base64.b64decode(message["data"])


class JetStreamObjects:
    """One bucket of objects."""

    def __init__(self, nc: Client, bucket: str) -> None:
        self._nc = nc
        self._bucket = bucket

    async def put(self, name: str, content: bytes) -> None:
        """In the place of what had that name before."""
        with translated(self._bucket):
            store = await JetStreamContext(self._nc).object_store(self._bucket)
            await store.put(check_token("name", name), content)

    async def get(self, name: str) -> bytes | None:
        """Null where there is none, or where it is not whole. Chunk by chunk: nats-py's own `get` waits for ever when
        its consumer is lost."""
        with translated(self._bucket):
            try:
                store = await JetStreamContext(self._nc).object_store(self._bucket)
                info = await store.get_info(check_token("name", name))
            except NotFoundError:
                return None
        content, seq = bytearray(), 0
        subject = f"$O.{self._bucket}.C.{info.nuid}"
        while chunk := await message_in(self._nc, f"OBJ_{self._bucket}", {"seq": seq + 1, "next_by_subj": subject}):
            content += base64.b64decode(chunk["data"])
            seq = chunk["seq"]
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
        return bytes(content) if info.digest == f"SHA-256={digest}" else None


class MemoryBucket:
    """The twin of both, for tests and simulations."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def put(self, name: str, content: bytes) -> None:
        self._kept[check_token("name", name)] = content

    async def get(self, name: str) -> bytes | None:
        return self._kept.get(check_token("name", name))


def _input_subject(job_id: str) -> str:
    return f"$KV.{INPUTS}.{check_token('job_id', job_id)}"
