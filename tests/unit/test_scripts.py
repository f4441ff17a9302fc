"""The view's Lua as text: how it is put together, and what every file of it must say."""

import re
from pathlib import Path

import pytest

from libs.capacity.errors import ViewMisused
from libs.capacity.keys import KEYS, TICKET, TICKETS
from libs.capacity.lua_files import FOLDER, PIECES, load_scripts

VERBS = sorted(FOLDER.glob("*.lua"))
PIECE_FILES = sorted(PIECES.glob("*.lua"))
MAKES_VIEWS = {"begin_v1"}  # the one verb that needs no view
NEEDS_NO_VIEW = {"hold_lead_v1", "drop_lead_v1", "keep_ticket_v1"}  # of a key of their own
BY_HAND = "space .."  # how a key would be made without declaring it


def header_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[: next(at for at, line in enumerate(lines) if not line.startswith("--"))]


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def load(folder: Path) -> str:
    write(folder, "shared/key.lua", (PIECES / "key.lua").read_text(encoding="utf-8"))
    write(folder, "shared/piece.lua", "-- piece\n")
    return load_scripts(folder, pieces=folder / "shared")["verb_v1"].text


@pytest.mark.parametrize("path", VERBS, ids=lambda path: path.stem)
def test_every_verb_says_what_it_takes_gives_and_keeps(path: Path) -> None:
    header = "\n".join(header_of(path))

    assert re.match(r"-- [A-Z][^\n]*[.:,a-z]\n", header)
    words = re.findall(r"^--   (KEYS\[1\]|ARGV|GIVES|KEEPS)(?:\[\d\])?  ", header, re.MULTILINE)
    assert list(dict.fromkeys(words)) == ["KEYS[1]", "ARGV", "GIVES", "KEEPS"]


@pytest.mark.parametrize("path", VERBS, ids=lambda path: path.stem)
def test_every_verb_has_a_version(path: Path) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*_v[1-9]", path.stem)


@pytest.mark.parametrize("path", PIECE_FILES, ids=lambda path: path.stem)
def test_every_piece_says_what_it_is_and_is_used(path: Path) -> None:
    assert header_of(path)
    everything = "".join(file.read_text(encoding="utf-8") for file in VERBS + PIECE_FILES)
    used = re.findall(r"^-- include: (\S+)\.lua$|^-- use: (\S+)$", everything, re.MULTILINE)
    assert path.stem in {name for names in used for name in names} | {"key", "piece"}


@pytest.mark.parametrize("verb", sorted(load_scripts().keys() - MAKES_VIEWS - NEEDS_NO_VIEW))
def test_every_verb_asks_first_whether_this_is_its_view(verb: str) -> None:
    code = re.sub(r"^\s*--.*\n", "", load_scripts()[verb].text, flags=re.MULTILINE)

    before, _, _ = code.partition("VIEW_LOST")
    assert re.findall(r"redis\.call\('(\w+)'", before) == ["HMGET"]


@pytest.mark.parametrize("path", VERBS + PIECE_FILES, ids=lambda path: path.stem)
def test_no_lua_makes_a_key_by_hand(path: Path) -> None:
    code = path.read_text(encoding="utf-8")

    made = [line for line in code.splitlines() if BY_HAND in line and "'MATCH', space .. '*'" not in line]
    assert not made or path.name == "key.lua"
    assert "{hg:" not in code


def test_every_declared_key_is_used_by_a_script() -> None:
    everything = "".join(script.text for script in load_scripts().values())

    assert {key.name for key in (*KEYS, TICKET, TICKETS)} == set(re.findall(r"\bkey\('(\w+)'", everything))


def test_a_piece_stands_once_and_behind_what_it_uses(tmp_path: Path) -> None:
    write(tmp_path, "verb_v1.lua", "-- use: upper\n-- use: lower\n-- use: upper\nreturn 1\n")
    write(tmp_path, "shared/upper.lua", "-- Upper.\n-- use: lower\nfunction upper.one() return lower.one() end\n")
    write(tmp_path, "shared/lower.lua", "-- Lower.\nfunction lower.one() return 1 end\n")

    text = load(tmp_path)

    assert text.count("function lower.one") == text.count("function upper.one") == 1
    assert text.index("local lower = piece(function(lower)") < text.index("local upper = piece(function(upper)")


def test_an_included_piece_stands_where_it_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "verb_v1.lua", "local a = 1\n-- include: head.lua\nreturn b\n")
    write(tmp_path, "shared/head.lua", "local b = a\n")

    assert load(tmp_path) == "local a = 1\nlocal b = a\nreturn b\n"


def test_a_missing_piece_is_named(tmp_path: Path) -> None:
    write(tmp_path, "verb_v1.lua", "-- use: nothing\nreturn 1\n")

    with pytest.raises(ViewMisused, match=r"nothing\.lua"):
        load(tmp_path)


@pytest.mark.parametrize("call", ["key('cellar')", "key('queue', 1)", "key('line')"])
def test_a_key_that_is_not_declared_like_this_is_refused(tmp_path: Path, call: str) -> None:
    write(tmp_path, "verb_v1.lua", f"return {call}\n")

    with pytest.raises(ViewMisused, match=r"keys\.py"):
        load(tmp_path)


def test_a_script_knows_its_commands(tmp_path: Path) -> None:
    write(tmp_path, "verb_v1.lua", "redis.call('HSET', key('queue'), 'a', 1)\nreturn redis.call('TIME')\n")
    write(tmp_path, "shared/key.lua", "local space\n")
    write(tmp_path, "shared/piece.lua", "")

    scripts = load_scripts(tmp_path, pieces=tmp_path / "shared")

    assert scripts["verb_v1"].commands == {"hset", "time"}
