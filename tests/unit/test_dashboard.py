"""The page's files: nothing from elsewhere, nothing inline, and libraries that are what they say they are."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from services.notifier.api import DASHBOARD, PAGE_HEADERS

ASSETS = DASHBOARD / "assets"
VENDOR = ASSETS / "vendor"
AXE = DASHBOARD.parents[2] / "tests/browser"
OWN = sorted(path for path in ASSETS.rglob("*.js") if VENDOR not in path.parents)
PAGE = (DASHBOARD / "index.html").read_text()


def test_each_library_is_the_one_that_was_written_down_with_its_licence() -> None:
    written = json.loads((VENDOR / "vendor.json").read_text())

    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.glob("*.js")}

    assert found == {name: each["sha256"] for name, each in written.items()}
    for each in written.values():
        assert each["made_of"].keys() == each["licences"].keys()
    assert {path.stem.removeprefix("LICENSE.") for path in VENDOR.glob("LICENSE.*")} == {"preact", "htm", "signals"}


def test_what_looks_at_the_page_in_tests_is_what_was_written_down() -> None:
    written = json.loads((AXE / "axe.json").read_text())["axe.min.js"]

    assert hashlib.sha256((AXE / "axe.min.js").read_bytes()).hexdigest() == written["sha256"]
    assert "Mozilla Public License" in (AXE / "LICENSE.axe.txt").read_text()


def test_the_page_asks_no_other_host_and_has_nothing_inline() -> None:
    assert not re.search(r"https?://", PAGE)
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|javascript:", PAGE)
    assert "default-src 'none'" in PAGE_HEADERS["Content-Security-Policy"]
    assert "unsafe" not in PAGE_HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_a_script_puts_nothing_into_the_page_but_text(path: object) -> None:
    code = path.read_text()  # type: ignore[attr-defined]

    for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "dangerouslySetInnerHTML", "eval("):
        assert door not in code
    assert not re.search(r"https?://", code)


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_every_import_of_a_script_is_there(path: object) -> None:
    code = path.read_text()  # type: ignore[attr-defined]

    for name in re.findall(r'from "([^"]+)"', code):
        target = DASHBOARD / name.removeprefix("/") if name.startswith("/") else path.parent / name  # type: ignore[attr-defined]
        assert target.is_file(), f"{path}: {name}"


def test_every_style_sheet_is_linked_and_there() -> None:
    linked = re.findall(r'href="/assets/css/([^"]+)"', PAGE)

    assert sorted(linked) == sorted(path.name for path in (ASSETS / "css").iterdir())


def test_every_colour_of_the_day_has_its_twin_of_the_night() -> None:
    tokens = (ASSETS / "css/tokens.css").read_text()
    day, night = (set(re.findall(r"--[\w-]+(?=: (?:#|rgb|0 ))", part)) for part in tokens.split("@media"))

    assert day == night
