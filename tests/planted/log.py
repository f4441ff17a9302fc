"""In the append: who stands in the one place that tells, and what is believed of silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from libs.eventlog.expectation import Message
from libs.eventlog.settling import SettlingLog
from libs.eventlog.values import Appended, Conflicted, Entry, Record
from libs.eventlog.wire import Unanswered, WireAnswer
from tests.planted.bug import Bug


def looks_under_its_own_subject(sound: Any) -> Any:
    async def _standing_after(self: SettlingLog, message: Message) -> Record | None:
        expectation = message.expectation
        return expectation and await self._wire.next(message.subject, after=expectation.last_seq)

    return _standing_after


def expects_anew_what_it_found(sound: Any) -> Any:
    async def append_batch(self: SettlingLog, entries: Sequence[Entry]) -> Appended | Conflicted:
        outcome = await sound(self, entries)
        if isinstance(outcome, Conflicted) and outcome.winner is not None:
            lost, last_seq = outcome.entry, outcome.winner.seq
            entries = [replace(entry, after=last_seq) if entry is lost else entry for entry in entries]
            return await sound(self, entries)
        return outcome

    return append_batch


def takes_silence_for_a_refusal(sound: Any) -> Any:
    async def _outcome(
        self: SettlingLog, messages: Sequence[Message], answer: WireAnswer, *, in_doubt: bool
    ) -> Appended | Conflicted | None:
        if isinstance(answer, Unanswered) and messages[0].expectation is not None:
            return Conflicted(messages[0].entry, None)
        return await sound(self, messages, answer, in_doubt=in_doubt)

    return _outcome


def compares_no_ids(sound: Any) -> Any:
    async def _judged(
        self: SettlingLog, messages: Sequence[Message], message: Message, standing: Record
    ) -> Appended | Conflicted:
        return Conflicted(message.entry, standing)

    return _judged


def forgets_where_the_whole_log_ends(sound: Any) -> Any:
    async def append_batch(self: SettlingLog, entries: Sequence[Entry]) -> Appended | Conflicted:
        return await sound(self, [replace(entry, over=None) for entry in entries])

    return append_batch


LOG: Final = (
    Bug(
        "filter-in-another-text",
        "libs.eventlog.settling:SettlingLog._standing_after",
        looks_under_its_own_subject,
        "Every writer asks about a job by one filter. A writer that another one forestalled finds nobody in its place, "
        "never learns that it lost, and asks on: a running job whose cancel came first never ends.",
    ),
    Bug(
        "retry-without-its-expectation",
        "libs.eventlog.settling:SettlingLog.append_batch",
        expects_anew_what_it_found,
        "An event is stored after what its writer has seen, or nowhere (I2, I3). The loser of a race is written behind "
        "the winner: two first events of a job, a given-up worker's word, a start counted from an old fold.",
    ),
    Bug(
        "silence-taken-for-failure",
        "libs.eventlog.settling:SettlingLog._outcome",
        takes_silence_for_a_refusal,
        "Silence says nothing. A first submission whose answer was lost is told that its key was used for another "
        "request (I9), and a claim that was stored is thrown away: its job idles for a lease.",
    ),
    Bug(
        "own-copy-taken-for-anothers",
        "libs.eventlog.settling:SettlingLog._judged",
        compares_no_ids,
        "On a conflict ids are compared before it is believed. After a lost answer a user's own cancel is told as a "
        "conflict with somebody else's, and a worker drops the job that it has just claimed.",
    ),
    Bug(
        "lone-start-without-the-logs-end",
        "libs.eventlog.settling:SettlingLog.append_batch",
        forgets_where_the_whole_log_ends,
        "A start that is written alone stands right behind all that was folded, or nowhere (I2). It is stored beside "
        "what its writer has not seen, another leader's start too, which counts one place too many (I5).",
    ),
)
