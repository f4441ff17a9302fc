"""What a worker knows of a pipeline before it runs one of its stages, as the spawner has read it from the module.

Owns the numbers that the author has written beside a stage. They reach no log: what came of them does.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from headgate_contracts.records import Record
from headgate_contracts.stages import Stages

MAX_RETRIES: Final = 100
MAX_PAUSE_S: Final = 86_400
BUILT_IN: Final = ("build", "rehearsal")  # pipelines that every pool has
MAX_SCHEMA_BYTES: Final = 64 * 1024  # of an input, that each submission can be checked by

# Names below a workspace that no checkpoint has: they are made again where they are missing.
NEVER_KEPT: Final = frozenset(
    {".venv", "__pycache__", ".cache", ".pytest_cache", ".ruff_cache", ".mypy_cache", "node_modules"}
)

PauseSeconds = Annotated[float, Field(ge=0, le=MAX_PAUSE_S, allow_inf_nan=False)]


class StageRules(Record):
    """How long a stage may take, and how often it is run again after an error that passes: with pauses that double
    from the first of `backoff_s` to the second."""

    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    retries: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = 0
    backoff_s: tuple[PauseSeconds, PauseSeconds] = (1, 60)

    def pause_s(self, tries: int) -> float:
        """After so many that have failed."""
        first, most = self.backoff_s
        return min(most, first * 2.0 ** (tries - 1))


class KnownPipeline(Stages):
    """Its stages, the rules of those that have any, its version, and the JSON Schema of its input where it has one."""

    version: str = ""
    input_schema: dict[str, Any] | None = None
    rules: Mapping[str, StageRules] = {}

    def rules_of(self, stage: str) -> StageRules:
        return self.rules.get(stage, PLAIN)


PLAIN: Final = StageRules()
