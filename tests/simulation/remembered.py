"""What is computed once, and asked for again by every process that reads the log.

Two schedulers, and whoever claims or changes a job, make the same job of the same events. A job, a row and a record are
frozen, so what was made of them once is made of them again: one object for all. Nothing is shared that could change.
An event is read from its bytes once: its writer does so before it sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.simulation.planting import planted


@contextmanager
def remembering() -> Iterator[None]:
    """For one run."""
    with ExitStack() as stack:
        stack.enter_context(planted("headgate_contracts.lifecycle:advance", _advanced))
        stack.enter_context(planted("libs.capacity.projection:row_of", _as_row))
        stack.enter_context(planted("libs.capacity.engine:_planned", _planned))
        stack.enter_context(planted("headgate_contracts.envelope:parse_event", _parsed))
        yield


def _advanced(sound: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[tuple[object, ...], tuple[Any, ...]] = {}

    def advance(job: Any, event: Any, *, seq: int = 0, at: Any = None) -> Any:
        key = (id(job), id(event), seq, at)
        found = known.get(key)
        if found is None:
            found = known[key] = (sound(job, event, seq=seq, at=at), job, event)  # kept: an id is nobody else's
        return found[0]

    return advance


def _as_row(sound: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[tuple[int, ...], tuple[Any, ...]] = {}

    def row_of(job: Any, policy: Any) -> Any:
        said = policy.tiers, policy.order, policy.queue, policy.confirmation  # what a reload may change of a row
        key = (id(job), *map(id, said))
        found = known.get(key)
        if found is None:
            found = known[key] = (sound(job, policy), job, said)
        return found[0]

    return row_of


def _planned(sound: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[int, tuple[Any, ...]] = {}

    def planned(row: Any) -> Any:
        found = known.get(id(row))
        if found is None:
            found = known[id(row)] = (sound(row), row)
        return found[0]

    return planned


def _parsed(sound: Callable[..., Any]) -> Callable[..., Any]:
    known: dict[bytes, Any] = {}

    def parse_event(payload: bytes) -> Any:
        found = known.get(payload)
        if found is None:
            found = known[payload] = sound(payload)
        return found

    return parse_event
