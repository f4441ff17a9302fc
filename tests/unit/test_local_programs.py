"""Which copy of a server is run: a right one on the path, else the one that its package has brought."""

from __future__ import annotations

from pathlib import Path

import pytest

from libs.local.errors import BinaryMissing
from libs.local.programs import CADDY, NATS_SERVER, VALKEY_SERVER, Program, is_right, path_of, version_in

SERVERS = (NATS_SERVER, VALKEY_SERVER, CADDY)


@pytest.fixture(autouse=True)
def _nothing_is_known() -> None:
    path_of.cache_clear()


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("nats-server: v2.15.1", (2, 15, 1)),
        ("Server v=9.1.2 sha=00000000:0 malloc=libc bits=64 build=3f5e", (9, 1, 2)),
        ("v2.11.7 h1:XxGo9h1d2lDbyM3nqFdZ6MM3cAlV0H3zRJZ1/xCxDVI=", (2, 11, 7)),
        ("9.1.2.post2", (9, 1, 2)),
        ("command not found", None),
    ],
)
def test_each_says_its_version_in_words_of_its_own(said: str, version: tuple[int, ...] | None) -> None:
    assert version_in(said) == version


@pytest.mark.parametrize(
    ("version", "right"),
    [((2, 15, 1), True), ((2, 15, 4), True), ((2, 15, 0), False), ((2, 16, 0), False), ((3, 15, 1), False)],
)
def test_a_later_patch_of_what_was_tried_is_right_and_nothing_else(version: tuple[int, ...], right: bool) -> None:  # noqa: FBT001
    assert is_right(version, tried=(2, 15, 1)) is right


def test_a_version_that_nobody_knows_is_not_right() -> None:
    assert not is_right(None, tried=(2, 15, 1))
    assert not is_right((2, 15, 1), tried=None)


@pytest.mark.parametrize("program", SERVERS, ids=lambda program: program.name)
def test_the_package_has_it_where_the_path_has_none(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    assert path_of(program).name == program.name
    assert path_of(program).is_file()


@pytest.mark.parametrize(
    ("says", "taken"), [("echo v2.15.9", True), ("echo v2.10.0", False), ("echo v2.15.9; exit 1", False)]
)
def test_a_right_one_on_the_path_comes_first(
    says: str,
    taken: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = tmp_path / NATS_SERVER.name
    mine.write_text(f"#!/bin/sh\n{says}\n")
    mine.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert (path_of(NATS_SERVER) == mine) is taken


def test_what_is_nowhere_is_named_with_the_package_that_brings_it() -> None:
    with pytest.raises(BinaryMissing, match=r"There is no chess-server.*the package chess-server-bin"):
        path_of(Program("chess-server", package="chess-server-bin", asked="--version"))
