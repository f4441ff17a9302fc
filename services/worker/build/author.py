"""The model as an author: a conversation until there are files that can be used, or a word about why there are none.

Owns who waits for what: a provider that has too many calls is shut for everybody and asked again when it opens; one
that is away is asked again with growing pauses, without holding its slot; an answer that is cut off goes on, one that
cannot be used is complained about, a few times. Whatever ends it without files is a `StageFailed` that says so.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate_contracts.vocabulary import Fault
from headgate_pipeline import Context, Endpoint, ModelCall, StageFailed
from headgate_pipeline.context import CallOutcome
from services.worker.build.answer import ModelAnswer, read_answer
from services.worker.build.asked import BuildInput, Names
from services.worker.build.briefing import ChatMessage, complain, go_on, opening, repeat
from services.worker.build.chat import (
    Answered,
    Away,
    CallBounds,
    CallRefused,
    Chat,
    CountedTokens,
    ProviderBusy,
    Rejected,
    Reply,
    TooMuch,
)
from services.worker.build.tree import TreeRefused, checked_tree

PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0)  # about two minutes, then the job is told
MAX_ANSWERS: Final = 8
MAX_COMPLAINTS: Final = 3
MAX_PROBLEMS: Final = 10
MAX_REPEATED_CHARS: Final = 100_000

OUTCOMES: Final[Mapping[type[Reply], CallOutcome]] = {
    Answered: "answered",
    CallRefused: "refused",
    ProviderBusy: "busy",
    Away: "away",
    Rejected: "rejected",
    TooMuch: "too_much",
}

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Draft:
    """What the model has given, over what there was."""

    files: Mapping[str, str]
    needs: tuple[str, ...]
    given: frozenset[str] = frozenset()

    def with_answer(self, answer: ModelAnswer) -> Draft:
        files = {path: text for path, text in self.files.items() if path not in answer.deleted} | answer.files
        needs = self.needs if answer.needs is None else answer.needs
        return Draft(files, needs, self.given | answer.files.keys() | answer.deleted)


@dataclass(slots=True)
class ModelAuthor:
    """One iteration's conversation with one provider."""

    ctx: Context
    provider: str
    endpoint: Endpoint
    names: Names
    can_fetch: bool
    patience: CallBounds = field(default_factory=CallBounds)
    sleep: Sleep = asyncio.sleep

    async def write(self, draft: Draft) -> Draft:
        """The files as the model wants them: new ones in the first iteration, mended ones in a later one."""
        asked: BuildInput = self.ctx.input
        failure, can_fetch = self.ctx.failure, self.can_fetch
        said = list(opening(asked.prompt, self.names, draft.files, failure=failure, can_fetch=can_fetch))
        complaints = 0
        async with Chat(self.endpoint, model=asked.model, patience=self.patience) as chat:
            for _ in range(MAX_ANSWERS):
                self.ctx.log(f"{self.provider} ({chat.model}) is asked")
                reply = await self._reply(chat, said)
                before = draft
                draft, problems = self._judged(reply, draft)
                if not problems and isinstance(reply, Answered) and not reply.cut:
                    return draft
                said += _next_words(reply, draft, problems, package=self.names.package)
                complaints += bool(problems) or draft.given == before.given
                if complaints > MAX_COMPLAINTS:
                    break
        raise StageFailed("The model gave no answer that could be used.", said[-1]["content"][:2000])

    def _judged(self, reply: Answered | TooMuch, draft: Draft) -> tuple[Draft, list[str]]:
        """The draft with what can be used of the answer, and what cannot."""
        if isinstance(reply, TooMuch):
            return draft, [f"Your answer had more than {reply.max_bytes} bytes: send fewer and smaller files."]
        answer = read_answer(reply.text, package=self.names.package, was_cut=reply.cut)
        for path in answer.files:
            self.ctx.log(f"written: {path}")
        wanted = draft.with_answer(answer)
        try:
            checked_tree(wanted.files)
        except TreeRefused as refused:
            return draft, [str(refused)]
        if answer.needs and not self.can_fetch:
            return wanted, ["No other package can be installed here: use the standard library alone."]
        missing = [] if reply.cut else self._missing(wanted)
        return wanted, [*answer.problems, *missing][:MAX_PROBLEMS]

    def _missing(self, draft: Draft) -> list[str]:
        """What a complete answer has and this one has not."""
        if self.ctx.failure:
            return [] if draft.given else ["There is no file in your answer."]
        folders = (f"src/{self.names.package}/", "tests/")
        missing = [folder for folder in folders if not any(path.startswith(folder) for path in draft.given)]
        return [f"There is no file below {folder} in your answer." for folder in missing]

    async def _reply(self, chat: Chat, said: Sequence[ChatMessage]) -> Answered | TooMuch:
        """Words of the model, sooner or later."""
        for pause_s in (*PAUSES_S, None):
            match await self._called(chat, said):
                case Answered() | TooMuch() as reply:
                    return reply
                case CallRefused(why):
                    raise StageFailed(f"{self.provider} refused to write this.", why)
                case Rejected() as rejected:
                    raise self._rejected(rejected)
                case Away(why, for_s) if pause_s is not None:
                    self.ctx.log(f"{self.provider}: {why}; it is asked again")
                    await self.sleep(max(pause_s * random.uniform(0.75, 1.25), min(for_s or 0.0, PAUSES_S[-1])))
                case Away(why):
                    raise StageFailed(f"{self.provider} cannot be reached.", why, fault=Fault.SYSTEM)
        raise AssertionError("the last pause is none")

    async def _called(
        self, chat: Chat, said: Sequence[ChatMessage]
    ) -> Answered | TooMuch | CallRefused | Rejected | Away:
        """One call that the provider has taken, with its slot held for the length of it."""
        async with self.ctx.provider(self.provider) as slot:
            while isinstance(reply := await self._answer(chat, said), ProviderBusy):
                self.ctx.log(f"{self.provider} has too many calls")
                await slot.shut(self.provider, for_s=reply.for_s)
            return reply

    async def _answer(self, chat: Chat, said: Sequence[ChatMessage]) -> Reply:
        """One that is broken off, as its stage is, was a call too: nobody says of how many tokens."""
        began_s = time.monotonic()
        try:
            reply = await chat.ask(said)
        except asyncio.CancelledError:
            self._tell(chat.model, "broken_off", began_s)
            raise
        usage = reply.usage if isinstance(reply, Answered | CallRefused) else None
        self._tell(chat.model, OUTCOMES[type(reply)], began_s, usage=usage)
        return reply

    def _tell(self, model: str, outcome: CallOutcome, began_s: float, *, usage: CountedTokens | None = None) -> None:
        details = usage and usage.prompt_tokens_details
        self.ctx.called(
            ModelCall(
                provider=self.provider,
                model=model,
                took_s=time.monotonic() - began_s,
                outcome=outcome,
                input_tokens=usage and usage.prompt_tokens,
                output_tokens=usage and usage.completion_tokens,
                cached_tokens=details and details.cached_tokens,
            )
        )

    def _rejected(self, rejected: Rejected) -> StageFailed:
        """A model that the user has named is the user's mistake, like what the user has asked for."""
        theirs = rejected.because_of == "call" or (rejected.because_of == "model" and self.ctx.input.model is not None)
        fault = Fault.JOB if theirs else Fault.SYSTEM
        return StageFailed(f"{self.provider} does not take the call.", rejected.why, fault=fault)


def _next_words(reply: Answered | TooMuch, draft: Draft, problems: Sequence[str], *, package: str) -> list[ChatMessage]:
    """What the conversation goes on with: the model's own words, and what is said to them."""
    if isinstance(reply, TooMuch):
        return [complain(problems)]
    own = repeat(reply.text[:MAX_REPEATED_CHARS])
    if problems:
        return [own, complain(problems)]
    left_open = read_answer(reply.text, package=package, was_cut=True).left_open
    return [own, go_on(draft.given, cut=left_open)]
