"""One line for each thing that goes wrong with a job, by whoever has just written it into the log.

Owns the words, by which such lines are searched. The line has the job's id and its trace's besides, where it is said
inside `job_context`.
"""

import logging

from headgate_contracts.events import JobData, JobFailed, JobGivenBack
from headgate_contracts.vocabulary import GivenBackReason

logger = logging.getLogger(__name__)


def say_trouble(data: JobData) -> None:
    """Nothing, where all is well."""
    about = {"user_id": data.user_id, "attempt": data.attempt}
    match data:
        case JobFailed(summary=summary, fault=fault):
            logger.warning("the job failed: %s", summary, extra={**about, "fault": fault.value})
        case JobGivenBack(reason=GivenBackReason.LOST):
            logger.warning("the job's worker was lost", extra=about)
        case JobGivenBack(reason=GivenBackReason.FORCED):
            logger.warning("the job's slot was forced free", extra=about)
        case _:
            pass
