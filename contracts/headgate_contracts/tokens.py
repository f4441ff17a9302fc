"""Names that travel in subjects, and the ids made from them.

Owns the one alphabet of tokens, the mapping of foreign ids into it, and the shape of ids.
Refuses to draw randomness or read a clock: both are arguments.
"""

import base64
import hashlib
import re
from typing import Annotated, Final

from pydantic import StringConstraints

from headgate_contracts.errors import InvalidToken

TOKEN_PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"
Token = Annotated[str, StringConstraints(pattern=TOKEN_PATTERN)]
JobId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,40}$")]

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAPPED: Final = re.compile(r"x-[a-z2-7]{26}")
_OF_KEY: Final = re.compile(r"[kw][a-z2-7]{26}(-[0-9]+)?")
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def check_token(field: str, value: str) -> str:
    """Give the value back if it can stand in a subject."""
    if not _TOKEN.fullmatch(value):
        raise InvalidToken(field, f"{value!r} is not a token: use 1 to 64 of A-Z a-z 0-9 _ -")
    return value


def foreign_token(value: str) -> str:
    """Map any user or project id into the alphabet; one that fits already stays as it is.

    An id that merely looks mapped is mapped again, so nobody can be named into another's place.
    """
    if _TOKEN.fullmatch(value) and not is_mapped(value):
        return value
    return f"x-{_digest(_bytes(value))}"


def is_mapped(token: str) -> bool:
    """Whether the token stands for a foreign id that does not fit, or looks as if it did."""
    return _MAPPED.fullmatch(token) is not None


def project_scope(user_id: str, project_id: str, *, shared: bool) -> str:
    """Which project is meant: one name is one project for all who share it, and for everybody else one of their own."""
    return project_id if shared else f"{user_id}:{project_id}"


def job_id_for_key(user_id: str, idempotency_key: str) -> str:
    """The id of the job that this user's key stands for: the same key is the same job, so the log refuses a second.

    The user goes in as a hash, of one length, so that no user and key run together into another user's.
    """
    return f"k{_digest(hashlib.sha256(_bytes(user_id)).digest() + _bytes(idempotency_key))}"


def workflow_id_for_key(user_id: str, idempotency_key: str) -> str:
    """The same for a workflow. Its jobs' ids follow from its own."""
    return f"w{job_id_for_key(user_id, idempotency_key)[1:]}"


def is_of_key(job_id: str) -> bool:
    """Whether the id follows from an Idempotency-Key, its own or its workflow's: it may stand for a job already."""
    return _OF_KEY.fullmatch(job_id) is not None


def phase_job_id(workflow_id: str, phase: int) -> str:
    """The job that is the n-th phase of a workflow: to know the workflow is to know its jobs."""
    return f"{workflow_id}-{phase}"


def input_name(job_id: str, digest: str) -> str:
    """Where a job's input is kept: a repeated key with another body writes elsewhere and changes nothing."""
    return f"{job_id}-{digest.removeprefix('sha256:')[:22]}"


def ulid(now_ms: int, entropy: bytes) -> str:
    """A ULID: 48 bits of time, 80 bits of the caller's entropy, in 26 characters that sort by time."""
    if len(entropy) != 10:
        raise ValueError(f"a ULID needs 10 bytes of entropy, not {len(entropy)}")
    if not 0 <= now_ms < 1 << 48:
        raise ValueError(f"a ULID holds a time from 0 to 2^48 ms, not {now_ms}")
    number = (now_ms << 80) | int.from_bytes(entropy, "big")
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def _bytes(value: str) -> bytes:
    return value.encode(errors="surrogatepass")  # half a surrogate is legal in JSON, and so in a claim


def _digest(data: bytes) -> str:
    return base64.b32encode(hashlib.sha256(data).digest()).decode().lower()[:26]
