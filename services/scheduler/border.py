"""Where jobs and leases want the same slot: a job that names such a group, or a gate, takes it in the view first.

    plan ──► who is about to start ──claim──► all held: they are written
      ▲                                │
      └── what was refused is learned ─┘

Owns what this replica has claimed and not yet seen in the log, so that what came to nothing is let go at once. Refuses
to choose who starts. Where the view does not answer, those that name a group wait; those that name gates alone start
where no pause was heard of.
"""

from collections.abc import Sequence
from typing import Final

from headgate_contracts import Holder, Job
from libs.capacity.answers import Claim, ClaimAnswer
from libs.capacity.engine import Engine
from libs.capacity.errors import ViewLost, ViewUnavailable
from libs.capacity.ports import View
from libs.capacity.projection import gates_of, groups_of, is_inner
from libs.policy import Policy
from services.scheduler.folding import Folding

ASK_AGAIN_MS: Final = 1000  # after a view that did not answer, or was lost: or at the next look, if that is sooner


class Border:
    """What one replica claims in the view before its jobs start."""

    def __init__(self, view: View, engine: Engine, folding: Folding, *, policy: Policy) -> None:
        self._view = view
        self._folding = folding
        self._engine = engine
        self._policy = policy
        self._pending: set[str] = set()  # holders whose claims stand, as far as is known here

    async def refused(self, jobs: Sequence[Job]) -> frozenset[str]:
        """Those of them that may not start now. The engine learns why not; all others hold what they need."""
        claims = {job.id: claim for job in jobs if (claim := claim_of(job))}
        unused = self._pending - {claim.holder for claim in claims.values()}
        if not claims and not unused:
            return frozenset()
        held = await self._claim([*claims.values()], drop=sorted(unused))
        return frozenset(job for job, claim in claims.items() if claim.holder not in held)

    def unasked(self, jobs: Sequence[Job]) -> frozenset[str]:
        """Those of them that may not start while the view cannot be asked: who names a group, or a provider that is
        known to pause."""
        claims = {job.id: claim for job in jobs if (claim := claim_of(job))}
        names = {gate for claim in claims.values() for gate in claim.gates}
        shut = {name: until_ms for name in names if (until_ms := self._engine.paused_until_ms(name))}
        for name, until_ms in shut.items():
            self._engine.learn(name, others=0, until_ms=until_ms)
        return frozenset(
            job for job, claim in claims.items() if claim.groups or not shut.keys().isdisjoint(claim.gates)
        )

    async def serve(self) -> None:
        """Jobs that wait for a slot are looked at, though none claims one: what was shut may be open again."""
        await self._view.claim((), applied=self._engine.applied, lapse_ms=self._lapse_ms)

    def settled(self) -> None:
        """What they were for is in the log, or may be: there it is told whose they are."""
        self._pending.clear()

    @property
    def _lapse_ms(self) -> int:
        return round(self._policy.submissions.reservation_s * 1000)

    async def _claim(self, claims: Sequence[Claim], *, drop: Sequence[str]) -> set[str]:
        try:
            await self._folding.over()
            claimed = await self._view.claim(claims, applied=self._engine.applied, lapse_ms=self._lapse_ms, drop=drop)
        except (ViewLost, ViewUnavailable):
            self._learn_nothing_answers(claims)
            return set()
        self._pending = set(claimed.held)
        self._learn(claimed)
        return self._pending

    def _learn(self, claimed: ClaimAnswer) -> None:
        for group, refused in {each.group: each for each in claimed.refused}.items():
            self._engine.learn(group, others=refused.others, until_ms=refused.until_ms)
            if refused.quarantined_until_ms is not None:
                self._engine.quarantine(refused.quarantined_until_ms)

    def _learn_nothing_answers(self, claims: Sequence[Claim]) -> None:
        until_ms = self._engine.now_ms + ASK_AGAIN_MS
        for name in {name for claim in claims for name in (*claim.groups, *claim.gates)}:
            self._engine.learn(name, others=0, until_ms=until_ms)


def claim_of(job: Job) -> Claim | None:
    """What its next attempt needs of the border; null: nothing."""
    groups, gates = tuple(filter(is_inner, groups_of(job))), gates_of(job)
    return Claim(str(Holder(job.id, job.attempt + 1)), groups, gates) if groups or gates else None
