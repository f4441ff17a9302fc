"""What the scripts answer to what decides, as values; `store_readings` has what they answer to readers.

Each function reads the GIVES of one verb's header; flags are 0 and 1.
"""

from collections.abc import Sequence

from libs.capacity.answers import (
    Between,
    BetweenAnswer,
    Busy,
    BytesFull,
    ClaimAnswer,
    DeferAnswer,
    Deferred,
    Folded,
    Full,
    Grant,
    Granted,
    HeartbeatAnswer,
    HorizonFull,
    Known,
    LeaseAnswer,
    LeaseRequest,
    LeasesFull,
    NoGap,
    NoRoom,
    NotQueued,
    NotReleasable,
    NotYours,
    Other,
    ReleaseAnswer,
    ReserveAnswer,
    Reserved,
    ShareFull,
    StaleView,
    Swept,
    TooFast,
    Unclaimed,
    ViewMark,
    WaitsInLine,
)
from libs.capacity.errors import ViewMisused
from libs.capacity.scripts import Reply


def mark_of(epoch: str | None, generation: str, applied: str, is_open: str) -> ViewMark | None:
    return None if epoch is None else ViewMark(epoch, generation, int(applied), is_open == "1")


def folded(replies: Sequence[Reply], *, last_seq: int) -> Folded | StaleView:
    """Several changes were tried in order: the view stands where the last answer says."""
    applied: int = replies[-1][0]
    told = tuple(grant for _, each in replies for grant in grants(each))
    return Folded(applied, told) if applied >= last_seq else StaleView(applied, told)


def grants(reply: Reply) -> tuple[Grant, ...]:
    return tuple(Grant(lease, owner or None, reply_to, ends) for lease, owner, reply_to, ends in reply)


def reserved(reply: Reply) -> ReserveAnswer:
    match reply:
        case ["reserved", arrival, place, passed, position, day]:
            return Reserved(arrival, place, tuple(passed), position, day)
        case ["deferred", day]:
            return Deferred(day)
        case ["known", status, seq]:
            return Known(status, seq)
        case ["other"]:
            return Other()
        case _:
            return _refused(reply)


def _refused(reply: Reply) -> TooFast | BytesFull | Busy | ShareFull | HorizonFull:
    match reply:
        case ["too_fast", retry_ms]:
            return TooFast(retry_ms)
        case ["bytes_full", held, most, *first]:
            return BytesFull(held, most, first[0] if first else None)
        case ["busy", queued, slots]:
            return Busy(queued, slots)
        case ["share_full", held]:
            return ShareFull(held)
        case ["horizon_full", last_day]:
            return HorizonFull(last_day)
        case _:
            raise _unknown(reply)


def released(reply: Reply, job: str) -> ReleaseAnswer:
    match reply:
        case ["reserved", arrival, place, passed, position, day]:
            return Reserved(arrival, place, tuple(passed), position, day)
        case ["no_room"]:
            return NoRoom()
        case ["not_releasable"]:
            return NotReleasable(job)
        case _:
            raise _unknown(reply)


def deferred(reply: Reply) -> DeferAnswer:
    match reply:
        case ["deferred", day]:
            return Deferred(day)
        case ["horizon_full", last_day]:
            return HorizonFull(last_day)
        case ["not_queued", job]:
            return NotQueued(job)
        case _:
            raise _unknown(reply)


def between(reply: Reply) -> BetweenAnswer:
    match reply:
        case ["between", class_number, place]:
            return Between(class_number, place)
        case ["no_gap", class_number]:
            return NoGap(class_number)
        case ["not_queued", job]:
            return NotQueued(job)
        case _:
            raise _unknown(reply)


def claimed(reply: Reply) -> ClaimAnswer:
    held, refused = reply
    return ClaimAnswer(tuple(held), tuple(Unclaimed(*each) for each in refused))


def lease(reply: Reply, request: LeaseRequest) -> LeaseAnswer:
    match reply:
        case ["granted", ends, again, *active]:
            return Granted(request.lease, ends, again == 1, tuple(zip(active[::2], active[1::2], strict=True)))
        case ["waits", group, behind, until_ms, again]:
            return WaitsInLine(request.lease, group, behind, until_ms, again == 1)
        case ["full", group, limit, active, until_ms]:
            return Full(group, limit, active, until_ms)
        case ["not_yours"]:
            return NotYours(request.owner)
        case ["leases_full", held]:
            return LeasesFull(held)
        case _:
            raise _unknown(reply)


def beat(reply: Reply, holders: Sequence[str]) -> HeartbeatAnswer:
    heard, lost, told = reply
    by_word: dict[str, list[str]] = {"kept": [], "cancel": [], "not_yours": []}
    for holder, word in zip(holders, heard, strict=True):
        by_word[word].append(holder)
    answers = {word: tuple(names) for word, names in by_word.items()}
    return HeartbeatAnswer(**answers, lost_leases=tuple(lost), grants=grants(told))


def swept(reply: Reply) -> Swept:
    told, lapsed, gone = reply
    return Swept(grants(told), tuple(lapsed), tuple(gone))


def _unknown(reply: Reply) -> ViewMisused:
    return ViewMisused(f"a script of another version answered {reply!r}: services and scripts are of one release")
