"""Text from elsewhere: what a terminal is shown of it, and that it is never told to do a thing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.runtime.terminal import GONE, RESET, coloured, plain

ORDERS = {
    "a colour": "\x1b[31m",
    "the screen is cleared": "\x1b[2J\x1b[H",
    "the title": "\x1b]0;pwned\x07",
    "the clipboard": "\x1b]52;c;cm0gLXJmIH4=\x1b\\",
    "a link": "\x1b]8;;https://evil.test\x1b\\",
    "a report": "\x1bP$q q\x1b\\",
    "of one byte": "\x9b2J",
    "an open one": "\x1b]52;c;cm0gLXJm",
    "the charset": "\x1b(0",
}
NOISE = st.text(st.sampled_from("\x1b\x9b\x9d\x07\\[]0;m31J a\r\n\t\u202e"), max_size=30)


@pytest.mark.parametrize("order", ORDERS.values(), ids=list(ORDERS))
def test_a_terminal_is_told_to_do_nothing(order: str) -> None:
    assert plain(f"a{order}") == "a"
    assert "\x1b" not in coloured(f"a{order}").replace("\x1b[31m", "").replace(RESET, "")


@pytest.mark.parametrize("mark", ["\x00", "\x08", "\x7f", "\x85", "\u202e", "\u2066", "\u200f", "\u2028"])
def test_controls_and_marks_of_direction_are_seen_and_not_obeyed(mark: str) -> None:
    assert plain(f"ab{mark}c\td\ne") == f"ab{GONE}c\td\ne"


@given(NOISE | st.text())
def test_no_text_has_an_order_left(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain(text))
    assert not re.search(r"\x1b(?!\[[0-9;:]*m)", coloured(text))


def test_colours_stay_and_end_with_their_line() -> None:
    assert coloured("\x1b[32mok\x1b[0m") == "\x1b[32mok\x1b[0m"
    assert coloured("\x1b[1;31mFAILED\x1b[K x") == f"\x1b[1;31mFAILED x{RESET}"


def test_of_what_overwrites_itself_the_last_state_is_kept() -> None:
    assert coloured(" 10 %\r 50 %\r100 %\r") == "100 %"
