"""What `.editorconfig` says is compared as it is written: patterns, the last section that names a file, each fault."""

from __future__ import annotations

from typing import Final

import pytest

from tests.editorconfig import expand, faults, rules_of, sections

CONFIG: Final = sections("""\
root = true

[*]
charset = utf-8
end_of_line = lf
indent_style = space
insert_final_newline = true
max_line_length = 20
trim_trailing_whitespace = true

[{Makefile,*.{go,mk}}]
indent_style = tab

[docs/proof/**]
max_line_length = off
""")
LONG: Final = "twenty-two characters."


def found(path: str, content: bytes) -> list[str]:
    return [fault.removeprefix(path) for fault in faults(path, content, rules_of(path, CONFIG))]


def test_braces_within_braces_are_each_of_their_patterns() -> None:
    assert expand("{Makefile,*.{go,mk}}") == ["Makefile", "*.go", "*.mk"]


@pytest.mark.parametrize(
    ("path", "content", "faults_there"),
    [
        ("a/b.lua", b"local a\n", []),
        ("a/b.lua", b"local a", [": no newline at its end"]),
        ("a/b.lua", b"local a \r\n", [":1: ends in CR LF", ":1: trailing space"]),
        ("a/b.lua", b"a\n\tb\n", [":2: indented otherwise than by spaces"]),
        ("a/b.lua", b"\xff\n", [": not UTF-8"]),
        ("a/b.lua", f"{LONG}\n".encode(), [":1: 22 wide, 20 is the limit"]),
        ("a/b.png", b"\0\xff", []),
        ("deep/Makefile", b"a:\n    b\n", [":2: indented otherwise than by tabs"]),
        ("deep/a.mk", b"a:\n\tb\n", []),
        ("docs/proof/a.md", f"{LONG}\n".encode(), []),
        ("docs/a.md", f"| {LONG} |\n\n```\n{LONG}\n```\n{LONG}\n".encode(), [":6: 22 wide, 20 is the limit"]),
        ("a.py", f"\t{LONG}\n".encode(), []),
    ],
)
def test_each_line_that_is_not_as_the_rules_say_is_named(path: str, content: bytes, faults_there: list[str]) -> None:
    assert found(path, content) == faults_there
