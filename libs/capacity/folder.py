"""Keeps the view equal to a fold of the log.

    log ──pages──► take ──► ledger, engine          every replica, always
                     └────► tail ──► bring ──► view     the leader only

`take` advances the ledger, and with its changes the engine that plans, and remembers them as a tail; `bring` folds the
tail into the view. A policy by which rows say something else ends the tail: each row is made again. A replica that
stands by only cuts its tail to where the view already is, and brings it the moment it leads. Where the view is missing,
of another log, further back than this replica saw it, or beyond the reach of the tail, `bring` opens a new generation
from the ledger. Refuses to decide who leads: its caller calls `bring` only while it does.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

from libs.capacity.answers import Folded, Grant, StaleView, ViewMark
from libs.capacity.engine import Engine
from libs.capacity.errors import ViewLost
from libs.capacity.ledger import Ledger, LogRecord
from libs.capacity.ports import View
from libs.capacity.projection import said_in_rows
from libs.capacity.rows import Change

FOLD_PIPELINE = 500  # changes in one round trip: about 10 ms of the view's time, so that others get their turn
TAIL_MAX = 50_000  # a rebuild is cheaper than folding more than this one by one


class Folder:
    """One replica's end of the fold."""

    def __init__(
        self,
        view: View,
        ledger: Ledger,
        *,
        epoch: str,
        lease_ms: int,
        new_generation: Callable[[], str],
        engine: Engine | None = None,
        tail_max: int = TAIL_MAX,
    ) -> None:
        self.ledger = ledger
        self._engine = engine
        self.rebuilt = 0  # times that a generation was begun here
        self._view = view
        self._epoch = epoch
        self._lease_ms = lease_ms
        self._new_generation = new_generation
        self._tail_max = tail_max
        self._tail: deque[Change] = deque()
        self._tail_from = ledger.applied
        self._seen: ViewMark | None = None

    def take(self, records: Iterable[LogRecord]) -> list[Change]:
        """Advance the ledger. Records that it holds already are passed over."""
        policy_seq, said = self.ledger.policy_seq, said_in_rows(self.ledger.policy)
        changes = [self.ledger.apply(record) for record in records if record.seq > self.ledger.applied]
        is_reloaded = self.ledger.policy_seq != policy_seq
        if self._engine is not None and is_reloaded:
            self._engine.renew(self.ledger)
        elif self._engine is not None:
            self._engine.take(changes)
        self._tail.extend(changes)
        if is_reloaded and said_in_rows(self.ledger.policy) != said:
            self._cut(self.ledger.applied)
        if len(self._tail) > self._tail_max:
            self._cut(self.ledger.applied)
        return changes

    async def stand_by(self) -> ViewMark | None:
        """Cut the tail to where the view is, which is told: what the leader has folded need not be remembered."""
        mark = await self._view.mark()
        if mark is not None and mark.epoch == self._epoch:
            self._cut(min(mark.applied, self.ledger.applied))
            self._seen = mark
        return mark

    async def update_view(self) -> tuple[Grant, ...]:
        """Make the view equal to the ledger; the waiters that got a slot by it. Where there is something to fold, it is
        asked only after a refusal where the view stands: nothing is folded into one that does not stand where it was
        seen last."""
        grants, stands = list[Grant](), self._goes_on_from_seen
        while True:
            if not stands and not await self._find():
                await self.rebuild()
                return tuple(grants)
            if not self._tail:
                return tuple(grants)
            try:
                answer = await self._fold_tail()
            except ViewLost:
                self._seen, stands = None, False
            else:
                grants += answer.grants
                stands = not isinstance(answer, StaleView)

    async def _find(self) -> bool:
        """Whether the tail leads on from where the view stands, which is known then."""
        mark = await self._view.mark()
        if mark is None or not self._continues(mark):
            return False
        self._cut(min(mark.applied, self.ledger.applied))
        self._seen = mark
        return True

    async def rebuild(self) -> None:
        """Open a new generation of the view from the ledger. Decisions wait meanwhile, for seconds."""
        generation, ledger = self._new_generation(), self.ledger
        self.rebuilt += 1
        await self._view.begin(self._epoch, generation=generation, applied=ledger.applied, standing=ledger.standing())
        seeds = ledger.seeds()  # made as they are needed: all at once would keep heartbeats waiting
        while chunk := list(islice(seeds, FOLD_PIPELINE)):
            await self._view.seed(chunk, generation=generation, lease_ms=self._lease_ms)
            await asyncio.sleep(0)
        leased, leased_ms = tuple(ledger.orders.leased), ledger.policy.concurrency.longest_lease_ms
        await self._view.open(generation=generation, quarantine_ms=self._lease_ms, leased=leased, leased_ms=leased_ms)
        self._seen = ViewMark(self._epoch, generation, ledger.applied, open=True)
        self._cut(ledger.applied)

    async def _fold_tail(self) -> Folded | StaleView:
        chunk = [self._tail[index] for index in range(min(FOLD_PIPELINE, len(self._tail)))]
        answer = await self._view.fold(chunk, lease_ms=self._lease_ms)
        if not isinstance(answer, StaleView):
            self._cut(chunk[-1].seq)
            self._seen = self._seen and replace(self._seen, applied=answer.applied)
        return answer

    @property
    def _goes_on_from_seen(self) -> bool:
        """Whether the tail does, record by record."""
        return self._seen is not None and bool(self._tail) and self._tail[0].prev == self._seen.applied

    def _continues(self, mark: ViewMark) -> bool:
        """Whether the tail leads on from where the view stands."""
        seen = self._seen
        went_back = seen is not None and seen.generation == mark.generation and mark.applied < seen.applied
        return mark.open and mark.epoch == self._epoch and mark.applied >= self._tail_from and not went_back

    def _cut(self, applied: int) -> None:
        while self._tail and self._tail[0].seq <= applied:
            self._tail.popleft()
        self._tail_from = max(self._tail_from, applied)
