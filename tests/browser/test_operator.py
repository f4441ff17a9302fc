"""An operator's way through the page: the queue by mouse and by keyboard, pauses, limits, slots, workers, insight."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Route, expect

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.browser.conftest import Visit
from tests.browser.visitor import Visitor
from tests.fixtures.installation import Installation, installed

POLICY = """
[queue]
cap = 8
user_share = 8
"""
LONG = {"stages": {"code": 300}}
QUICK = {"stages": dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.05)}


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("operator"), policy=POLICY, workers=1, slots=2) as installation:
        yield installation


@pytest_asyncio.fixture
async def una(there: Installation) -> AsyncIterator[httpx.AsyncClient]:
    """The API in the name of a user whose jobs are overseen."""
    async with there.client("una", Tier.CTO_SCALE) as client:
        yield client


@pytest_asyncio.fixture
async def ops(there: Installation, una: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    """The API in an operator's name. What a test leaves behind is resumed, and ends."""
    async with there.client("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops") as client:
        yield client
        for pause in (await client.get("/queue")).json()["paused"]:
            await client.post("/queue/resume", json={"scope": pause["scope"]})
        await una.post("/jobs/cancel", json={"project": "yard"})
        await eventually(lambda: nothing_left(client))


async def nothing_left(client: httpx.AsyncClient) -> bool:
    workers = (await client.get("/workers")).json()
    return (await client.get("/queue")).json()["length"] == 0 and not any(each["jobs"] for each in workers)


def operator(there: Installation) -> str:
    return there.token("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops")


async def submit(una: httpx.AsyncClient, **body: Any) -> str:
    answer = await una.post("/jobs", json={"project_id": "yard", "pipeline": "rehearsal", "input": LONG} | body)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def waiting(ops: httpx.AsyncClient, una: httpx.AsyncClient, *, count: int = 4) -> list[str]:
    """Jobs that wait in this order, as their pool is paused."""
    await ops.post("/queue/pause", json={"scope": "pool:default", "reason": "a test moves jobs"})
    return [await submit(una) for _ in range(count)]


async def order(ops: httpx.AsyncClient) -> list[str]:
    return [line["job_id"] for line in (await ops.get("/queue")).json()["jobs"]]


async def shown(olga: Visitor) -> list[str | None]:
    return [await row.get_attribute("data-job") for row in await olga.page.locator("table.queue tbody tr").all()]


async def test_a_job_is_dragged_to_another_place(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    first, second, third, fourth = await waiting(ops, una)

    async with visit(there, operator(there)) as olga:
        await olga.go("queue")
        rows = olga.page.locator("table.queue tbody tr")
        await expect(rows).to_have_count(4)
        await olga.look("queue-paused")
        target = await rows.nth(1).bounding_box()
        assert target is not None

        await rows.nth(3).get_by_role("button", name="Move job").hover()
        await olga.page.mouse.down()
        await olga.page.mouse.move(60, target["y"] + 20, steps=5)
        await olga.page.mouse.move(60, target["y"] + 4, steps=3)
        await expect(rows.nth(1)).to_have_class("normal over paused")
        await olga.look("queue-dragged")
        await olga.page.mouse.up()

        await expect(olga.page.get_by_text("Moved.")).to_be_visible()
        assert await order(ops) == [first, fourth, second, third]
        await expect(rows.nth(1)).to_have_attribute("data-job", fourth)


async def test_a_job_is_moved_by_keyboard_alone(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    first, second, third, fourth = await waiting(ops, una)

    async with visit(there, operator(there)) as olga:
        await olga.go("queue")
        await olga.page.get_by_role("button", name=f"Move job {first}").focus()
        for key in ("Space", "ArrowDown", "ArrowDown", "ArrowUp"):
            await olga.page.keyboard.press(key)
        await expect(olga.page.get_by_text("Place 2 of 4.")).to_be_attached()
        await olga.page.keyboard.press("Escape")
        assert await order(ops) == [first, second, third, fourth]

        for key in ("Space", "ArrowDown", "ArrowDown", "ArrowDown", "Space"):
            await olga.page.keyboard.press(key)

        await expect(olga.page.get_by_text("Moved.")).to_be_visible()
        assert await order(ops) == [second, third, fourth, first]
        await expect(olga.page.get_by_role("button", name=f"Move job {first}, on line 4")).to_be_focused()


async def test_a_job_is_sent_to_a_place_with_a_reason(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    first, second, *_, last = await waiting(ops, una)

    async with visit(there, operator(there)) as olga:
        await olga.go("queue")
        await olga.page.get_by_role("button", name=f"Move {last} to a place").click()
        await olga.look("dialog-move")
        await olga.answer("Move it", reason="the customer waits", before_the_job_at=first)

        await expect(olga.page.locator("table.queue tbody tr").first).to_have_attribute("data-job", last)
        assert (await order(ops))[:3] == [last, first, second]
    assert [act["reason"] for act in (await ops.get("/audit")).json() if act["about"] == last] == ["the customer waits"]


async def test_a_class_is_changed_and_a_job_cancelled(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    first, second, third, fourth = await waiting(ops, una)

    async with visit(there, operator(there)) as olga:
        await olga.go("queue")
        await olga.page.get_by_label(f"Priority of {fourth}").select_option("urgent")
        await olga.answer("Change it", reason="an outage")
        await olga.page.get_by_role("button", name=f"Cancel {second}").click()
        await olga.answer("Cancel the job")

        await expect(olga.page.locator("table.queue tbody tr")).to_have_count(3)
        assert await shown(olga) == [fourth, first, third] == await order(ops)


async def test_a_scope_is_paused_and_resumed(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    async with visit(there, operator(there)) as olga:
        await olga.go("queue")
        await expect(olga.page.get_by_text("Nobody waits")).to_be_visible()
        await olga.page.get_by_role("button", name="Pause…").click()
        await olga.answer("Pause it", what="priority", which="low", reason="a release")
        pause = olga.page.get_by_role("list", name="1 pause")
        await expect(pause).to_contain_text("priority:low is paused by olga")
        await expect(pause).to_contain_text("a release")
        low = await submit(una, priority="low")
        await expect(olga.page.get_by_role("row", name=low)).to_contain_text("paused by olga")
        await olga.look("queue-class-paused")

        await olga.page.get_by_role("button", name="Resume priority:low").click()
        await olga.answer("Resume")

        await expect(pause).to_have_count(0)
        await expect(olga.page.get_by_role("row", name=low)).to_have_count(0)


async def test_a_limit_is_changed_and_counts_at_once(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    for _ in range(2):
        await submit(una, input=LONG, concurrency_group="db", concurrency_limit=1)

    async with visit(there, operator(there)) as olga:
        await olga.go("groups")
        group = olga.page.get_by_role("article", name="group:una:yard:db")
        await expect(group).to_contain_text("1 of 1 slot taken")
        await expect(group).to_contain_text("1 waiting")
        await olga.look("groups")
        await olga.page.get_by_role("button", name="Change the limit of group:una:yard:db").click()
        await olga.answer("Set the limit", slots="2", reason="a second one stands")

        await expect(group).to_contain_text("2 of 2 slots taken")
        await expect(olga.page.get_by_role("article").first).to_contain_text("2 of 2 slots taken")  # the fullest first


async def test_a_slot_is_freed_by_force(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    running = await submit(una)

    async with visit(there, operator(there)) as olga:
        await olga.go("groups")
        group = olga.page.get_by_role("article", name="project:una:yard")
        await group.get_by_role("button", name=f"Free the slot of {running}").click()
        dialog = olga.page.get_by_role("dialog")
        await expect(dialog).to_contain_text("its attempt is given back")
        await olga.answer("Leave it")
        await expect(group.get_by_role("link", name="Rehearsal for yard")).to_have_attribute(
            "href", f"#/jobs/{running}"
        )
        await expect(group.get_by_role("button", name=f"Copy the job {running}")).to_be_visible()

        await group.get_by_role("button", name=f"Free the slot of {running}").click()
        await olga.answer("Free it", reason="it hangs")

        await expect(olga.page.get_by_text("the attempt is given back")).to_be_visible()

    async def attempts() -> bool:
        return (await ops.get(f"/jobs/{running}")).json()["attempt"] == 2

    await eventually(attempts)


async def test_workers_show_their_slots_and_jobs(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    running = await submit(una)

    async with visit(there, operator(there)) as olga:
        await olga.go("workers")
        await expect(olga.page.get_by_text("1 worker, 1 of 2 slots taken")).to_be_visible()
        await olga.look("workers")

        await olga.page.locator(f"a[href$='{running}']").first.click()

        await expect(olga.page.locator(".job-head")).to_contain_text("Writing code")


async def estimate_is_told(una: httpx.AsyncClient) -> bool:
    would = await una.post(
        "/jobs", params={"dry_run": "true"}, json={"project_id": "yard", "pipeline": "rehearsal", "input": QUICK}
    )
    return would.json()["queue"]["estimate_seconds"] is not None


async def forecast_was_judged(ops: httpx.AsyncClient) -> bool:
    said = (await ops.get("/queue/analytics")).json()
    return any(each["tier"] == "cto_scale" for each in said["forecast"])


async def is_ready(una: httpx.AsyncClient, job: str) -> bool:
    return (await una.get(f"/jobs/{job}")).json()["status"] == "ready"


async def test_insight_tells_waits_forecasts_refusals_and_acts(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    for _ in range(2):  # the first of all is told no estimate: no job has ended yet
        job = await submit(una, input=QUICK, priority="high")
        await eventually(lambda job=job: is_ready(una, job))
        await eventually(lambda: estimate_is_told(una))
    await eventually(lambda: forecast_was_judged(ops))
    assert (await una.post("/jobs", json={"project_id": "yard"})).status_code == 422
    await waiting(ops, una, count=8)
    assert (await una.post("/jobs", json={"project_id": "yard", "input": {"prompt": "x"}})).status_code == 503

    async with visit(there, operator(there)) as olga:
        await olga.go("insight")
        await expect(olga.card("Waits by priority and tier").get_by_role("img", name="high, cto scale")).to_be_visible()
        await expect(olga.card("Was the forecast right?").get_by_role("img", name="cto scale:")).to_be_visible()
        await expect(olga.card("Refused submissions").get_by_role("row", name="busy")).to_be_visible()
        await expect(olga.card("Who did what").get_by_role("row", name="pool:default").first).to_contain_text(
            "a test moves jobs"
        )
        await olga.look("insight")


async def test_lists_and_charts_say_how_far_the_index_is_and_no_more_once_it_is_there(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    async def still_reading(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, headers=answer.headers | {"headgate-catching-up": "1200/5000"})

    async with visit(there, operator(there)) as olga:
        await olga.page.route(re.compile(r"/v1/(jobs\?|stats|workers/attempts)"), still_reading)
        for view, region in (("jobs", "Jobs"), ("insight", "Over time"), ("workers", "What they did")):
            await olga.go(view)
            await expect(olga.card(region).get_by_role("status").filter(has_text="24 % of it")).to_be_visible()
        await olga.go("insight")
        await olga.page.unroute_all(behavior="wait")

        await expect(olga.page.get_by_text("Still reading the log")).to_have_count(0)


async def test_a_reason_that_others_wrote_is_shown_as_text(
    there: Installation, ops: httpx.AsyncClient, una: httpx.AsyncClient, visit: Visit
) -> None:
    evil = "<img src=x onerror=\"document.title = 'taken'\">"
    await ops.post("/queue/pause", json={"scope": f"user:{evil}", "reason": evil})
    await ops.post("/queue/pause", json={"scope": "all", "reason": evil})
    await submit(una, labels={"note": evil})

    async with visit(there, operator(there)) as olga:
        await olga.go("queue")
        await expect(olga.page.get_by_role("list", name="2 pauses")).to_contain_text(evil)
        await expect(olga.page.get_by_role("row", name="una")).to_contain_text(evil)
        await olga.go("insight")
        await expect(olga.card("Who did what").get_by_role("cell", name=evil).first).to_be_visible()

        assert await olga.page.title() == "Insight · Headgate"
        assert await olga.page.locator("img[src=x]").count() == 0


async def test_a_user_is_shown_no_view_of_operators(there: Installation, visit: Visit) -> None:
    async with visit(there, there.token("una", Tier.PARTNER)) as una:
        await una.go("queue")

        await expect(una.page.get_by_role("heading", name="Your jobs")).to_be_visible()
        await expect(una.page.get_by_role("navigation", name="Views").get_by_role("link")).to_have_count(1)
