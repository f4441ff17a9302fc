"""Nothing that the client does goes on without end: streams without a word, pauses of a day, downloads that are cut."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest

from headgate import Patience, errors, fetching, verbs, waiting
from headgate.exchange import Answer, AskTerms, NoAnswer, Open, Pause, Terms
from headgate.following import TRIES
from tests.fixtures.scripted import JOB, frames, play, says

STREAM = Answer(200, {"content-type": "text/event-stream"})
END = ("end", dict[str, Any](), None)
ENDED = (STREAM, frames(END))
NOTHING = (STREAM, b"")


# ── streams ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/json", ""])
def test_what_is_no_stream_is_no_headgate_and_is_not_asked_again(kind: str) -> None:
    for status in (200, 202, 206):
        with pytest.raises(errors.NotHeadgate):
            play(verbs.events("j1"), Answer(status, {"content-type": kind}))
        with pytest.raises(errors.NotHeadgate):
            play(waiting.wait("j1"), Answer(status, {"content-type": kind}))


def test_a_stream_that_was_sent_elsewhere_is_no_headgate() -> None:
    with pytest.raises(errors.NotHeadgate, match=r"https://there$"):
        play(verbs.events("j1"), Answer(302, {"location": "https://there/v1/jobs/j1/stream"}))


@pytest.mark.parametrize("said", [b"", b"<html>\n\n</html>\n\n", b"retry: 1000\n\n", b"event: status\n\n"])
def test_connections_that_end_without_a_word_are_counted(said: bytes) -> None:
    connection = (STREAM, said, b"") if said else NOTHING

    with pytest.raises(errors.Unreachable, match="without a word"):
        play(verbs.events("j1"), *connection * TRIES)


@pytest.mark.parametrize("word", [b": still here\n\n", frames(("status", {"status": "code"}, "E-1"))])
def test_one_word_is_enough_to_begin_the_count_anew(word: bytes) -> None:
    silent, cut = NOTHING * (TRIES - 1), (STREAM, word, b"")

    played = play(verbs.events("j1"), *silent, *cut, *silent, *ENDED)

    assert played.given[-1].kind == "end"


@pytest.mark.parametrize("data", ["{", "[" * 100_000, "<html>"])
def test_an_event_that_is_no_json_is_no_headgates(data: str) -> None:
    with pytest.raises(errors.NotHeadgate):
        play(verbs.events("j1"), STREAM, f"event: status\ndata: {data}\n\n".encode())


def test_a_stream_that_may_be_asked_for_again_in_a_day_is_not_waited_for() -> None:
    full = says(429, {"detail": "you have 8 streams open"}, retry_after="86400")

    with pytest.raises(errors.TryLater) as raised:
        play(verbs.events("j1"), full)
    assert raised.value.retry_after == 86400
    assert play(verbs.events("j1"), full, *ENDED, patience=Patience(within_s=86400)).pauses == [86400]


def test_a_stream_that_says_to_come_back_in_a_day_is_asked_sooner() -> None:
    assert play(verbs.events("j1"), STREAM, b": hi\n\nretry: 86400000\n\n", b"", *ENDED).pauses == [60]


@pytest.mark.parametrize("piece", [b"x" * 2**20, b"data: " + b"x" * 2**20 + b"\n"], ids=["a line", "an event"])
def test_neither_a_line_nor_an_event_without_an_end_is_kept_for_ever(piece: bytes) -> None:
    with pytest.raises(errors.NotHeadgate):
        play(verbs.events("j1"), STREAM, *[piece] * 17)


@pytest.mark.parametrize("target", ["https://there/v1/jobs", "//there/v1/jobs"])
def test_a_next_page_elsewhere_is_not_asked_for(target: str) -> None:
    page = Answer(200, {"link": f'<{target}>; rel="next"'}, b"[]")

    with pytest.raises(errors.NotHeadgate) as raised:
        play(verbs.jobs(), page)

    assert raised.value.elsewhere is None, "nobody is advised to go there"
    assert "there/v1" not in str(raised.value)


# ── waiting ───────────────────────────────────────────────────────────────────


def test_nothing_is_begun_for_longer_than_is_left_to_wait() -> None:
    effects: list[Any] = []
    script = waiting.wait("j1", timeout_s=3)

    def noted() -> Any:
        reply = None
        while True:
            effect = script.send(reply)
            effects.append(effect)
            reply = yield effect

    with pytest.raises(errors.NotInTime, match="within 3 s"):
        play(noted(), says(429, {}, retry_after="2"), says(429, {}, retry_after="30"))

    assert [each.request.within_s for each in effects if isinstance(each, Open)] == [3, 1]
    assert [each.seconds for each in effects if isinstance(each, Pause)] == [2, 1]


@dataclass
class Spoken:
    """A wait for a job whose stream says something at those times, and takes so long to open."""

    timeout_s: float
    words: list[float]
    opens_in_s: float = 0.0
    now_s: float = 0.0
    opened: list[float] = field(default_factory=list[float])

    def carry_out(self) -> None:
        """To its end; a connection on which nobody speaks is read for as long as it was opened for."""
        known = Terms(patience=Patience(), now_s=lambda: self.now_s, random=lambda: 1.0, new_key=str)
        script, reply = waiting.wait("j1", timeout_s=self.timeout_s), None
        while True:
            effect = script.send(reply)
            assert not isinstance(effect, Pause)
            reply = known if isinstance(effect, AskTerms) else self._reply(effect)

    def _reply(self, effect: Any) -> Any:
        if isinstance(effect, Open):
            self.opened.append(effect.request.within_s)
            self.now_s += self.opens_in_s
            return STREAM
        comes_s = next((word for word in self.words if word > self.now_s), inf)
        silent_until_s = self.now_s + self.opened[-1]
        self.now_s = min(comes_s, silent_until_s)
        return b": still here\n\n" if comes_s <= silent_until_s else NoAnswer("the read timed out")


@pytest.mark.parametrize(
    ("wait", "opened"),
    [
        (Spoken(40, [15, 30]), [40, 10]),  # the next word would come 5 s after the end
        (Spoken(10, [3, 7]), [10, 7, 3]),  # it was opened for what was left, and was read since then
        (Spoken(10, [0.125, 0.25, 0.375]), [10]),  # so little later that it is as good as in time
    ],
)
def test_the_last_connections_of_a_wait_are_silent_for_no_longer_than_is_left(
    wait: Spoken, opened: list[float]
) -> None:
    with pytest.raises(errors.NotInTime):
        wait.carry_out()

    assert wait.opened == opened
    assert wait.timeout_s <= wait.now_s <= wait.timeout_s + 0.5


def test_what_opens_slowly_is_read_all_the_same() -> None:
    wait = Spoken(10, [2, 4, 6, 8], opens_in_s=1)

    with pytest.raises(errors.NotInTime):
        wait.carry_out()

    assert wait.opened == [10, 8, 6, 4, 2]


def test_a_job_that_is_not_seen_to_have_ended_is_not_given_as_if_it_had() -> None:
    with pytest.raises(errors.NotInTime, match="still queued"):
        play(waiting.wait("j1"), *ENDED, *[says(200, JOB)] * 200)
    with pytest.raises(errors.NotInTime, match="still queued"):
        play(waiting.wait("j1", timeout_s=1), *ENDED, *[says(200, JOB)] * 12)


# ── downloads ─────────────────────────────────────────────────────────────────


CONTENT = b"0123456789"
HEADERS = {"etag": f'"{hashlib.sha256(CONTENT).hexdigest()}"'}


def cut(begin: int, end: int) -> tuple[Answer, bytes, NoAnswer]:
    """A connection that gave these bytes of it."""
    size = {"content-length": str(len(CONTENT) - begin)}
    return Answer(206 if begin else 200, HEADERS | size), CONTENT[begin:end], NoAnswer("cut off")


def test_a_download_that_gets_on_may_be_cut_as_often_as_it_is() -> None:
    replies = [each for at in range(9) for each in cut(at, at + 1)]

    played = play(fetching.content("j1"), *replies, *cut(9, 10)[:2], b"", patience=Patience(tries=2))

    assert played.returned == CONTENT


def test_a_download_that_does_not_get_on_is_given_up() -> None:
    head, _, fault = cut(5, 5)

    with pytest.raises(errors.Unreachable):
        play(fetching.content("j1"), *cut(0, 5), *[head, fault] * 2, patience=Patience(tries=3))


def test_a_download_that_begins_anew_each_time_is_given_up() -> None:
    with pytest.raises(errors.Unreachable):
        play(fetching.content("j1"), *cut(0, 5) * 3, patience=Patience(tries=3))
