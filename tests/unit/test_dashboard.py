"""The page's files: nothing from elsewhere, nothing inline, and libraries that are what they say they are."""

from __future__ import annotations

import hashlib
import json
import re

import httpx
import pytest
from fastapi import FastAPI

from services.notifier.pages import DASHBOARD, HEADERS, page

ASSETS = DASHBOARD / "assets"
VENDOR = ASSETS / "vendor"
AXE = DASHBOARD.parents[2] / "tests/browser"
HEAD = {name.lower(): value for name, value in HEADERS.items()}
OWN = sorted(path for path in ASSETS.rglob("*.js") if VENDOR not in path.parents)
PAGE = (DASHBOARD / "index.html").read_text()


def served() -> httpx.AsyncClient:
    """Somebody who asks for the page, without a network."""
    app = FastAPI()
    app.include_router(page())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://page")


def test_each_library_is_the_one_that_was_written_down_with_its_licence() -> None:
    written = json.loads((VENDOR / "vendor.json").read_text())

    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.glob("*.[cj]s*")
        if path.suffix != ".json"
    }

    assert found == {name: each["sha256"] for name, each in written.items()}
    for each in written.values():
        assert each["made_of"].keys() == each["licences"].keys()
    assert {path.stem.removeprefix("LICENSE.") for path in VENDOR.glob("LICENSE.*")} == {
        "preact",
        "htm",
        "signals",
        "uplot",
    }


def test_what_looks_at_the_page_in_tests_is_what_was_written_down() -> None:
    written = json.loads((AXE / "axe.json").read_text())["axe.min.js"]

    assert hashlib.sha256((AXE / "axe.min.js").read_bytes()).hexdigest() == written["sha256"]
    assert "Mozilla Public License" in (AXE / "LICENSE.axe.txt").read_text()


def test_the_page_asks_no_other_host_and_has_nothing_inline() -> None:
    assert not re.search(r"https?://", PAGE)
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|javascript:", PAGE)
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


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


def test_every_script_is_asked_for_at_once() -> None:
    """Not one after the other, as each is found in the one before. What draws charts is fetched by charts alone."""
    asked = re.findall(r'(?:modulepreload" href|src)="/assets/([^"]+)"', PAGE)

    assert sorted(asked) == sorted(
        path.relative_to(ASSETS).as_posix() for path in {*ASSETS.rglob("*.js")} - {VENDOR / "uplot.js"}
    )


@pytest.mark.parametrize(("path", "kind"), [("/", "text/html"), ("/assets/js/main.js", "text/javascript")])
async def test_a_browser_that_has_a_file_is_sent_nothing(path: str, kind: str) -> None:
    async with served() as client:
        first = await client.get(path)
        again = await client.get(path, headers={"If-None-Match": first.headers["etag"]})
        other = await client.get(path, headers={"If-None-Match": '"0"'})

    assert [answer.status_code for answer in (first, again, other)] == [200, 304, 200]
    assert first.headers["content-type"].startswith(kind)
    assert (again.content, other.content) == (b"", first.content)
    assert all(HEAD.items() <= answer.headers.items() for answer in (first, again))


@pytest.mark.parametrize("path", ["/assets/js/no.js", "/assets/", "/assets/../index.html", "/assets/%2e%2e/index.html"])
async def test_nothing_else_is_there(path: str) -> None:
    async with served() as client:
        assert (await client.get(path)).status_code == 404


def test_every_style_sheet_is_linked_and_there() -> None:
    linked = re.findall(r'href="/assets/css/([^"]+)"', PAGE)

    assert sorted(linked) == sorted(path.name for path in (ASSETS / "css").iterdir())


def test_every_colour_of_the_day_has_its_twin_of_the_night() -> None:
    tokens = (ASSETS / "css/tokens.css").read_text()
    day, night = (set(re.findall(r"--[\w-]+(?=: (?:#|rgb|0 ))", part)) for part in tokens.split("@media"))

    assert day == night
