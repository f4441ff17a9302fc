"""What a seed says (`drawing`): who asks for what and when, and what goes wrong. Data alone, so that less can be tried.

A fault ends before `PEACE_S`; from then on nothing more goes wrong, and what was begun has to come to its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headgate_contracts import Priority, Tier
from libs.policy import Policy
from tests.simulation.audience import NOTIFIERS, Reader
from tests.simulation.user_leases import UserLease
from tests.simulation.visits import Visit

JOBS: Final = 15
BUSY_S: Final = 26.0
PEACE_S: Final = 50.0
WAITS_S: Final = 5.0  # for how long somebody lies in wait for a process
DRAINED_S: Final = 9.0  # a worker that is told to stop, until the next one is
USERS: Final = {"ann": Tier.BOOTSTRAPPER, "bob": Tier.PARTNER, "eve": Tier.CTO_SCALE}
PROJECTS: Final = ("shop", "site")
GROUPS: Final = ("db", "gpu")
PROVIDER: Final = "ollama"
HOOK_HOST: Final = "hooks.example.com"
ADMISSIONS: Final = ("admission-1", "admission-2")
SCHEDULERS: Final = ("scheduler-1", "scheduler-2")
WORKERS: Final = ("worker-1", "worker-2")
SERVICES: Final = (*ADMISSIONS, *SCHEDULERS, *WORKERS)
SLOTS: Final = 3  # of each worker, where there are not fewer
SCOPES: Final = ("all", "user:bob", "project:shop", "priority:normal", "pool:default")
NUMBERS: Final[dict[str, dict[str, Any]]] = {
    "queue": {"cap": 12, "user_share": 8, "release_spread_s": 20},
    "order": {"max_passed": 3, "ageing_after_s": 25, "starved_after_s": 15, "starved_every": 3},
    "providers": {"limits": {PROVIDER: 1}, "give_back_after_s": 4},
    "projects": {"shared": True},
    "concurrency": {"default_lease_duration_secs": 20},
    "tiers": {
        "bootstrapper": {"jobs_per_day": 4, "cycles_per_batch": 1, "hard_cap": 3},
        "partner": {"jobs_per_day": 6, "boost": 2, "cycles_per_batch": 2},
        "cto_scale": {"jobs_per_day": 20, "boost": 4},
    },
    "confirmation": {"reminders_s": [5, 10], "timeout_s": 16},
    "stream": {"slow_after_s": 4, "comment_s": 3},
    "webhooks": {"hosts": [HOOK_HOST], "timeout_s": 2, "first_pause_s": 1, "tries": 12},
}
POLICY: Final = Policy.model_validate(NUMBERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A job, or a workflow of `phases`, and what its client does besides."""

    name: str
    at_s: float
    user: str
    project: str
    priority: Priority
    phases: int = 0
    pipeline: str = "build"
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    group: str | None = None
    limit: int | None = None
    run_timeout_s: int | None = None
    queue_ttl_s: int | None = None
    run_after_s: float | None = None
    leaves: bool = False  # where nobody answers it, and never asks again
    twice: bool = False  # two requests with one key, at the same moment
    key_of: str | None = None  # another user's order, whose key it uses
    other_body: bool = False  # once it is accepted, another request with its key
    notify_url: str | None = None
    cancel_on: str | None = None  # cancelled in the very moment of what comes after: `queued`, `checks`
    cancel_after_s: float | None = None
    submits_again: bool = False  # what has failed, or was cancelled
    raise_after_s: float | None = None
    answer_after_s: float = 2.0
    answers_again_s: float | None = None  # the same answer once more, as a page sends it that has lost the reply

    @property
    def key(self) -> str:
        return self.key_of or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What an operator does."""

    kind: str  # pause, limit, force, move, erase, reload
    at_s: float
    what: str = ""
    number: int = 0
    for_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong: `kind` is a method of `Faults`, to whom, and until when."""

    kind: str
    at_s: float
    for_s: float = 0.0
    who: str = "*"
    server: str = "*"
    share: float = 0.0

    def __str__(self) -> str:
        details = [self.who] if self.who != "*" else []
        details += [f"to {self.server}"] if self.server != "*" else []
        details += [f"{self.share:.2f}"] if self.share else []
        details += [f"for {self.for_s:.1f} s"] if self.for_s else []
        return " ".join([f"{self.kind:6}", *details])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a seed says, or less of it."""

    seed: int
    orders: tuple[Order, ...]
    acts: tuple[Act, ...]
    faults: tuple[Fault, ...]
    visits: tuple[Visit, ...] = ()
    leases: tuple[UserLease, ...] = ()
    readers: tuple[Reader, ...] = ()
    slots: int = SLOTS
    schedulers: tuple[str, ...] = SCHEDULERS
    is_indexed: bool = False  # a replica of admission keeps an index, and some user's content is erased
    has_habits: bool = False  # forecasts are made, and what jobs leave behind is deleted
    before_midnight_s: float  # when the day changes

    @property
    def size(self) -> int:
        kinds = (self.orders, self.acts, self.faults, self.visits, self.leases, self.readers)
        return sum(map(len, kinds))

    @property
    def faults_of_jobs(self) -> tuple[Fault, ...]:
        """Without those that only readers notice."""
        return tuple(fault for fault in self.faults if fault.who not in NOTIFIERS)

    @property
    def is_reloaded(self) -> bool:
        """Whether the policy is another one at some time."""
        return any(act.kind == "reload" for act in self.acts)

    @property
    def services(self) -> tuple[str, ...]:
        """All that run."""
        own = *ADMISSIONS, *self.schedulers, *WORKERS
        return (*own, *NOTIFIERS) if self.readers else own
