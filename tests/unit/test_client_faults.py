"""What the client makes of a gateway that got no answer, of something else that answers, and of odd URLs and tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from headgate import Headgate, Patience, SyncHeadgate, errors, fetching, verbs, waiting
from headgate.edge import call_of, no_answer, target_of
from headgate.exchange import KEY, Answer, Request
from libs.cli.client import ending_of
from libs.cli.errors import Usage
from libs.cli.target import find_target
from tests.fixtures.scripted import JOB, play, says

UNANSWERED = {"type": "/problems/unanswered", "detail": "it may have been done", "debug_id": "d1"}
SECRET = "eyJhbGciOiJIUzI1NiJ9.secret"


# ── a gateway that got no answer ──────────────────────────────────────────────


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_keyed_submission_that_a_gateway_got_no_answer_to_is_sent_again(status: int) -> None:
    played = play(verbs.submit("a", project="shop"), *[says(status, UNANSWERED)] * 2, says(202, JOB))

    assert [request.headers[KEY] for request in played.requests] == ["key-1"] * 3
    assert played.pauses == [0.5, 1.0]


@pytest.mark.parametrize("status", [502, 503, 504])
def test_what_may_have_been_done_is_not_meant_twice(status: int) -> None:
    with pytest.raises(errors.ServerFault, match="may have been done"):
        play(verbs.cancel("j1"), says(status, UNANSWERED))


def test_what_failed_in_headgate_is_not_sent_again() -> None:
    with pytest.raises(errors.ServerFault):
        play(verbs.submit("a", project="shop"), says(500, {"detail": "a fault"}))


# ── something else that answers ───────────────────────────────────────────────


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("https://hg.example.com/v1/usage", r"set HEADGATE_URL to https://hg\.example\.com$"),
        ("https://example.com/hg/v1/usage", r"set HEADGATE_URL to https://example\.com/hg$"),
        ("/login", "set HEADGATE_URL to where it runs$"),
        ("https://here/\x1b[2J", "set HEADGATE_URL to where it runs$"),
    ],
)
def test_what_sends_us_elsewhere_is_no_headgate_and_it_is_said_where(location: str, words: str) -> None:
    for status in (301, 302, 307):
        with pytest.raises(errors.NotHeadgate, match=words):
            play(verbs.usage(), Answer(status, {"location": location}))


def test_a_command_says_where_it_was_sent_to() -> None:
    assert "Set HEADGATE_URL to https://there." in str(ending_of(errors.NotHeadgate("https://there"), "http://here"))


def test_a_job_that_is_not_over_in_time_is_an_error_of_the_tree_and_of_python() -> None:
    with pytest.raises(errors.HeadgateError) as raised:
        play(waiting.wait("j1", timeout_s=0))

    assert isinstance(raised.value, TimeoutError)


# ── odd URLs and tokens ───────────────────────────────────────────────────────


def test_the_end_of_a_line_is_no_part_of_a_token_or_a_url() -> None:
    target = target_of("http://there:8080/ \n", f" {SECRET}\n", {})

    assert (target.url, target.token) == ("http://there:8080", SECRET)


@pytest.mark.parametrize("end", [" x", "\nx", "\x00", "é", "\u2028x", "\udcff"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_quoted(end: str) -> None:
    with pytest.raises(errors.NotConfigured) as raised:
        target_of("http://there", SECRET + end, {})
    assert "secret" not in str(raised.value)

    with pytest.raises(Usage) as refused:
        find_target({"HEADGATE_URL": "http://there", "HEADGATE_TOKEN": SECRET + end})
    assert (refused.value.exit_code, "secret" in str(refused.value)) == (2, False)


@pytest.mark.parametrize("token", [" ", "\n"])
def test_a_token_of_blanks_is_none(token: str) -> None:
    with pytest.raises(errors.NotConfigured, match="HEADGATE_TOKEN"):
        target_of("http://there", token, {})


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http://:8080",
        "http://there:99999999",
        "http://there:x",
        "http://[::1",
        "http://th\x00ere",
        "http://th ere",
        "http://there/\udcff",
        "http://" + "a" * 70_000,
        "http://user:secret@there",
        "http://user:secret@there:x",
        "http://there?x=1",
        "http://there/#x",
        "ftp://there",
    ],
)
def test_a_url_that_cannot_be_asked_is_refused_at_once(url: str) -> None:
    with pytest.raises(errors.NotConfigured) as raised:
        SyncHeadgate(url, "t")
    assert "secret" not in str(raised.value)

    with pytest.raises(Usage) as refused:
        find_target({"HEADGATE_URL": url, "HEADGATE_TOKEN": "t"})
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("face", [Headgate, SyncHeadgate])
@pytest.mark.parametrize("url", ["http://[::1]:8080", "https://bücher.example", "https://a_b.example/hg/"])
def test_a_url_that_can_be_asked_is_taken(face: Callable[[str, str], object], url: str) -> None:
    assert face(url, "t")


def test_what_cannot_be_written_is_not_quoted() -> None:
    fault = httpx.LocalProtocolError(f"Illegal header value b'Bearer {SECRET}'")

    assert "secret" not in no_answer(fault).reason


def test_a_key_that_cannot_be_sent_is_wrong_by_its_name() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise AssertionError("it was sent")

    with SyncHeadgate("http://there", "t", transport=httpx.MockTransport(answer), patience=Patience(tries=1)) as hg:
        for key in ("ключ", "a\nb"):
            with pytest.raises(errors.Invalid) as raised:
                hg.submit("a", project="shop", key=key)
            assert list(raised.value.fields) == [KEY]


def test_an_id_that_no_headgate_gives_is_not_sent_back() -> None:
    with pytest.raises(errors.NotHeadgate):
        call_of(Request(path="/v1/stream", headers={"Last-Event-ID": "é"}))


@pytest.mark.parametrize("name", ["", ".", "..", "../../../usage", "a//b", "a/"])
def test_a_name_leads_to_no_other_route(name: str) -> None:
    """httpx, as browsers do, makes another path of `..`: a file's path may be what a stranger has typed."""
    asked = play(verbs.file("j1", name), Answer(200, {}, b"")).requests[0]

    with pytest.raises(errors.Invalid, match="or a part of a file's path"):
        call_of(asked)


def test_an_empty_key_is_a_key_and_not_a_new_one() -> None:
    played = play(verbs.submit("a URL shortener", project="shop", key=""), says(202, JOB))

    assert played.requests[0].headers[KEY] == ""


# ── what no request can say ───────────────────────────────────────────────────


def _never(_: httpx.Request) -> httpx.Response:
    raise AssertionError("it was sent")


def _unasked() -> SyncHeadgate:
    return SyncHeadgate("http://there", "t", transport=httpx.MockTransport(_never))


LOOP: dict[str, object] = {}
LOOP["self"] = LOOP


@pytest.mark.parametrize(
    "ask",
    [
        lambda hg: hg.job("\udcff"),
        lambda hg: list(hg.jobs(text="\udcff")),
        lambda hg: hg.job("x" * 100_000),
        lambda hg: hg.submit(LOOP, project="shop"),
        lambda hg: hg.submit({"many": 10**5000}, project="shop"),
    ],
)
def test_what_cannot_be_written_is_refused_in_the_clients_own_words(ask: Callable[[SyncHeadgate], object]) -> None:
    with _unasked() as hg, pytest.raises(errors.Invalid, match=r"surrogate|at most 8192|as JSON"):
        ask(hg)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda hg: hg.job(None), "an id or a name is a text, not None"),
        (lambda hg: hg.submit(None, project="shop"), "from a prompt or from an input, a mapping, not from NoneType"),
        (lambda hg: hg.submit_workflow("a shop", project="shop"), "a list of prompts"),
        (lambda hg: hg.batch(["a shop"]), r"order\(…\)"),
    ],
)
def test_a_value_of_a_wrong_type_is_pythons_error_and_says_the_right_one(
    ask: Callable[[SyncHeadgate], object], words: str
) -> None:
    """A text is a list of letters too: each of them would have been a phase."""
    with _unasked() as hg, pytest.raises(TypeError, match=words):
        ask(hg)


def test_patience_has_one_try_at_least() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        Patience(tries=0)


@pytest.mark.parametrize("place", ["/dev/null", "/", "a\0b"])
def test_a_result_is_saved_in_place_of_files_alone(place: str) -> None:
    """A device would be replaced by a file, by who may."""
    with pytest.raises(errors.NotStored, match=r"no file|no place"):
        play(fetching.save("j1", place))


def test_a_name_that_is_too_long_is_refused_before_anything_is_fetched() -> None:
    with pytest.raises(errors.NotStored, match=r"aaa: File name too long"):
        play(fetching.save("j1", "a" * 300))


def test_a_place_that_takes_no_file_is_named_as_the_caller_did(tmp_path: Path) -> None:
    with pytest.raises(errors.NotStored, match=r"away/result\.tar\.gz: No such file"):
        play(fetching.save("j1", tmp_path / "away" / "result.tar.gz"))
