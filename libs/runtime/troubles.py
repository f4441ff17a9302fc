"""One line for each thing that goes wrong with a job, by the service that has just written it into the log, and the
same words as the status of the span in which that was done.

Owns the words, by which such lines are searched. The line has the job's id and its trace's besides, where it is said
inside `job_context`.
"""

import logging
from collections.abc import Mapping

from opentelemetry.trace import Span

from headgate_contracts.events import JobData, JobFailed, JobGivenBack
from headgate_contracts.vocabulary import GivenBackReason
from libs.runtime.spans import mark

logger = logging.getLogger(__name__)


def say_trouble(data: JobData, span: Span | None = None) -> None:
    """Nothing, where all is well. The span is the current one where none is given."""
    about = {"user_id": data.user_id, "attempt": data.attempt}
    match data:
        case JobFailed(summary=summary, fault=fault):
            logger.warning("the job failed: %s", summary, extra={**about, "fault": fault.value})
            mark(summary, span)
        case JobGivenBack(reason=GivenBackReason.LOST):
            _say("the job's worker was lost", about, span)
        case JobGivenBack(reason=GivenBackReason.FORCED):
            _say("the job's slot was forced free", about, span)
        case _:
            pass


def _say(words: str, about: Mapping[str, object], span: Span | None) -> None:
    logger.warning(words, extra=about)
    mark(words, span)
