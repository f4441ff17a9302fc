"""Under which label a group is counted: policy names those that have one, whatever tenants call theirs.

    llm:openai, pool:gpu, workflows     by their names
    group:shop:db                       by its name where `concurrency.limits` has that, by its last part where it has
                                        `db`; else `other`, which all such groups are summed under, also a tenant's
                                        own `workflows`: that name is the group over all jobs
    stage:build:code:3                  by the stage, whatever its limit is now
    user:ann, project:shop              not at all

So there are never more labels than lines in the policy, pools, and stages of installed pipelines.
"""

from typing import Final

from libs.capacity.scopes import OWNERS
from libs.policy import Policy

POOL: Final = "pool:"
STAGE: Final = "stage:"
LLM: Final = "llm:"
ALL_PROVIDERS: Final = f"{LLM}global"
WORKFLOWS: Final = "workflows"
OTHER: Final = "other"


class GroupLabels:
    """Those that the policy in force names: a reload may name others."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._named_by: tuple[object, ...] = ()
        self._names = frozenset[str]()

    @property
    def names(self) -> frozenset[str]:
        sections = (self._policy.concurrency, self._policy.providers)
        if sections != self._named_by:
            providers = (f"{LLM}{name}" for name in self._policy.providers.limits)
            self._names = frozenset((*self._policy.concurrency.limits, *providers, ALL_PROVIDERS))
            self._named_by = sections
        return self._names

    def has(self, label: str) -> bool:
        """Whether any group can be counted under it now."""
        return label in self.names or label == OTHER or label.startswith((POOL, STAGE))

    def of_group(self, group: str) -> str | None:
        """Null for a group of one user or one project."""
        if group.startswith(OWNERS):
            return None
        if group in self.names or group.startswith(POOL):
            return group
        if group.startswith(STAGE):
            return group.rpartition(":")[0]
        last = group.rpartition(":")[2]
        return last if group.startswith("group:") and last in self.names - {WORKFLOWS} else OTHER

    def of_provider(self, group: str) -> str | None:
        """The provider that the group is of, where policy has it; null for the group over all of them."""
        named = group.startswith(LLM) and group in self.names and group != ALL_PROVIDERS
        return group.removeprefix(LLM) if named else None
