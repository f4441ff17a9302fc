"""The names of the view's keys: the only place that has any, for Python and Lua alike.

Owns what each key is called, its type, what it holds, who writes it and when it goes. All keys of a shard stand under
one hash tag, so a script may touch any of them on a cluster too. All but `view`, `lead` and the tickets belong to a
generation. None of those expires by itself: a generation goes as a whole, when a newer one has begun. Refuses to read
or write.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from libs.capacity.errors import ViewMisused

Kind = Literal["HASH", "LIST", "SET", "STRING", "ZSET"]

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_PARAMETER: Final = re.compile(r"<(\w+)>")


@dataclass(frozen=True, slots=True)
class Key:
    """One kind of key. `pattern` follows `{hg:<shard>}:<generation>:`; its first word is the name Lua knows it by."""

    pattern: str
    type: Kind
    holds: str
    owner: str  # the verbs that write it
    goes: str  # what removes it before its generation goes

    @property
    def name(self) -> str:
        return self.pattern.partition(":")[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(_PARAMETER.findall(self.pattern))


# Those without a generation: they stand right behind `{hg:<shard>}:`.
VIEW: Final = Key(
    "view",
    "HASH",
    "epoch, generation, applied; open (1: decisions may be made); arrivals, tickets: the last ones given; "
    "quarantine_until (ms); untold (1: some grants are kept); shut (1: some group is); "
    "prolonged: the last call of that verb",
    "begin, open, fold, reserve, release, acquire, shut, prolong; the end of the quarantine or of what is shut",
    "loss of the data",
)
LEAD: Final = Key("lead", "STRING", "the scheduler that leads", "hold_lead, drop_lead", "its own expiry")
TICKET: Final = Key("ticket:<digest>", "STRING", "who may open a stream", "keep_ticket", "take_ticket; its own expiry")
TICKETS: Final = Key("tickets:<user>", "ZSET", "tickets → until when they are good", "keep_ticket", "its own expiry")

# fmt: off - one key, one line where it fits
KEYS: Final = (
    # ── jobs and their order; a score is class × 2^46 + place ─────────────────
    Key(
        "job:<id>",
        "HASH",
        "a row: shape, status, seq, cancelling, worker, doc; spot: queued, held; boost, passed, reservation, claim",
        "fold, seed, reserve, release, defer, claim, sweep",
        "fold, long after the end; lapse without a row",
    ),
    Key("queue", "ZSET", "every queued or reserved job → score", "fold, seed, reserve, release, sweep", "no member"),
    Key("line:<pool>", "ZSET", "the unpaused ones of a pool → score", "as queue", "no member"),
    Key("queued", "HASH", "tier → queued jobs of it, without reserved ones", "fold, seed", "no field"),
    Key("members:<name>", "ZSET", "entries that name a scope, a group or a gate → score", "as queue", "no member"),
    Key("owned:<user>", "ZSET", "a user's jobs → seq of their first event", "fold, seed", "no member"),
    Key("passing", "HASH", "job → reservations that stand and passed it", "reserve, release, sweep, fold", "no field"),
    Key("lapses", "ZSET", "jobs with a reservation → its lapse", "reserve, release, defer, fold", "no member; sweep"),
    Key("spent", "ZSET", "users → up to when their time is spent on reservations", "reserve", "sweep, once past"),
    Key("room", "ZSET", "jobs that wait for a free place → since when", "release, fold", "no member"),
    Key("quota:<user>:<day>", "SET", "jobs that take a place of it", "reserve, defer, sweep, fold, seed", "no member"),
    Key("used:<day>", "HASH", "user → places of it that jobs took which are gone", "fold, begin", "sweep, a day later"),
    Key("days", "ZSET", "days with such places, each its own score", "fold, begin", "sweep"),
    Key(
        "inputs",
        "HASH",
        "job, or <user>:<hour> of jobs gone → JSON of user, bytes, digest, ended",
        "reserve, fold, seed",
        "sweep",
    ),
    Key("stored", "HASH", "user → bytes of their inputs; under the empty name, of all", "as inputs", "no byte"),
    Key("input_ends", "ZSET", "job → when its input, or its reservation, is over", "as inputs", "no member"),
    Key("leaving:<user>", "ZSET", "ended jobs → when their input goes", "fold, seed", "no member"),
    Key("timers", "ZSET", "<kind>:<job> → due, in ms", "fold, seed", "no member"),
    Key("paused", "HASH", "scope → JSON of by, reason, since_ms", "begin, fold", "no field"),
    # ── slots ─────────────────────────────────────────────────────────────────
    Key(
        "held:<group>",
        "ZSET",
        "holder → when its slot ends; a job's own: +inf",
        "fold, seed, claim, as lease",
        "no member",
    ),
    Key("leases", "ZSET", "holders that run → when their lease ends", "fold, seed, beat, prolong", "no member"),
    Key("claims", "ZSET", "jobs with a claim → when it lapses", "claim, fold", "no member; sweep"),
    Key("unheard", "SET", "holders not named since the view opened", "open, beat, fold", "end of the quarantine"),
    Key(
        "lease:<id>",
        "HASH",
        "of a lease inside a job or outside any: groups (JSON), owner, ttl, since, user (outside any)",
        "acquire, beat; whatever frees a slot",
        "its end",
    ),
    Key("ends", "ZSET", "the leases of `lease:<id>` → when they end", "as lease, prolong", "no member"),
    Key("inner:<job>", "SET", "the leases taken inside a job", "as lease", "no member"),
    Key("leased:<user>", "SET", "what they hold and wait for outside any job", "as lease, as waiters", "no member"),
    Key("freed:<job>", "SET", "leases inside it that an operator freed", "fold, acquire", "the holder's end"),
    Key("given_up", "ZSET", "leases → until when no stage holds them again", "give_up", "sweep, once past"),
    Key("waiters:<group>", "ZSET", "who waits for a slot → ticket", "acquire; whatever frees a slot", "no member"),
    Key("awaited", "ZSET", "groups with waiters, all of score 0: in name order", "as waiters", "no member"),
    Key(
        "waiter:<id>",
        "HASH",
        "groups (JSON), owner, reply, ttl, ticket, at (the group it waits for), user",
        "as waiters",
        "grant, deadline, the owner's end",
    ),
    Key("deadlines", "ZSET", "who waits → until when", "as waiters, prolong", "no member"),
    Key("asking:<job>", "SET", "who waits inside a job", "as waiters", "no member"),
    Key(
        "untold", "LIST", "grants that no answer could carry, as JSON", "acquire, claim, configure", "the next that can"
    ),
    Key("shut", "ZSET", "groups of which no slot is given → until when", "shut, open", "the catch-up after that"),
    # ── limits and workers ────────────────────────────────────────────────────
    Key("limits", "HASH", "group → limit, of operators, first submissions and leases", "begin, fold", "never"),
    Key("defaults", "HASH", "group, user/<tier>, project/<tier>, group/<name> → limit", "begin, configure", "never"),
    Key("tiers", "HASH", "user → tier of their newest submission", "begin, fold, seed", "their last job"),
    Key("workers", "ZSET", "live workers → when they are given up", "beat, sweep, prolong", "no member"),
    Key("worker:<id>", "HASH", "pool, slots, draining, heard (ms), holders (JSON)", "beat, sweep", "silence"),
    Key("slots", "HASH", "pool → slots of its workers that do not drain", "beat, sweep", "no field"),
    # ── what readers are shown ────────────────────────────────────────────────
    Key("refused", "HASH", "<start of hour, ms>:<reason> → submissions", "count_refused, sweep", "sweep, after a day"),
    Key("published", "HASH", "name → text that the leader has worked out", "publish", "never"),
)
# fmt: on

_CALLS: Final = frozenset((key.name, bool(key.parameters)) for key in (*KEYS, TICKET, TICKETS))


def view_key(shard: str) -> str:
    """What every script about the view is given as KEYS[1]."""
    return _fixed_key(shard, VIEW)


def lead_key(shard: str) -> str:
    """Who leads the shard."""
    return _fixed_key(shard, LEAD)


def ticket_key(shard: str, digest: str) -> str:
    """Where a ticket is kept: under the digest of what its bearer shows, so that a reader of keys can use none."""
    check_digest(digest)
    return _fixed_key(shard, TICKET).replace("<digest>", digest)


def check_digest(digest: str) -> None:
    """What a ticket is kept under."""
    if not _DIGEST.fullmatch(digest):
        raise ViewMisused("a ticket is kept under its SHA-256: use 64 hexadecimal digits")


def every_key(shard: str) -> str:
    """A pattern for SCAN and for access rules."""
    return view_key(shard).removesuffix(VIEW.name) + "*"


def generation_of(key: str) -> str | None:
    """Whose key it is; null for those without a generation."""
    _, generation, *name = key.split(":", 3)[1:]
    return generation if name and generation not in (TICKET.name, TICKETS.name) else None


def check_names(used: Iterable[tuple[str, bool]]) -> None:
    """What Lua calls a key must be declared here; with the name goes whether something follows it."""
    unknown = {name for name, follows in used if (name, follows) not in _CALLS}
    if unknown:
        raise ViewMisused(f"no such key, or not used like this: {', '.join(sorted(unknown))}; see keys.py")


def _fixed_key(shard: str, key: Key) -> str:
    if not _TOKEN.fullmatch(shard):
        raise ViewMisused(f"shard {shard!r} is no token: use 1 to 64 of A-Z a-z 0-9 _ -")
    return f"{{hg:{shard}}}:{key.pattern}"
