"""Random lives of a view: everything that services, workers, operators and time do to it, in any order.

Owns the steps. What is checked after each is said by the test that runs the machine. Limits, days, lapses and the bound
are so small that a few jobs meet all of them.
"""

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from libs.capacity.answers import Between, Deferred, Plan, Reserved
from libs.capacity.ports import View
from libs.capacity.rooms import Room
from libs.capacity.rows import FreeLease
from tests.conformance.view_log import TODAY, Details, held
from tests.conformance.view_scenario import ViewScenario

BOUND = 2
DEFAULTS = {
    "user/bootstrapper": 1,
    "user/partner": 2,
    "user/cto_scale": 3,
    "project/bootstrapper": 1,
    "project/partner": 2,
    "project/cto_scale": 3,
    "workflows": 1,
    "llm:ollama": 1,
    "group": 1,
}
BOUNDS = {
    "cap": 12,
    "user_share": 9,
    "per_day": 8,
    "horizon_days": 1,
    "passed_bound": BOUND,
    "lapse_ms": 4_000,
    "room": Room(share=1_000, crowded_at=1_000, bucket=1_500),
}
INNER = ("group:shop:db", "llm:ollama")
LIMITED = ("user:ann", "project:shop", "workflows", *INNER)
SHUT = ("llm:ollama", "llm:ollama", "user:ann", "pool:gpu")
SCOPES = ("all", "priority:high", "pool:gpu", "user:ann", "project:shop", "workflow:flow")
GO_ON = {
    "reserved": ("appear", "appear", "reserve_again"),
    "queued": ("move", "move", "reprioritize", "end", "end", "put_off", "defer"),
    "scheduled": ("release", "release", "enter", "enter", "enter", "reprioritize", "end"),
    "waiting": ("release", "release", "enter", "enter", "enter", "reprioritize", "end"),
    "running": ("start", "stage", "ask_to_cancel", "give_back", "ask_to_continue", "end", "end"),
    "awaiting_confirmation": ("confirm", "confirm", "end"),
} | dict.fromkeys(("ready", "failed", "cancelled"), ("forget", "reserve_again"))
Act = tuple[int, int, int]  # about which job, what, a detail of that

few = st.integers(0, 7)
acts = st.lists(st.tuples(few, few, few), min_size=1, max_size=3)
job_details = st.fixed_dictionaries(
    {
        "user": st.sampled_from(("ann", "ann", "bob")),
        "project": st.sampled_from(("shop", "shop", "blog")),
        "tier": st.sampled_from(("bootstrapper", "partner", "cto_scale")),
        "pool": st.sampled_from(("default", "default", "gpu")),
        "class_number": st.sampled_from((50, 50, 50, 20)),
        "workflow": st.sampled_from((None, None, None, "flow")),
        "groups": st.sampled_from(((), (), (INNER[0],), (INNER[1],), INNER, ("stage:build-deps:2",))),
        "gates": st.sampled_from(((), (), (), ("llm:ollama",))),
        "limits": st.sampled_from((None, None, {"group:shop:db": 2})),
        "input_bytes": st.sampled_from((0, 100, 100, 400)),
    }
)

# How often each kind of step comes, and what it needs to know. Rules of their own would all come equally often, and
# hypothesis would leave some out of each life: few would see a job run, and a lease taken in it, and the job end.
WEIGHTS = {
    "submit": 6,
    "plan": 6,
    "go_on": 4,
    "claim": 1,
    "pause_or_resume": 1,
    "change_a_limit": 1,
    "shut": 2,
    "publish": 1,
    "count_refused": 1,
    "beat": 2,
    "acquire": 3,
    "touch_a_lease": 2,
    "let_time_pass": 3,
}
DETAILS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "submit": {
        "details": job_details,
        "count": st.integers(1, 4),
        "how": st.sampled_from(("folded", "folded", "folded", "folded", "held", "later", "waiting", "dry")),
        "cost_ms": st.sampled_from((0, 0, 8571, 30_000)),
    },
    "plan": {
        "limit": st.sampled_from((6, 6, 2, 1)),
        "only_class": st.sampled_from((None, None, 50, 20)),
        "taken": st.sampled_from((6, 6, 1, 0)),
        "claims": st.integers(0, 2),  # not at all, all, and then only the first is dispatched
        "acts": acts,
    },
    "go_on": {"acts": acts},
    "claim": {"which": few, "how": st.sampled_from(("claim", "claim", "drop", "behind"))},
    "pause_or_resume": {"scope": st.sampled_from(SCOPES), "again": st.booleans()},
    "change_a_limit": {"group": st.sampled_from((*LIMITED, *DEFAULTS)), "limit": st.integers(-1, 3)},
    "shut": {"group": st.sampled_from(SHUT), "for_ms": st.sampled_from((0, 2_000, 9_000, 40_000))},
    "count_refused": {"reason": st.sampled_from(("busy", "too-fast"))},
    "publish": {"name": st.sampled_from(("forecast", "analytics")), "text": st.sampled_from(("", "{}", "ü"))},
    "beat": {
        "worker": st.sampled_from((("w1", "default"), ("w1", "default"), ("w2", "gpu"), ("w3", "gpu"))),
        "slots": st.integers(0, 3),
        "draining": st.sampled_from((False, False, False, True)),
        "silent": st.sets(few, max_size=2),
        "forgotten": st.sets(few, max_size=2),
    },
    "acquire": {
        "which": few,
        "groups": st.sampled_from(((INNER[0],), (INNER[1],), INNER, INNER[::-1], ("workflows", *INNER), ("pool:gpu",))),
        "wait_ms": st.sampled_from((0, 5_000, 50_000)),
        "ttl_ms": st.sampled_from((3_000, 30_000)),
    },
    "touch_a_lease": {
        "which": few,
        "how": st.sampled_from(("acquire", "give_up", "force")),
        "detail": st.integers(0, 1),
    },
    "let_time_pass": {
        "what": st.sampled_from(("wait",) * 3 + ("sweep",) * 5 + ("prolong", "rebuild")),
        "by_ms": st.sampled_from((1, 1, 2_000, 2_000, 5_000, 40_000)),
        "detail": st.integers(0, 3),
    },
}
steps = st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)]).flatmap(
    lambda name: st.tuples(st.just(name), st.fixed_dictionaries(DETAILS[name]))
)


class ViewMachine(RuleBasedStateMachine):
    """Steps over one view. `make` gives it, `run` waits for an answer, `planned` hears of every plan."""

    def make(self) -> View:
        raise NotImplementedError

    def run(self, asked: Coroutine[Any, Any, Any]) -> Any:
        raise NotImplementedError

    def planned(self, plan: Plan, limit: int, only_class: int | None) -> None:
        """Nothing more to check of a plan, unless a machine says so."""

    @initialize(slots=st.integers(1, 4))
    def open(self, slots: int) -> None:
        self.world = ViewScenario(self.make())
        self.world.orders.defaults = dict(DEFAULTS)
        self.reserved: dict[str, tuple[Reserved | Deferred, Details]] = {}
        self.released: dict[str, tuple[Reserved, int]] = {}  # and what the log knew of the job then
        self.leases: dict[str, tuple[str | None, tuple[str, ...]]] = {}
        self.names = 0
        self.run(self.world.open())
        self.run(self.world.worker("w1", slots=slots))
        self.run(self.world.worker("w2", pool="gpu", slots=2))

    @rule(step=steps)
    def happens(self, *, step: tuple[str, Details]) -> None:
        name, details = step
        getattr(self, name)(**details)

    # ── jobs ──────────────────────────────────────────────────────────────────

    def submit(self, *, details: Details, count: int, how: str, cost_ms: int) -> None:
        for _ in range(count):
            job = self._name("j")
            if how == "waiting":
                self.run(self.world.wait(job, **details))
                continue
            run_at_ms = self.world.now_ms + 1 if how == "later" else None
            asked = {"run_at_ms": run_at_ms, "dry": how == "dry", "cost_ms": cost_ms}
            answer = self.run(self.world.reserve(job, **asked, **BOUNDS, **details))
            if isinstance(answer, Reserved | Deferred) and how != "dry":
                self.reserved[job] = (answer, details)
                if how != "held":
                    self.appear(job)

    def plan(self, *, limit: int, only_class: int | None, taken: int, claims: int, acts: list[Act]) -> None:
        plan = self.run(self.world.look(limit, only_class=only_class))
        self.planned(plan, limit, only_class)
        picks = [pick.job for pick in plan.picks[:taken]]
        claimed = self.run(self.world.claim(*picks, lapse_ms=4_000)) if claims else None
        held = picks if claimed is None else [job for job in picks if self.world.claim_of(job).holder in claimed.held]
        self.run(self.world.dispatch(*held[: len(held) if claims < 2 else 1]))
        self.go_on(acts=acts)

    def claim(self, *, which: int, how: str) -> None:
        """Of some jobs, whatever has become of their claims before."""
        jobs = [job for job, row in self.world.rows.items() if row.place is not None][-1 - which :]
        names = tuple(self.world.claim_of(job).holder for job in jobs)
        match how:
            case "claim":
                self.run(self.world.claim(*jobs, lapse_ms=4_000))
            case "drop":
                self.run(self.world.claim(drop=names))
            case _:
                self.run(self.world.claim(*jobs, applied=self.world.seq - 1))

    def go_on(self, *, acts: list[Act]) -> None:
        """Something legal happens to some jobs."""
        for which, how, detail in acts:
            jobs = [*self.world.rows, *self.reserved]
            if jobs:
                job = jobs[-1 - which % len(jobs)]
                status = self.world.rows[job].status if job in self.world.rows else "reserved"
                ways = GO_ON.get(status, GO_ON["running"])
                getattr(self, ways[how % len(ways)])(job, detail)

    def appear(self, job: str, detail: int = 0) -> None:
        answer, details = self.reserved.pop(job)
        if isinstance(answer, Reserved):
            self.run(self.world.appear(job, answer, **details))
        else:
            self.run(self.world.schedule(job, day=answer.day, release_ms=self.world.now_ms + 3_000, **details))

    def reserve_again(self, job: str, detail: int) -> None:
        _, details = self.reserved.get(job, (None, {}))
        self.run(self.world.reserve(job, **BOUNDS, **details))

    def release(self, job: str, detail: int) -> None:
        answer = self.run(self.world.release(job, cap=3 if detail == 0 else BOUNDS["cap"], bound=BOUND))
        if isinstance(answer, Reserved):
            self.released[job] = (answer, self.world.rows[job].seq)

    def enter(self, job: str, detail: int) -> None:
        """By the place it was given, unless it has changed meanwhile: then the log would refuse the event."""
        answer, seq = self.released.pop(job, (None, 0))
        if answer is not None and seq == self.world.rows[job].seq:
            self.run(self.world.enter(job, answer))

    def move(self, job: str, detail: int) -> None:
        others = [other for other, row in self.world.rows.items() if row.place is not None and other != job]
        if not others:
            return
        side = "after" if detail % 2 else "before"
        answer = self.run(self.world.view.between(job, **{side: others[detail % len(others)]}))
        if isinstance(answer, Between):
            self.run(self.world.move(job, answer.place, class_number=answer.class_number))

    def reprioritize(self, job: str, detail: int) -> None:
        self.run(self.world.fold(replace(self.world.rows[job], class_number=(10, 20, 50)[detail % 3])))

    def put_off(self, job: str, detail: int) -> None:
        """A job that slipped past the daily cap. What is held for it may have lapsed before."""
        self.run(self.world.put_off(job, Deferred(TODAY + 1)))

    def defer(self, job: str, detail: int) -> None:
        answer = self.run(self.world.defer(job, per_day=2, horizon_days=detail, lapse_ms=4_000))
        if isinstance(answer, Deferred) and detail % 2:
            self.run(self.world.put_off(job, answer))

    def end(self, job: str, detail: int) -> None:
        self.run(self.world.finish(job, ("ready", "failed", "cancelled")[detail % 3], refund=detail > 3))

    def forget(self, job: str, detail: int) -> None:
        self.run(self.world.forget(job))
        del self.world.rows[job]

    def start(self, job: str, detail: int) -> None:
        self.run(self.world.start(job))

    def stage(self, job: str, detail: int) -> None:
        self.run(self.world.stage(job, "code"))

    def ask_to_cancel(self, job: str, detail: int) -> None:
        self.run(self.world.ask_to_cancel(job))

    def give_back(self, job: str, detail: int) -> None:
        self.run(self.world.give_back(job, gates=SHUT[:1] if detail % 2 else ()))

    def ask_to_continue(self, job: str, detail: int) -> None:
        self.run(self.world.ask_to_continue(job))

    def confirm(self, job: str, detail: int) -> None:
        self.run(self.world.confirm(job))

    # ── operators ─────────────────────────────────────────────────────────────

    def pause_or_resume(self, *, scope: str, again: bool) -> None:
        paused = [*self.world.orders.pauses]
        if paused and not again:
            self.run(self.world.resume(scope if scope in paused else paused[0]))
        else:
            self.run(self.world.pause(scope))

    def change_a_limit(self, *, group: str, limit: int) -> None:
        if limit < 0:
            self.run(self.world.unset_limit(group))
        elif group in LIMITED:
            self.run(self.world.set_limit(group, limit))
        else:
            self.run(self.world.configure({**DEFAULTS, group: limit}))

    def shut(self, *, group: str, for_ms: int) -> None:
        self.run(self.world.shut(group, for_ms))

    def count_refused(self, *, reason: str) -> None:
        self.run(self.world.view.count_refused(reason, now_ms=self.world.now_ms))

    def publish(self, *, name: str, text: str) -> None:
        self.run(self.world.view.publish(name, text))

    # ── workers, leases, time ─────────────────────────────────────────────────

    def beat(
        self, *, worker: tuple[str, str], slots: int, draining: bool, silent: set[int], forgotten: set[int]
    ) -> None:
        name, pool = worker
        holders = [row.holder or "" for row in self.world.rows.values() if row.holder] + ["gone:1"]
        inner = [held(lease, *groups, owner=owner) for lease, (owner, groups) in self.leases.items() if owner]
        heard = {
            "holders": tuple(holder for index, holder in enumerate(holders) if index not in silent),
            "leases": tuple(lease for index, lease in enumerate(inner) if index not in forgotten),
            "ttl_ms": 30_000,
        }
        self.run(self.world.worker(name, pool=pool, slots=slots, draining=draining, **heard))

    def acquire(self, *, which: int, groups: tuple[str, ...], wait_ms: int, ttl_ms: int) -> None:
        holders = [row.holder for row in self.world.rows.values() if row.holder] or ["gone:1"]
        owner = None if which == 0 else holders[which % len(holders)]
        lease = self._name("l")
        self.leases[lease] = (owner, groups)
        self.run(self.world.acquire(lease, *groups, owner=owner, wait_ms=wait_ms, ttl_ms=ttl_ms))

    def touch_a_lease(self, *, which: int, how: str, detail: int) -> None:
        """Somebody says a word about a lease that was asked for."""
        if not self.leases:
            return
        lease = list(self.leases)[-1 - which % len(self.leases)]
        owner, groups = self.leases[lease]
        match how:
            case "acquire":
                self.run(self.world.acquire(lease, *groups, owner=owner, wait_ms=5_000 * detail))
            case "give_up":
                del self.leases[lease]
                self.run(self.world.view.give_up(lease, now_ms=self.world.now_ms))
            case _:
                self.run(self.world.fold(order=FreeLease(INNER[detail], lease)))

    def let_time_pass(self, *, what: str, by_ms: int, detail: int) -> None:
        self.world.later(by_ms)
        match what:
            case "sweep":
                self._sweep()
            case "prolong":
                self.run(self.world.view.prolong(by_ms))
            case "rebuild":
                self._rebuild(quarantine_ms=10_000 * (detail // 2), backwards=detail % 2 == 1)
            case _:
                pass

    def _sweep(self) -> None:
        swept = self.run(self.world.view.sweep(now_ms=self.world.now_ms))
        for job in swept.lapsed:
            self.reserved.pop(job, None)
            self.released.pop(job, None)

    def _rebuild(self, *, quarantine_ms: int, backwards: bool) -> None:
        """All that is not in the log is lost: reservations, leases inside jobs, workers."""
        self.reserved.clear()
        self.released.clear()
        seeds = self.world.seeds()
        seeds = seeds[::-1] if backwards else seeds
        self.run(self.world.open(seeds=seeds, generation=self._name("generation-"), quarantine_ms=quarantine_ms))
        self.run(self.world.worker("w1", slots=2))

    def _name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"
