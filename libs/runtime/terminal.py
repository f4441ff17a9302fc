"""Text from elsewhere on its way to somebody's terminal: data, never an order.

    plain      nothing but characters: no escape sequence, no control, no mark that turns the direction of what follows
    coloured   the same, but colours stay, as a build's log has them

A sequence goes as a whole: of one that sets a title or the clipboard no part is shown. What is left of controls and
marks is shown as U+FFFD, so that it can be seen that something stood there. What looks like a credential is never
shown, however it came into a text.
"""

import re
from typing import Final

CREDENTIALS: Final = (
    re.compile(r"(?<=://)[^\s/@\"]+(?=@)"),  # user:password in a URL
    re.compile(r"\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*"),  # a JWT
)
GONE: Final = "\N{REPLACEMENT CHARACTER}"
COLOUR: Final = re.compile(r"\x1b\[[0-9;:]{0,64}m")
RESET: Final = "\x1b[0m"

_SEQUENCE: Final = re.compile(
    r"""(?xs)
      (?:\x1b[\]PX^_] | [\x90\x98\x9d-\x9f]) [^\x07\x1b\x9c]* (?:\x07 | \x1b\\ | \x9c)?  # title, clipboard, link
    | (?:\x1b\[ | \x9b) [0-?]* [ -/]* [@-~]?   # cursor, colours, modes
    | \x1b [ -/]* [0-~]?"""
)
MARKS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Characters alone; lines and tabs stay."""
    return MARKS.sub(GONE, _SEQUENCE.sub("", text))


def between_sequences(text: str) -> list[str]:
    """What stands before, between and behind them; together they are the text without any."""
    return _SEQUENCE.split(text)


def coloured(line: str) -> str:
    """One line, whose colours end with it. Of what overwrites itself the last state is kept, as a terminal shows it."""
    shown, ends = "", 0
    line = line.rstrip("\r\n").rpartition("\r")[2]
    for colour in COLOUR.finditer(line):
        shown += plain(line[ends : colour.start()]) + colour[0]
        ends = colour.end()
    shown += plain(line[ends:])
    return f"{shown}{RESET}" if ends and not shown.endswith((RESET, "\x1b[m")) else shown


def without_credentials(text: str) -> str:
    for pattern in CREDENTIALS:
        text = pattern.sub("***", text)
    return text
