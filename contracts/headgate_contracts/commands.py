"""What services ask each other over NATS, request and reply, and what they publish to listeners. None of it is a fact.

    headgate.cmd.v1.<shard>.beat               Beat          → BeatReply
    headgate.cmd.v1.<shard>.acquire            AcquireLease  → LeaseReply
    headgate.cmd.v1.<shard>.give_up            GiveUpLease   → LeaseReply
    headgate.cmd.v1.<shard>.position           AskPosition   → PositionChanged
    headgate.cmd.v1.<shard>.shut               ShutProvider  → ProviderShut
    headgate.cmd.v1.<shard>.redeem             RedeemTicket  → TicketRedeemed
    headgate.cmd.v1.<shard>.granted.<lease>    LeaseReply, when a waiter's turn has come
    headgate.live.v1.<shard>.position.<user>.<job>   PositionChanged
    headgate.live.v1.<shard>.watching          Watching
    headgate.logs.v1.<job>                     LogLine

A lost message costs time and nothing else: beats are repeated, a lost grant comes again with the next beat, and who is
watched is said again every few seconds.
"""

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from headgate_contracts.events import GroupName
from headgate_contracts.records import OpenTier, Record, TokenId
from headgate_contracts.shown import QueuePart, WaitingOn
from headgate_contracts.tokens import JobId, Token, check_token

CMD_PREFIX: Final = "headgate.cmd.v1"
LIVE_PREFIX: Final = "headgate.live.v1"
LOGS_PREFIX: Final = "headgate.logs.v1"

Command = Literal["beat", "acquire", "give_up", "position", "shut", "redeem"]
LeaseId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
HolderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,40}:[0-9]{1,9}$")]
Milliseconds = Annotated[int, Field(ge=0)]


class NamedLease(Record):
    """A lease taken inside a job, as its worker knows it."""

    lease: LeaseId
    holder: HolderName
    groups: tuple[GroupName, ...]


class Beat(Record):
    """A worker lives: what it can run, what it runs, and what that holds.

    `stopped` are attempts that it has ended because an operator wanted their slots: said until they were given back.
    """

    worker: Token
    pool: Token
    slots: Annotated[int, Field(ge=0)]
    draining: bool = False
    holders: tuple[HolderName, ...] = ()
    leases: tuple[NamedLease, ...] = ()
    stopped: tuple[HolderName, ...] = ()


class BeatReply(Record):
    """What became of each holder: `kept` was extended, `cancel` too but should end, `not_yours` must stop at once."""

    kept: tuple[HolderName, ...] = ()
    cancel: tuple[HolderName, ...] = ()
    not_yours: tuple[HolderName, ...] = ()
    lost_leases: tuple[LeaseId, ...] = ()
    lease_s: Annotated[float, Field(gt=0)]


class AcquireLease(Record):
    """Slots of several groups, all or none. Without a holder the lease belongs to no job, but to a user.

    `waited`: the asker was told before that this lease waits, and asks what has become of it.
    `held_until_ms`: the lease is to be extended and not to be taken; it is what its holder was told last, or 0.
    """

    lease: LeaseId
    groups: Annotated[tuple[GroupName, ...], Field(min_length=1, max_length=16)]
    holder: HolderName | None = None
    ttl_ms: Milliseconds | None = None
    wait_ms: Milliseconds = 0
    waited: bool = False
    user: Token | None = None
    held_until_ms: Milliseconds | None = None


class GiveUpLease(Record):
    """The lease, or the wait for it, is over. `user`: only where it is theirs; `wait_only`: what is held is kept."""

    lease: LeaseId
    user: Token | None = None
    wait_only: bool = False


class LeaseReply(Record):
    """How a lease stands. `waiting` holds nothing; the grant comes on the lease's own subject.

    `not_yours` comes there too, under an attempt's own name: an operator wants its slots, so its worker ends it and
    says so in its heartbeats. Of a lease outside jobs it says that there is none of that name, or that it is another's.
    `refused`: nobody may ever lease `group`. The slots of `workflows`, of users, of projects and of pools are those of
    whole jobs.

    `full` with `held`: the user holds and waits for so many outside jobs, as many as one user may.

    Where `group` is that of a provider that pauses, `shut_ms` says for how long still.
    """

    lease: LeaseId
    state: Literal["granted", "waiting", "full", "not_yours", "given_up", "view_lost", "refused"]
    expires_ms: Milliseconds | None = None
    group: GroupName | None = None
    behind: int | None = None
    shut_ms: Milliseconds | None = None
    held: int | None = None


class ShutProvider(Record):
    """The provider said that it has had enough: nobody is to call it for so long."""

    provider: Token
    for_ms: Milliseconds


class ProviderShut(Record):
    """Until when nobody gets a slot of the provider; not set where that is not known."""

    provider: Token
    until: AwareDatetime | None = None


class RedeemTicket(Record):
    """Somebody opens a stream with this ticket. It is worth something once."""

    ticket: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]


class TicketRedeemed(Record):
    """Whose ticket it was and what they may see; not set where it is spent, expired or nobody's."""

    user_id: Token | None = None
    tier: OpenTier | None = None
    scopes: Annotated[tuple[str, ...], Field(max_length=16)] = ()
    expires_at: AwareDatetime | None = None
    token_id: TokenId | None = None  # of the token that it was given for: taken back, it ends with it


CHECKS_FAILED: Final = "✘ "  # begins the line of a log that says why the checks of an iteration failed


class LogLine(Record):
    """One line of a job's build log."""

    job_id: JobId
    attempt: Annotated[int, Field(ge=1)]
    stage: Token
    line: Annotated[str, StringConstraints(max_length=8192)]
    ts: AwareDatetime


class JobProgress(Record):
    """How far the stage of a running job is, by its own account. It is told while the job is in that stage."""

    job_id: JobId
    user_id: Token
    attempt: Annotated[int, Field(ge=1)]
    stage: Token
    fraction: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    message: Annotated[str, StringConstraints(max_length=200)] = ""


class AskPosition(Record):
    """Where does this job stand?"""

    job_id: JobId


class PositionChanged(Record):
    """Where a job stands now: the `queue` and `waiting_on` parts of the job as the API shows it, and its user's day."""

    job_id: JobId
    queue: QueuePart | None
    waiting_on: tuple[WaitingOn, ...] = ()
    used_today: Annotated[int, Field(ge=0)] | None = None


MOST_WATCHED: Final = 1_000  # in one message of some 30 KB; who has more sends several


class Watching(Record):
    """Somebody follows these jobs, or all of these users', by a stream of the notifier that says so: tell it how they
    stand. It holds for a while and is repeated."""

    jobs: Annotated[tuple[JobId, ...], Field(max_length=MOST_WATCHED)] = ()
    users: Annotated[tuple[Token, ...], Field(max_length=MOST_WATCHED)] = ()


def command_subject(shard: str, command: Command) -> str:
    return f"{CMD_PREFIX}.{check_token('shard', shard)}.{command}"


def granted_subject(shard: str, lease: str) -> str:
    return f"{CMD_PREFIX}.{check_token('shard', shard)}.granted.{check_token('lease', lease)}"


def position_subject(shard: str, user_id: str, job_id: str) -> str:
    tokens = (check_token("shard", shard), "position", check_token("user_id", user_id), check_token("job_id", job_id))
    return f"{LIVE_PREFIX}.{'.'.join(tokens)}"


def watching_subject(shard: str) -> str:
    return f"{LIVE_PREFIX}.{check_token('shard', shard)}.watching"


def logs_subject(job_id: str) -> str:
    return f"{LOGS_PREFIX}.{check_token('job_id', job_id)}"


def job_said_on(subject: str) -> str:
    """Whose lines are sent there."""
    return subject.removeprefix(f"{LOGS_PREFIX}.")
