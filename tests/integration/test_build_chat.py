"""One call of a provider over real HTTP: what it is asked, and what each of its misbehaviours means."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import openai
import pytest

from headgate_pipeline import Endpoint
from services.worker.build.briefing import ChatMessage
from services.worker.build.chat import (
    Answered,
    Away,
    CallBounds,
    CallRefused,
    Chat,
    ProviderBusy,
    Rejected,
    Reply,
    TooMuch,
    meaning_of,
    retry_after_s,
)
from tests.fixtures.providers import (
    KEY,
    MODEL,
    Deed,
    a_provider,
    breaks_json,
    dawdles,
    drops,
    fails_in_the_stream,
    floods,
    hangs_up,
    is_silent,
    says,
    shows_a_page,
    status,
    talks_nonsense,
)

HELLO: list[ChatMessage] = [{"role": "user", "content": "hello"}]
PATIENT = CallBounds(connect_s=60, silence_s=60, total_s=60, max_bytes=200_000)


async def reply_to(*deeds: Deed, patience: CallBounds = PATIENT) -> Reply:
    async with a_provider(*deeds) as provider, Chat(provider.endpoint, patience=patience) as chat:
        return await chat.ask(HELLO)


# ── the call ──────────────────────────────────────────────────────────────────


async def test_a_provider_is_asked_with_its_key_its_model_and_the_whole_conversation() -> None:
    async with a_provider(says("hi")) as provider, Chat(provider.endpoint) as chat:
        await chat.ask(HELLO)

    (asked,) = provider.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.body["model"], asked.messages, asked.body["stream"]) == (MODEL, HELLO, True)


async def test_a_model_that_is_named_takes_the_place_of_the_one_configured() -> None:
    async with a_provider(says("hi")) as provider, Chat(provider.endpoint, model="other") as chat:
        await chat.ask(HELLO)

    assert provider.asked[0].body["model"] == "other"


async def test_a_local_provider_needs_no_key() -> None:
    async with a_provider(says("hi")) as provider, Chat(Endpoint(provider.url, MODEL)) as chat:
        assert await chat.ask(HELLO) == Answered("hi")


async def test_words_arrive_whole_from_many_pieces() -> None:
    text = "a line of Ünïcode\n" * 100

    assert await reply_to(says(text)) == Answered(text)


# ── what it may mean ──────────────────────────────────────────────────────────


async def test_an_answer_that_was_cut_off_by_its_length_says_so() -> None:
    assert await reply_to(says("half", finish="length")) == Answered("half", cut=True)


@pytest.mark.parametrize(
    ("headers", "for_s"),
    [({"Retry-After": "7"}, 7), ({"retry-after-ms": "1500"}, 1.5), ({}, None), ({"Retry-After": "soon"}, None)],
)
async def test_too_many_calls_name_the_pause_where_the_provider_does(
    headers: dict[str, str], for_s: float | None
) -> None:
    assert await reply_to(status(429, headers=headers)) == ProviderBusy(for_s)


@pytest.mark.parametrize("code", [500, 502, 503, 529, 408])
async def test_a_provider_that_breaks_down_is_away(code: int) -> None:
    assert await reply_to(status(code)) == Away(f"it answered {code}")


async def test_a_breakdown_may_name_a_pause_too() -> None:
    assert await reply_to(status(503, headers={"Retry-After": "3"})) == Away("it answered 503", 3)


async def test_one_call_is_one_call() -> None:
    async with a_provider(status(500)) as provider, Chat(provider.endpoint, patience=PATIENT) as chat:
        await chat.ask(HELLO)

    assert len(provider.asked) == 1


@pytest.mark.parametrize("deed", [drops("half an ans"), hangs_up])
async def test_a_dropped_connection_is_no_answer(deed: Deed) -> None:
    assert await reply_to(deed) == Away("the connection failed")


async def test_a_stream_that_merely_ends_is_no_answer() -> None:
    assert await reply_to(says("half an ans", finish=None)) == Away("its answer broke off")


async def test_a_silent_provider_is_given_up() -> None:
    assert await reply_to(is_silent, patience=CallBounds(silence_s=0.3)) == Away("it said nothing for too long")


async def test_a_provider_that_never_comes_to_an_end_is_given_up() -> None:
    assert await reply_to(dawdles, patience=CallBounds(silence_s=60, total_s=0.3)) == Away(
        "it was not done within 0.3 s"
    )


async def test_a_provider_that_is_not_there_is_away() -> None:
    async with Chat(Endpoint("http://127.0.0.1:9/v1", MODEL), patience=PATIENT) as chat:
        assert await chat.ask(HELLO) == Away("the connection failed")


async def test_a_flood_is_stopped_at_the_bound() -> None:
    assert await reply_to(floods) == TooMuch(PATIENT.max_bytes)


async def test_a_flood_of_words_is_stopped_as_well() -> None:
    assert await reply_to(says("x" * 300_000)) == TooMuch(PATIENT.max_bytes)


@pytest.mark.parametrize("deed", [shows_a_page, talks_nonsense, breaks_json])
async def test_nonsense_is_no_answer(deed: Deed) -> None:
    reply = await reply_to(deed)

    assert isinstance(reply, Away)
    assert reply.why in {"its answer broke off", "its answer makes no sense"}


async def test_a_fault_in_the_middle_of_the_stream_is_told_in_its_words() -> None:
    assert await reply_to(fails_in_the_stream) == Away("it broke off: out of memory")


async def test_a_model_that_refuses_is_heard() -> None:
    assert await reply_to(says("I will not.", refusal=True)) == CallRefused("I will not.")


async def test_a_filter_refuses_too() -> None:
    assert await reply_to(says("", finish="content_filter")) == CallRefused("a content filter stepped in")


@pytest.mark.parametrize(
    ("code", "error", "because_of"),
    [
        (401, "", "worker"),
        (403, "", "worker"),
        (402, "", "worker"),
        (429, "insufficient_quota", "worker"),
        (404, "", "model"),
        (400, "", "call"),
        (422, "", "call"),
        (301, "", "worker"),
    ],
)
async def test_what_will_never_succeed_is_told_apart_by_whose_it_is(code: int, error: str, because_of: str) -> None:
    reply = await reply_to(status(code, error=error))

    assert isinstance(reply, Rejected)
    assert reply.because_of == because_of
    assert KEY not in reply.why


async def test_a_call_that_is_cancelled_is_cancelled() -> None:
    async with a_provider(is_silent) as provider, Chat(provider.endpoint) as chat:
        asking = asyncio.create_task(chat.ask(HELLO))
        while not provider.asked:  # noqa: ASYNC110 - the server is in this loop
            await asyncio.sleep(0)
        asking.cancel()

        with pytest.raises(asyncio.CancelledError):
            await asking


# ── the edge ──────────────────────────────────────────────────────────────────


def test_every_fault_of_the_client_has_a_meaning() -> None:
    """Fails when the client grows a fault that nobody here has thought of."""
    known = {
        "APIConnectionError",
        "APIError",
        "APIResponseValidationError",
        "APIStatusError",
        "APITimeoutError",
        "AuthenticationError",
        "BadRequestError",
        "ConflictError",
        "InternalServerError",
        "NotFoundError",
        "PermissionDeniedError",
        "RateLimitError",
        "UnprocessableEntityError",
        "OpenAIError",
    }
    of_other_calls = {
        "ContentFilterFinishReasonError",  # these two: of answers that are parsed into a class
        "LengthFinishReasonError",
        "InvalidWebhookSignatureError",
        "OAuthError",  # these two: of another way to sign in
        "SubjectTokenProviderError",
        "WebSocketConnectionClosedError",  # these two: of the realtime interface
        "WebSocketQueueFullError",
    }
    faults = {
        name
        for name, kind in inspect.getmembers(openai, inspect.isclass)
        if issubclass(kind, Exception) and not name.startswith("_")
    }

    assert faults <= known | of_other_calls


def test_a_fault_that_says_nothing_is_still_an_answer() -> None:
    assert meaning_of(openai.OpenAIError("?"), max_bytes=1) == Away("its answer makes no sense")


def test_a_date_to_come_back_at_is_counted_from_the_answers_own_clock() -> None:
    ours, theirs = datetime(2030, 1, 1, tzinfo=UTC), datetime(2031, 5, 5, 12, tzinfo=UTC)
    then = format_datetime(theirs + timedelta(seconds=90), usegmt=True)

    told = httpx2.Headers({"retry-after": then, "date": format_datetime(theirs, usegmt=True)})

    assert retry_after_s(told, now=ours) == 90


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("0", 0), ("-5", None), ("1e9", 86_400), ("nan", None), ("inf", 86_400), ("Wed, 99 Foo", None), ("", None)],
)
def test_a_strange_pause_is_bounded_or_none(told: str, seconds: float | None) -> None:
    assert retry_after_s(httpx2.Headers({"retry-after": told}), now=datetime(2030, 1, 1, tzinfo=UTC)) == seconds
