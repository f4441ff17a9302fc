"""What the garbage collector is spared, and what it looks at all the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from services.notifier.sending import Collecting


class Ring:
    """Refers to itself, as a closed connection does: nobody's any more, it is found by a look alone."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_so_many_streams_are_put_aside_at_once() -> None:
    collecting, before = Collecting(openings=3), gc.get_freeze_count()
    streams = [Ring() for _ in range(1000)]
    counts: list[int] = []
    for _ in range(3):
        collecting.opened()
        counts.append(gc.get_freeze_count() - before)

    assert counts[:2] == [0, 0]
    assert counts[2] >= len(streams)


def test_what_is_nobodys_is_never_put_aside() -> None:
    collecting = Collecting(openings=1)
    gone = weakref.ref(Ring())

    collecting.opened()

    assert gone() is None


def test_what_was_put_aside_and_ended_since_goes_in_the_end() -> None:
    collecting = Collecting(openings=1, closings=2)
    stream = Ring()
    collecting.opened()
    gone, put_aside = weakref.ref(stream), gc.get_freeze_count()
    del stream
    for _ in range(2):
        collecting.closed()

    gc.collect()

    assert gone() is None
    assert gc.get_freeze_count() < put_aside  # Python 3.12 puts aside what never ends, by itself
