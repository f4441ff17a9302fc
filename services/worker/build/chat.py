"""One client for all providers: a conversation goes out, what became of it comes back as a value.

    Answered · Refused · Busy · Away · Rejected · TooMuch

Owns the HTTP call over the chat interface that Ollama, Gemini, OpenAI and DeepSeek share, its time limits and its
bound, and what each answer and each fault of the client means. It calls once: who waits, and for how long, is the
author's. The answer is streamed, so that a slow model is told from a silent one.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Literal, Self, cast

import httpx2
import openai
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel, ConfigDict

from headgate_pipeline import Endpoint
from services.worker.build.briefing import ChatMessage

NO_KEY: Final = "none"  # the client wants one; a local provider does not look at it
LONGEST_PAUSE_S: Final = 86_400.0


class CachedTokens(BaseModel):
    """What the provider still had of the words that went out."""

    model_config = ConfigDict(frozen=True)

    cached_tokens: int | None = None


class CountedTokens(BaseModel):
    """How many tokens went out and came back, as the provider counts them."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: CachedTokens | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The model's words. They are not all where it was `cut` off by a limit of its own."""

    text: str
    cut: bool = False
    usage: CountedTokens | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The model, or a filter in front of it, will not answer this."""

    why: str
    usage: CountedTokens | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ProviderBusy:
    """Too many calls (429). `for_s` is what it asks for, null where it does not say."""

    for_s: float | None


@dataclass(frozen=True, slots=True)
class Away:
    """It cannot be reached, breaks down or makes no sense. A later call may succeed."""

    why: str
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """It will not take this call, now or later: because of the worker's key or address, the model, or the call."""

    why: str
    because_of: Literal["worker", "model", "call"]


@dataclass(frozen=True, slots=True)
class TooMuch:
    """More words than an answer may have."""

    max_bytes: int


Reply = Answered | CallRefused | ProviderBusy | Away | Rejected | TooMuch


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBounds:
    """How long one call may take, and how much it may say."""

    connect_s: float = 10.0
    silence_s: float = 180.0  # a large model on a small machine reads the prompt for minutes before its first word
    total_s: float = 1200.0
    max_bytes: int = 8 * 1024 * 1024  # as it arrives: each word comes in an envelope of some 200 bytes


class Flood(Exception):
    """The provider sends more than an answer may have."""


class Chat:
    """One provider, for the length of an `async with`."""

    def __init__(self, endpoint: Endpoint, *, model: str | None = None, patience: CallBounds | None = None) -> None:
        self.model = model or endpoint.model
        self._endpoint = endpoint
        self._patience = patience or CallBounds()

    async def __aenter__(self) -> Self:
        patience, key = self._patience, self._endpoint.key
        timeout = httpx2.Timeout(patience.silence_s, connect=patience.connect_s)
        transport = _Bounded(httpx2.AsyncHTTPTransport(), patience.max_bytes)
        self._client = openai.AsyncOpenAI(
            base_url=self._endpoint.url,
            api_key=key.get_secret_value() if key else NO_KEY,
            max_retries=0,
            timeout=timeout,
            default_headers={"Accept-Encoding": "identity"},  # what is bounded is what arrives
            http_client=httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def ask(self, messages: Sequence[ChatMessage]) -> Reply:
        """One call, and what became of it."""
        try:
            async with asyncio.timeout(self._patience.total_s):
                return await self._listen(messages)
        except TimeoutError:
            return Away(f"it was not done within {self._patience.total_s:g} s")
        except (openai.OpenAIError, httpx2.HTTPError, Flood, OSError, ValueError) as error:
            return meaning_of(error, max_bytes=self._patience.max_bytes)

    async def _listen(self, messages: Sequence[ChatMessage]) -> Reply:
        heard = _Heard()
        stream = await self._client.chat.completions.create(
            model=self.model,
            messages=cast("list[ChatCompletionMessageParam]", list(messages)),
            stream=True,
            stream_options={"include_usage": True},
        )
        async with stream:
            async for chunk in stream:
                heard.take(_Chunk.model_validate(chunk, from_attributes=True))
        return heard.reply()


def meaning_of(error: Exception, *, max_bytes: int) -> Reply:
    """What a fault of the client means. Every kind that the client has is one of these."""
    match error:
        case Flood() | openai.OpenAIError(__cause__=Flood()):
            return TooMuch(max_bytes)
        case openai.APIStatusError():
            return _meaning_of_status(error)
        case openai.APITimeoutError() | httpx2.TimeoutException():
            return Away("it said nothing for too long")
        case openai.APIConnectionError() | httpx2.HTTPError() | OSError():  # the latter two while a fault is read
            return Away("the connection failed")
        case openai.APIError():
            return Away(f"it broke off: {error.message[:200]}")
        case _:  # pydantic's, JSON's and Unicode's complaints are ValueErrors
            return Away("its answer makes no sense")


def _meaning_of_status(error: openai.APIStatusError) -> Reply:
    status, said = error.status_code, f"it answered {error.status_code}: {error.message[:300]}"
    pause_s = retry_after_s(error.response.headers, now=datetime.now(UTC))
    match status:
        case 402 | 429 if status == 402 or error.code == "insufficient_quota":
            return Rejected("the account has no credit", "worker")
        case 429:
            return ProviderBusy(pause_s)
        case 401 | 403:
            return Rejected("the key is not accepted", "worker")
        case 404:
            return Rejected(said, "model")
        case 400 if error.code == "content_filter":
            return CallRefused(error.message[:500])
        case 408 | 409 | 425:
            return Away(f"it answered {status}", pause_s)
        case _ if status >= 500:
            return Away(f"it answered {status}", pause_s)
        case _:
            return Rejected(said, "worker" if status < 400 else "call")


def retry_after_s(headers: httpx2.Headers, *, now: datetime) -> float | None:
    """Seconds until another call is welcome; null where the answer does not say, or says nonsense.

    A date is compared with the answer's own: a wrong clock of ours has no effect.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        told = headers.get(name, "")
        try:
            seconds = float(told) * unit_s
        except ValueError:
            continue
        return min(seconds, LONGEST_PAUSE_S) if seconds >= 0 else None
    then = _date(headers.get("retry-after", ""))
    if then is None:
        return None
    seconds = (then - (_date(headers.get("date", "")) or now)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_PAUSE_S)


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


class _Delta(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(BaseModel):
    """What is read of a chunk. The client itself checks nothing."""

    choices: list[_Choice] = []
    usage: CountedTokens | None = None


@dataclass(slots=True)
class _Heard:
    """An answer, as far as it has come."""

    words: list[str] = field(default_factory=list[str])
    refusal: list[str] = field(default_factory=list[str])
    end: str | None = None
    usage: CountedTokens | None = None

    def take(self, chunk: _Chunk) -> None:
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices[:1]:
            if choice.delta is not None:
                self.words.append(choice.delta.content or "")
                self.refusal.append(choice.delta.refusal or "")
            self.end = choice.finish_reason or self.end

    def reply(self) -> Reply:
        if any(self.refusal) or self.end == "content_filter":
            return CallRefused("".join(self.refusal)[:500] or "a content filter stepped in", self.usage)
        if self.end is None:
            return Away("its answer broke off")
        return Answered("".join(self.words), cut=self.end == "length", usage=self.usage)


class _Bounded(httpx2.AsyncBaseTransport):
    """Lets no more of any answer through than its bound, whatever kind of answer it is."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        response.stream = _BoundedStream(cast("httpx2.AsyncByteStream", response.stream), self._max_bytes)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._left = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._left -= len(part)
            if self._left < 0:
                raise Flood
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
