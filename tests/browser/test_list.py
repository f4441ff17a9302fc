"""Finding jobs: the table, its filters in the address, the keyboard, the palette, and what is done to many at once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import expect

from headgate_contracts import Tier
from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor
from tests.fixtures.installation import Installation, installed

JOBS = 48
POLICY = """
[queue]
user_share = 100
[submissions]
per_minute = 1000
"""
TITLES = ("A URL shortener with expiry", "Import the March invoices", "Statistics over a CSV file", "A rate limiter")
SCREENS: list[tuple[str, int, Literal["dark", "light"]]] = [
    ("wide", 1440, "light"),
    ("wide-dark", 1440, "dark"),
    ("phone", 390, "light"),
    ("phone-dark", 390, "dark"),
]
ON_THE_SCREEN = """
() => [...document.querySelectorAll("tr[data-job]")].filter((row) => {
  const {top, bottom} = row.getBoundingClientRect();
  return top >= document.querySelector(".list thead th").getBoundingClientRect().bottom - 1 && bottom <= innerHeight;
}).map((row) => row.dataset.job)
"""
TOPS = """(rows) => rows.map((row) => [row.dataset.job, row.getBoundingClientRect().top])"""


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """Everything is paused, and ann has jobs."""
    async with installed(tmp_path_factory.mktemp("list"), policy=POLICY, workers=1, slots=2) as installation:
        async with installation.client("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops") as olga:
            answer = await olga.post("/queue/pause", json={"scope": "all", "reason": "maintenance"})
            assert answer.status_code < 300, answer.text
        for number in range(JOBS):
            await submitted(installation, "ann", title=TITLES[number % 4], project_id=("shop", "blog")[number % 2])
        yield installation


async def submitted(there: Installation, user: str, **body: Any) -> str:
    async with there.client(user, Tier.CTO_SCALE) as client:
        told = {"project_id": "shop", "pipeline": "rehearsal", "input": {}} | body
        answer = await client.post("/jobs", json=told)
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]


def ann_of(there: Installation) -> str:
    return there.token("ann", Tier.CTO_SCALE)


def rows(person: Visitor) -> Any:
    return person.page.locator("tr[data-job]")


async def test_48_jobs_are_on_two_screens_and_for_everybody(there: Installation, visit: Visit) -> None:
    async with visit(there, ann_of(there), width=1440, look="table") as ann:
        await expect(rows(ann)).to_have_count(JOBS)
        await expect(ann.page.get_by_text("Everything is paused")).to_be_visible()
        await expect(rows(ann).filter(has_text="Paused by olga: maintenance")).to_have_count(JOBS)
        await expect(rows(ann).filter(has_text="#")).to_have_count(0)  # of what is paused no place counts
        first = await ann.page.evaluate(ON_THE_SCREEN)
        await ann.page.evaluate("scrollTo(0, document.body.scrollHeight)")
        second = await ann.page.evaluate(ON_THE_SCREEN)
        assert len(first) >= 20
        assert len({*first, *second}) == JOBS
        await ann.page.evaluate("scrollTo(0, 0)")
        for name, width, scheme in SCREENS:
            await ann.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await ann.page.set_viewport_size({"width": width, "height": 900})
            await ann.look(f"jobs-{name}")
            assert await ann.audit() == [], name


async def test_filters_are_in_the_address_and_back_undoes_them(there: Installation, visit: Visit) -> None:
    async with visit(there, ann_of(there), look="table") as ann:
        await expect(ann.page.get_by_role("link", name="Waiting")).to_contain_text(str(JOBS))
        await ann.page.keyboard.press("/")
        await ann.page.keyboard.type("invoices")
        await expect(rows(ann)).to_have_count(JOBS // 4)
        await ann.page.get_by_role("combobox", name="Project").select_option("shop")
        await expect(ann.page.get_by_text("No such job")).to_be_visible()

        assert ann.page.url.endswith("#/jobs?project=shop&q=invoices")
        await ann.page.go_back()
        await expect(rows(ann)).to_have_count(JOBS // 4)
        await ann.page.reload()
        await expect(ann.page.get_by_label("Search jobs")).to_have_value("invoices")
        await expect(rows(ann)).to_have_count(JOBS // 4)


async def test_keys_walk_the_list_and_open_everything(there: Installation, visit: Visit) -> None:
    async with visit(there, ann_of(there), look="table") as ann:
        await expect(rows(ann)).to_have_count(JOBS)
        for key in ("j", "j", "k", "j"):
            await ann.page.keyboard.press(key)
        await expect(rows(ann).nth(1).get_by_role("link")).to_be_focused()
        await ann.page.keyboard.press("?")
        await expect(ann.page.get_by_role("dialog", name="Keys")).to_contain_text("Next and previous job")
        assert await ann.audit() == []
        await ann.page.keyboard.press("Escape")
        await ann.page.keyboard.press("Control+k")
        await ann.page.keyboard.type("csv")
        await expect(ann.page.get_by_role("listbox").get_by_role("option").first).to_contain_text(
            "Statistics over a CSV file"
        )
        await ann.look("palette")
        assert await ann.audit() == []
        await ann.page.keyboard.press("Enter")

        await expect(ann.page.get_by_role("heading", name="Statistics over a CSV file")).to_be_visible()


async def test_who_submits_is_told_of_a_pause(there: Installation, visit: Visit) -> None:
    async with visit(there, ann_of(there), look="table") as ann:
        await ann.form()

        dialog = ann.page.get_by_role("dialog", name="New job")
        await expect(dialog).to_contain_text("Everything is paused by olga")
        await expect(dialog).to_contain_text("maintenance")
        await ann.look("submit")
        assert await ann.audit() == []


async def test_many_are_cancelled_at_once_and_each_says_what_became_of_it(there: Installation, visit: Visit) -> None:
    ended = await submitted(there, "bob", title="Ended")
    async with there.client("bob", Tier.CTO_SCALE) as client:
        await client.post(f"/jobs/{ended}/cancel", json={})
    waiting = [await submitted(there, "bob", title=f"Waits {number}") for number in range(2)]

    async with visit(there, there.token("bob", Tier.CTO_SCALE), look="table") as bob:
        await expect(rows(bob)).to_have_count(3)
        await bob.page.get_by_label("Select all that are shown").check()
        await bob.page.get_by_role("button", name="Submit again…").click()
        await bob.page.get_by_role("dialog").get_by_role("button", name="Submit again", exact=True).click()
        outcomes = bob.page.get_by_role("dialog", name="Submitted again")
        await expect(outcomes.get_by_role("status")).to_have_text("1 of 3 jobs, 2 refused")
        await bob.look("outcomes")
        await outcomes.get_by_role("button", name="Close").click()
        await expect(rows(bob)).to_have_count(4)

        await select(bob, waiting)
        await bob.page.get_by_role("button", name="Priority…").click()
        await bob.page.get_by_role("dialog").get_by_label("Priority").select_option("low")
        await bob.page.get_by_role("button", name="Change it").click()
        changed = bob.page.get_by_role("dialog", name="New priority")
        await expect(changed.get_by_role("status")).to_have_text("2 of 2 jobs")
        await changed.get_by_role("button", name="Close").click()
        await expect(rows(bob).filter(has_text="low")).to_have_count(2)

        await select(bob, waiting)
        await bob.page.get_by_role("button", name="Cancel…").click()
        await bob.page.get_by_role("dialog").get_by_role("button", name="Cancel them").click()
        await expect(bob.page.get_by_role("status").filter(has_text="2 of 2 jobs")).to_be_visible()


async def select(person: Visitor, jobs: list[str]) -> None:
    for job in jobs:
        await person.page.locator(f"tr[data-job={job}]").get_by_role("checkbox").check()


async def test_own_times_and_saved_filters_are_an_address(there: Installation, visit: Visit) -> None:
    async with visit(there, ann_of(there), look="table", timezone_id="Europe/Berlin") as ann:
        await ann.page.get_by_role("combobox", name="Time").select_option("From … to …")
        times = ann.page.get_by_role("group", name="When they were submitted, times in Europe/Berlin")
        await times.get_by_label("to").fill("2026-07-01T12:00")
        await expect(ann.page.get_by_text("No such job")).to_be_visible()
        assert ann.page.url.endswith("#/jobs?time=own&until=2026-07-01T10%3A00Z")
        await times.get_by_label("to").fill("")
        await times.get_by_label("from").fill("2026-07-01T12:00")
        await expect(rows(ann)).to_have_count(JOBS)

        saved = ann.page.get_by_role("combobox", name="Saved filters")
        await saved.select_option("Save these…")
        await ann.page.get_by_role("dialog").get_by_label("Name").fill("Since July")
        await ann.page.get_by_role("button", name="Save", exact=True).click()
        await expect(saved.locator("option:checked")).to_have_text("Since July")
        await ann.look("saved-filters")
        await ann.page.set_viewport_size({"width": 390, "height": 844})
        await expect(saved).to_be_in_viewport(ratio=1)
        await ann.look("saved-filters-phone")
        assert await ann.audit() == []
        await ann.go("jobs")
        await ann.page.reload()
        await saved.select_option("Since July")

        await expect(times.get_by_label("from")).to_have_value("2026-07-01T12:00")
        assert ann.page.url.endswith("#/jobs?time=own&since=2026-07-01T10%3A00Z")
        await saved.select_option("Forget “Since July”")
        await expect(saved.get_by_role("option", name="Save these…")).to_be_attached()


async def test_an_operator_sees_everybodys_and_no_row_moves_under_a_reader(there: Installation, visit: Visit) -> None:
    operator = there.token("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops")

    async with visit(there, operator, look="table", width=1440) as olga:
        await expect(rows(olga).nth(JOBS - 1)).to_be_visible()
        await expect(rows(olga).last).to_contain_text(re.compile(r"ann\s*\d+/\d+"))
        await olga.page.keyboard.press("j")  # somebody reads
        before = await rows(olga).evaluate_all(TOPS)
        await submitted(there, "cleo", title="Just came")
        await olga.page.get_by_role("button", name="1 new job: show").wait_for()

        assert await rows(olga).evaluate_all(TOPS) == before
        await olga.page.get_by_role("button", name="1 new job: show").click()
        await expect(rows(olga).first).to_contain_text("Just came")
        await olga.page.get_by_role("combobox", name="Owner").select_option("cleo")
        await expect(rows(olga)).to_have_count(1)
