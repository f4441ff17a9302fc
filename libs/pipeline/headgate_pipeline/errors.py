"""What a stage may raise, what its context raises, and what is said of a module that is no pipeline."""

from typing import Literal

from headgate_contracts.vocabulary import Fault


class PipelineError(Exception):
    """What a stage may raise, and what its context raises. Any other exception fails the job with its name alone."""


class ChecksFailed(PipelineError):
    """The checks found the work wanting: the job goes on with the next iteration, or asks. Only the last stage may say
    so.

    Both texts are shown to the job's user, where it asks whether to go on. The next iteration finds the detail, or else
    the summary, as `ctx.failure`.
    """

    def __init__(self, summary: str, detail: str = "") -> None:
        super().__init__(summary)
        self.summary = summary
        self.detail = detail


class StageFailed(PipelineError):
    """The job cannot be done. Both texts are shown to its user. One that fails by the system's fault, not by what the
    user asked for, gives its place of the day back."""

    def __init__(self, summary: str, detail: str = "", *, fault: Literal[Fault.JOB, Fault.SYSTEM] = Fault.JOB) -> None:
        super().__init__(summary)
        self.summary = summary
        self.detail = detail
        self.fault: Literal[Fault.JOB, Fault.SYSTEM] = fault


class TryAgain(StageFailed):
    """The stage failed by something that passes: a server that is away, an answer that cannot be read. It is run again
    as often as its `retries` say, after a pause of at least `after_s`; then the job fails by this."""

    def __init__(
        self,
        summary: str,
        detail: str = "",
        *,
        after_s: float = 0,
        fault: Literal[Fault.JOB, Fault.SYSTEM] = Fault.JOB,
    ) -> None:
        super().__init__(summary, detail, fault=fault)
        self.after_s = after_s


class NoSlot(PipelineError):
    """There was no slot within the time that the stage was ready to wait. Try again later in the same stage."""


class SlotLost(PipelineError):
    """The slot was taken away. Stop what needed it; ask again in the same stage."""


class PipelineBroken(Exception):
    """{name} is no pipeline: {why}. Correct the module, or the setting HEADGATE_PIPELINES."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(name=name, why=why))
        self.why = why
