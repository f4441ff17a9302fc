"""One request until there is an answer: when it is sent again, how long after, and when that ends. Pure."""

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from headgate.errors import HeadgateError, NoSlot, NotHeadgate, ServerFault, TryLater, Unreachable, fault_of
from headgate.exchange import CATCHING_UP, Answer, NoAnswer, Patience, Pause, Request, Script, sent, terms

T = TypeVar("T")


def answered(request: Request) -> Script[Answer]:
    """A success; anything else is an error of the tree."""
    known = yield from terms()
    ends_s = known.now_s() + known.patience.within_s
    for number in range(known.patience.tries):
        outcome = yield from sent(request)
        fault = fault_of(outcome)
        if fault is None:
            assert not isinstance(outcome, NoAnswer)
            if how_far := outcome.headers.get(CATCHING_UP):
                known.catching_up(how_far)
            return outcome
        pause_s = pause_after(fault, request, number, patience=known.patience)
        if pause_s is None or number + 1 == known.patience.tries or known.now_s() + pause_s > ends_s:
            raise fault
        yield Pause(pause_s)
    raise AssertionError("the last try returns or raises")


def pause_after(fault: HeadgateError, request: Request, number: int, *, patience: Patience) -> float | None:
    """How long before the next try; null where there is none. What a limit refused was not carried out; a gateway that
    got no answer knows no more than we would without it. Who waits for a slot waits in line."""
    if isinstance(fault, Unreachable) or (isinstance(fault, ServerFault) and fault.is_silence):
        growing = patience.pause_s * 2**number
        return min(growing, patience.longest_pause_s) if request.may_be_repeated else None
    if (
        isinstance(fault, TryLater)
        and not isinstance(fault, NoSlot)
        and (request.may_be_repeated or fault.status == 429)
    ):
        return fault.retry_after
    return None


def fetched(request: Request, shape: type[T]) -> Script[T]:
    """What the answer's JSON says, in that shape."""
    answer = yield from answered(request)
    return shaped(answer.content, shape)


def shaped(content: bytes, shape: type[T]) -> T:
    """JSON as what it should be."""
    try:
        return TypeAdapter(shape).validate_json(content)
    except ValidationError as error:
        raise NotHeadgate from error
