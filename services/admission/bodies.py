"""How much each route takes, in one table. A route with a body that has no line here cannot be made."""

from collections.abc import Mapping
from typing import Final

from libs.runtime.bodies import BodyLimit
from libs.runtime.guard import GuardedRoute

KIB: Final = 1024
WORDS: Final = BodyLimit(16 * KIB)  # ids, a reason of 500 characters
JOB: Final = BodyLimit(256 * KIB)  # an input of 64 KiB, three times as long where its writer escapes every character
ANSWER: Final = BodyLimit(64 * KIB)  # an answer of 16 KiB, three times as long where every character is escaped
POLICY: Final = BodyLimit(64 * KIB)  # a file of all there is has 6 KiB, the rest is for groups that have a limit
WORKFLOW: Final = BodyLimit(4096 * KIB)  # 50 phases at most, each with an input
BATCH: Final = BodyLimit(7168 * KIB)  # 100 jobs, each with an input

BODIES: Final[Mapping[str, BodyLimit]] = {
    "POST /v1/jobs": JOB,
    "POST /v1/jobs/batch": BATCH,
    "POST /v1/jobs/{job_id}/retry": JOB,
    "POST /v1/workflows": WORKFLOW,
    "POST /v1/jobs/cancel": WORDS,
    "POST /v1/jobs/{job_id}/cancel": WORDS,
    "POST /v1/jobs/{job_id}/answer": ANSWER,
    "POST /v1/workflows/{workflow_id}/cancel": WORDS,
    "PATCH /v1/jobs/{job_id}": WORDS,
    "POST /v1/queue/move": WORDS,
    "POST /v1/queue/pause": WORDS,
    "POST /v1/queue/resume": WORDS,
    "PUT /v1/concurrency/{group:path}": WORDS,
    "POST /v1/concurrency/{group:path}/leases": WORDS,
    "PATCH /v1/concurrency/{group:path}/leases/{lease}": WORDS,
    "POST /v1/tokens/revoke": WORDS,
    "PUT /v1/policy": POLICY,
}


class AdmissionRoute(GuardedRoute):
    """A route of admission: it takes a body no larger than the table says."""

    limits = BODIES
