"""How every view looks: to axe-core, on a phone and on a wide screen, by day and by night; and how keys walk it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.browser.conftest import Visit
from tests.browser.visitor import PIPELINES, Visitor
from tests.fixtures.installation import Installation, installed

POLICY = """
[tiers.partner]
cycles_per_batch = 2
"""
QUICK = {"stages": dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.1), "log_lines": 30}
LONG = {"stages": {"scaffold": 0.1, "code": 900}, "log_lines": 400}
LONG_NAME = "a-name-that-goes-on-and-on-without-any-place-to-break-it-60chars"
SCREENS: list[tuple[int, Literal["dark", "light"]]] = [(360, "dark"), (1600, "light")]


@dataclass(frozen=True)
class Scene:
    """An installation in which something of everything is to be seen."""

    there: Installation
    jobs: dict[str, str]  # what is to be seen of it → its id

    def user(self) -> str:
        return self.there.token(LONG_NAME, Tier.PARTNER)

    def operator(self) -> str:
        return self.there.token("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops")


@pytest_asyncio.fixture(scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    folder = tmp_path_factory.mktemp("views")
    async with (
        installed(folder, policy=POLICY, workers=1, slots=4, environ=PIPELINES) as there,
        there.client(LONG_NAME, Tier.PARTNER) as user,
    ):
        yield Scene(there, await _jobs_in_every_state(user))
        await user.post("/jobs/cancel", json={"project": LONG_NAME})


async def _jobs_in_every_state(user: httpx.AsyncClient) -> dict[str, str]:
    async def submit(**body: Any) -> str:
        told = {"project_id": LONG_NAME, "pipeline": "rehearsal", "labels": {"team": "x" * 128}}
        answer = await user.post("/jobs", json=told | body)
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]

    async def have(status: str, *names: str) -> bool:
        return all([(await user.get(f"/jobs/{jobs[name]}")).json()["status"] == status for name in names])

    failure = {"summary": "It did not fit. " * 12, "detail": "x" * 400, "lines": ["y" * 600, "z z " * 200]}
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    jobs = {
        "ready": await submit(input=QUICK, title="It goes on and on for a whole line. " * 5),
        "asks": await submit(input=QUICK | {"failing_cycles": 9}),
        "failed": await submit(pipeline="speaking", input=failure),
        "scheduled": await submit(input=QUICK, run_at=tomorrow),
    }
    await eventually(lambda: have("ready", "ready"))
    await eventually(lambda: have("awaiting_confirmation", "asks"))
    jobs |= {f"running {number}": await submit(input=LONG) for number in range(3)}
    await eventually(lambda: have("code", "running 0"))
    return jobs | {name: await submit(input=QUICK, project_id=name) for name in ("queued", "cancelled")}


async def walk(person: Visitor, views: dict[str, tuple[str, str]]) -> list[str]:
    """Every view, once this is seen in it, on every screen: a picture of it, and what axe-core finds."""
    found: list[str] = []
    for name, (view, seen) in views.items():
        await person.go(view)
        await expect(person.page.get_by_text(seen).first).to_be_visible()
        for width, scheme in SCREENS:
            await person.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await person.page.set_viewport_size({"width": width, "height": 900})
            await person.look(f"view-{name}-{width}-{scheme}")
            found += [f"{name} at {width}, {scheme}: {each}" for each in await person.audit()]
    return found


async def test_a_page_that_breaks_its_rules_is_caught(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there) as anybody:
        await anybody.page.evaluate("document.querySelector('label').remove()")
        await anybody.page.evaluate("document.body.setAttribute('style', 'color: red')")
        await anybody.page.evaluate("fetch('http://127.0.0.1:9/').catch(() => {})")
        await anybody.page.evaluate("setTimeout(() => { throw new Error('a fault') })")

        assert any(found.startswith("label:") for found in await anybody.audit())
        await eventually(lambda: len(anybody.wrongs) >= 4)
        told = "\n".join(anybody.wrongs)
        assert all(word in told for word in ("CSP: style-src", "CSP: connect-src", "a fault"))
        anybody.wrongs.clear()


async def test_the_door_is_for_everybody(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there) as anybody:
        assert await walk(anybody, {"door": ("jobs", "Sign in to Headgate")}) == []


async def test_an_empty_list_is_for_everybody(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there, scene.there.token("new", Tier.BOOTSTRAPPER)) as new:
        await expect(new.page.get_by_text("Nothing here yet")).to_be_visible()

        assert await walk(new, {"first": ("jobs", "Nothing here yet")}) == []


async def test_every_view_of_a_user_is_for_everybody(scene: Scene, visit: Visit) -> None:
    shown = {
        "queued": "slots are taken",
        "running 0": "line 1 of 400",
        "asks": "Continue for 2 more",
        "failed": "yyyyyyyy",
        "ready": "Download the result",
        "scheduled": "It enters the queue",
    }

    async with visit(scene.there, scene.user()) as user:
        await expect(user.page.locator("article.job")).to_have_count(len(scene.jobs))
        views = {f"job-{name.split()[0]}": (f"jobs/{scene.jobs[name]}", seen) for name, seen in shown.items()}

        assert await walk(user, {"jobs": ("jobs", "Asks you")} | views) == []


async def test_every_view_of_an_operator_is_for_everybody(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there, scene.operator()) as olga:
        views = {
            "queue": ("queue", "slots are taken"),
            "groups": ("groups", "3 of 3 slots taken"),
            "workers": ("workers", "What they did"),
            "insight": ("insight", "Was the forecast right?"),
        }

        assert await walk(olga, views) == []


async def test_a_question_before_an_act_is_for_everybody(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there, scene.operator()) as olga:
        await olga.go("queue")
        await olga.page.get_by_role("button", name="Pause…").click()

        assert await olga.audit() == []
        await olga.page.keyboard.press("Escape")
        await expect(olga.page.get_by_role("button", name="Pause…")).to_be_focused()


async def test_keys_walk_from_the_skip_link_to_the_content(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there, scene.there.token("new", Tier.BOOTSTRAPPER)) as new:
        await expect(new.page.get_by_text("Nothing here yet")).to_be_visible()
        await new.page.keyboard.press("Tab")
        await expect(new.page.get_by_role("link", name="To the content")).to_be_focused()
        await expect(new.page.get_by_role("link", name="To the content")).to_be_in_viewport()
        await new.look("skip-link")
        await new.page.keyboard.press("Enter")
        await expect(new.page.locator("#main")).to_be_focused()

        assert (await next_focus(new)).strip() == "All"


async def test_a_job_is_submitted_and_opened_by_keys_alone(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there, scene.there.token("keys", Tier.BOOTSTRAPPER)) as keys:
        await expect(keys.page.get_by_text("Nothing here yet")).to_be_visible()
        await keys.page.keyboard.press("n")
        await until_focused(keys, "Submit")
        await keys.page.keyboard.press("Enter")
        await expect(keys.job("A URL shortener with expiry")).to_be_visible()
        await until_focused(keys, "A URL shortener with expiry")
        await keys.page.keyboard.press("Enter")

        await expect(keys.page.get_by_role("heading", name="A URL shortener with expiry")).to_be_visible()
        await expect(keys.page.locator("#main")).to_be_focused()


async def test_whatever_has_the_focus_is_seen_to_have_it(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there, scene.user()) as user:
        await expect(user.page.locator("article.job")).to_have_count(len(scene.jobs))
        for _ in range(40):
            await user.page.keyboard.press("Tab")
            assert await user.page.evaluate(HAS_OUTLINE), await user.page.evaluate("document.activeElement.outerHTML")


async def test_a_narrow_screen_is_not_eaten_by_the_frame(scene: Scene, visit: Visit) -> None:
    async with visit(scene.there, scene.operator(), width=360) as olga:
        await olga.go("queue")
        bar = await olga.page.locator("header.bar").bounding_box()
        assert bar is not None
        assert bar["height"] <= 96

    async with visit(scene.there, scene.user(), width=360) as user:
        await expect(user.page.locator("article.job")).to_have_count(len(scene.jobs))
        await user.page.mouse.wheel(0, 400)
        await expect(user.page.locator("header.bar")).not_to_be_in_viewport()


HAS_OUTLINE = """
() => {
  const one = document.activeElement, outlined = (part) => getComputedStyle(one, part).outlineStyle !== "none";
  return one === document.body || outlined(null) || outlined("::after");
}
"""
FOCUSED = """
() => {
  const one = document.activeElement;
  return one.labels?.[0]?.textContent ?? one.getAttribute("aria-label") ?? one.textContent;
}
"""


async def next_focus(person: Visitor) -> str:
    await person.page.keyboard.press("Tab")
    return await person.page.evaluate(FOCUSED)


async def until_focused(person: Visitor, name: str) -> None:
    walked = [await next_focus(person)]
    while walked[-1] != name:
        assert len(walked) < 60, walked
        walked.append(await next_focus(person))
