"""The way through a pipeline, as a worker goes it, with pauses that are not waited and workers that are lost on demand.

    stage ─► finished ─► [the worker is lost: only what is kept goes on] ─► the next stage … ─► ready
      ▲         ├ passing ───────► the same stage, while its retries last
      │         └ checks failed ─► the next iteration, while iterations last, then a question
      ├─ a question ─► answered by the test ─► the same stage, elsewhere with what is kept
      └─ a failure that the test asks for comes in its place

Owns the order. What runs a stage is `hands`: in this process, or in a worker's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self

from headgate_pipeline.errors import ChecksFailed, StageFailed, TryAgain
from headgate_pipeline.rules import KnownPipeline
from headgate_pipeline.testing.questions import AnsweringUser
from headgate_pipeline.testing.record import FailedTry, PipelineRun

CONTINUE: Final = "Continue?"
Outcome = Literal["finished", "checks_failed", "failed", "passing", "asks"]


@dataclass(frozen=True, slots=True)
class StageEnd:
    """How a stage ended."""

    outcome: Outcome
    summary: str = ""
    detail: str = ""
    after_s: float = 0
    error: BaseException | None = None


class Hands(Protocol):
    """What runs the stages of one pipeline."""

    @property
    def known(self) -> KnownPipeline: ...
    @property
    def user(self) -> AnsweringUser: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def run(self, stage: str, *, iteration: int, tries: int) -> StageEnd: ...
    async def fail(self, failure: str) -> None:
        """The checks failed by a test's wish: the next iteration is to know."""
        ...

    async def lose(self) -> None:
        """The worker: what comes next has what was kept after the last stage, and nothing else."""
        ...

    async def result(self) -> dict[str, bytes]: ...


@dataclass(slots=True)
class Walk:
    """One run. `fails` are raised in the place of a stage, one for each time that it would have been run."""

    hands: Hands
    told: PipelineRun
    fails: Mapping[str, Sequence[BaseException]]
    loses: Iterable[str]
    iterations: int

    async def walk(self) -> None:
        names = [title.name for title in self.hands.known.titles]
        _known(names, self.fails, self.loses)
        failing = {name: list(errors) for name, errors in self.fails.items()}
        losing, at, tries = set(self.loses), 0, 0
        while at < len(names):
            name = names[at]
            ended = await self._run(name, failing.get(name, []), tries=tries, is_last=at == len(names) - 1)
            match ended.outcome:
                case "finished":
                    self.told.stages.append(name)
                    at, tries = at + 1, 0
                case "passing" if tries < self.hands.known.rules_of(name).retries:
                    tries += 1
                    self._try_again(name, ended, tries)
                case "asks" if self.hands.user.answer():
                    self.told.attempts += 1
                    await self.hands.lose()
                case "checks_failed" if self.told.iterations < self.iterations:
                    self.told.iterations += 1
                    at, tries = self._again_at(names), 0
                case _:
                    return self._over(ended)
            if name in losing:
                losing.discard(name)
                self.told.attempts += 1
                await self.hands.lose()
        self.told.result = await self.hands.result()
        return None

    async def _run(self, name: str, failing: list[BaseException], *, tries: int, is_last: bool) -> StageEnd:
        if not failing:
            return await self.hands.run(name, iteration=self.told.iterations, tries=tries)
        ended = end_of(failing.pop(0), name, is_last=is_last)
        if ended.outcome == "checks_failed":
            await self.hands.fail(ended.detail or ended.summary)
        return ended

    def _try_again(self, name: str, ended: StageEnd, tries: int) -> None:
        pause_s = max(ended.after_s, self.hands.known.rules_of(name).pause_s(tries))
        self.told.tries.append(FailedTry(name, tries, ended.summary, pause_s))

    def _again_at(self, names: Sequence[str]) -> int:
        return names.index(self.hands.known.again_at or names[0])

    def _over(self, ended: StageEnd) -> None:
        if ended.outcome == "checks_failed":
            self.told.questions.append(CONTINUE)
        self.told.status = "awaiting_confirmation" if ended.outcome in ("asks", "checks_failed") else "failed"
        self.told.summary, self.told.detail, self.told.error = ended.summary, ended.detail, ended.error


def end_of(
    error: BaseException, stage: str, *, is_last: bool, retry_on: tuple[type[BaseException], ...] = ()
) -> StageEnd:
    """What a worker makes of what a stage raises, in the words that the job's user reads."""
    passing = isinstance(error, (TryAgain, *retry_on))
    match error:
        case ChecksFailed() if is_last:
            return StageEnd("checks_failed", error.summary, error.detail, error=error)
        case ChecksFailed():
            said = f"The stage {stage} said that checks failed, and is not the last."
            return StageEnd("failed", said, error.summary, error=error)
        case StageFailed():
            after_s = error.after_s if isinstance(error, TryAgain) else 0
            return StageEnd("passing" if passing else "failed", error.summary, error.detail, after_s, error)
        case _:
            said = f"The stage {stage} ended with {type(error).__name__}."
            return StageEnd("passing" if passing else "failed", said, str(error), error=error)


def _known(names: Sequence[str], *asked: Iterable[str]) -> None:
    for name in (name for each in asked for name in each):
        if name not in names:
            raise ValueError(f"the pipeline has no stage {name!r}: it has {', '.join(names)}")
