"""Two views asked the same questions: the caller gets one answer, or hears how the two differ."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from libs.capacity.errors import ViewError
from libs.capacity.ports import View
from tests.fixtures.observing import observe

Outcome = tuple[type[ViewError] | None, Any]


class Pair:
    """Keeps the interface by asking both. It is the twin that answers."""

    def __init__(self, twin: View, store: View) -> None:
        self.twin = twin
        self.store = store

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def ask(*args: Any, **kwargs: Any) -> Any:
            expected = await _outcome(getattr(self.twin, verb)(*args, **kwargs))
            got = await _outcome(getattr(self.store, verb)(*args, **kwargs))
            assert got == expected, f"{verb}: {got} is not {expected}"
            error, answer = expected
            if error is not None:
                raise error(verb)
            return answer

        return ask

    async def compare(self, questions: Sequence[tuple[Any, ...]]) -> None:
        """Ask the twin, and the store all at once. A question is a verb, its argument if any, and its details."""
        expected = [await _put(self.twin, question) for question in questions]
        got = await asyncio.gather(*(_put(self.store, question) for question in questions))
        for question, one, other in zip(questions, got, expected, strict=True):
            assert one == other, f"{question}: {_difference(one, other)}"


def _put(view: View, question: tuple[Any, ...]) -> Any:
    verb, *arguments, details = question
    return observe(view, **details) if verb == "observe" else getattr(view, verb)(*arguments, **details)


def _difference(got: Any, expected: Any) -> str:
    """The fields that differ, of two answers with many."""
    if type(got) is not type(expected) or not is_dataclass(got):
        return f"{got} is not {expected}"
    pairs = ((field.name, getattr(got, field.name), getattr(expected, field.name)) for field in fields(got))
    return "; ".join(f"{name} {one} is not {other}" for name, one, other in pairs if one != other)


async def _outcome(asked: Any) -> Outcome:
    try:
        return None, await asked
    except ViewError as error:
        return type(error), None
