"""The pages as docs/images shows them: `make pictures` takes each in four forms, any other run in one.

The job that was built, the one that asks and the pause come of the README's own commands; around them stand jobs as a
day brings them.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from subprocess import PIPE
from typing import Any, Final, Literal

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from headgate_contracts import Tier
from libs.runtime.eventually import eventually
from tests.browser.conftest import Visit
from tests.browser.visitor import REPOSITORY, SCREENSHOTS, Visitor
from tests.fixtures.installation import Installation, installed

POLICY: Final = """
[submissions]
per_minute = 1000
[tiers.cto_scale]
jobs_per_project = 10
"""
IMAGES: Final = REPOSITORY / "docs" / "images"
QUALITY: Final = 60  # of WebP: letters stay sharp, and a picture has 20 to 60 KB
FORMS: Final[dict[str, tuple[int, int, Literal["light", "dark"]]]] = {
    "wide": (1440, 900, "light"),
    "wide-dark": (1440, 900, "dark"),
    "phone": (390, 844, "light"),
    "phone-dark": (390, 844, "dark"),
}
README: Final = (REPOSITORY / "README.md").read_text()
[BUILD, ASKS, PAUSE] = re.findall(r"^\.venv/bin/headgate ((?:submit|queue pause) .+)$", README, flags=re.MULTILINE)
TITLES: Final = (
    "A shopping cart with vouchers",
    "Import the March invoices",
    "Statistics over a CSV file",
    "A rate limiter",
    "Search over the handbook",
    "A page for refunds",
)
PROJECTS: Final = ("shop", "search", "billing")
QUICK: Final = {"stages": dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.3), "log_lines": 12}
LONG: Final = {"stages": {"scaffold": 0.2, "code": 900}, "log_lines": 400}
WHO: Final = {"ann": Tier.CTO_SCALE, "ben": Tier.PARTNER, "cy": Tier.BOOTSTRAPPER}


@dataclass(frozen=True)
class Day:
    """An installation with a day's work in it. `jobs`: what is to be seen of it → its id."""

    there: Installation
    jobs: dict[str, str]
    workflow: str

    def user(self) -> str:
        return self.there.token("ann", Tier.CTO_SCALE)

    def operator(self) -> str:
        return self.there.token("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops")


@pytest_asyncio.fixture(scope="module")
async def day(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Day]:
    async with (
        installed(tmp_path_factory.mktemp("pictures"), policy=POLICY, workers=2, slots=3) as there,
        there.client("ann", Tier.CTO_SCALE) as ann,
        there.client("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops") as olga,
    ):
        jobs = await _ended(there, ann)
        workflow = await _workflow(ann)
        for number in range(14):
            await _submit_as(there, number)
        await _commanded(there, PAUSE, as_whom="olga")
        await eventually(lambda: _full(olga))
        running = (await ann.get("/jobs", params={"status": "code"})).json()
        waiting = (await ann.get("/jobs", params={"status": "queued"})).json()
        yield Day(there, jobs | {"running": running[0]["id"], "waiting": waiting[0]["id"]}, workflow)


async def _ended(there: Installation, ann: httpx.AsyncClient) -> dict[str, str]:
    """The README's jobs, and one that failed: each is over, or asks, before the queue fills."""
    jobs = {
        "ready": await _commanded(there, BUILD),
        "asks": await _commanded(there, ASKS),
        "failed": await _submit(ann, title=TITLES[1], pipeline="rehearsal", input=QUICK | {"fail_at": "deps"}),
    }
    for number in range(4):
        await _submit(ann, title=TITLES[2 + number], pipeline="rehearsal", input=QUICK)
    for name, status in (("ready", "ready"), ("asks", "awaiting_confirmation"), ("failed", "failed")):
        await eventually(lambda name=name, status=status: _has(ann, jobs[name], status), within_s=200)
    return jobs


async def _commanded(there: Installation, command: str, *, as_whom: str = "ann") -> str:
    """The command as the README has it; the first word that it said."""
    token = there.token(as_whom, Tier.CTO_SCALE, scope="jobs:read jobs:write" + " ops" * (as_whom == "olga"))
    environ = os.environ | {"HEADGATE_URL": there.up.url, "HEADGATE_TOKEN": token}
    words = (sys.executable, "-m", "libs.cli", *shlex.split(command))
    process = await asyncio.create_subprocess_exec(*words, env=environ, cwd=REPOSITORY, stdout=PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0, command
    return said.decode().split()[0]


async def _workflow(ann: httpx.AsyncClient) -> str:
    phases = [{"pipeline": "rehearsal", "input": QUICK | {"prompt": each}} for each in TITLES[3:5]]
    answer = await ann.post(
        "/workflows", json={"project_id": "search", "phases": [*phases, {**phases[0], "input": LONG}]}
    )
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def _submit(client: httpx.AsyncClient, **body: Any) -> str:
    answer = await client.post("/jobs", json={"project_id": "shop"} | body)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


async def _submit_as(there: Installation, number: int) -> None:
    user = [*WHO][number % len(WHO)]
    priority = ("normal", "normal", "low", "background")[number % 4]
    async with there.client(user, WHO[user]) as client:
        title, project = TITLES[number % len(TITLES)], PROJECTS[number % len(PROJECTS)]
        await _submit(client, title=title, project_id=project, pipeline="rehearsal", input=LONG, priority=priority)


async def _has(client: httpx.AsyncClient, job: str, status: str) -> bool:
    return (await client.get(f"/jobs/{job}")).json()["status"] == status


async def _full(olga: httpx.AsyncClient) -> bool:
    """Every slot is taken, and what waits was told when it starts."""
    workers, queue = (await olga.get("/workers")).json(), (await olga.get("/queue")).json()
    return sum(len(each["jobs"]) for each in workers) == 6 and len(queue["jobs"]) > 6


async def test_each_page_of_a_user_is_shown_in_four_forms(day: Day, visit: Visit) -> None:
    ready, asks = f"jobs/{day.jobs['ready']}", f"jobs/{day.jobs['asks']}"
    async with visit(day.there, day.user(), look="table") as ann:
        await taken(ann, "jobs", "jobs", "Asks you")
        await taken(ann, "job", asks, "Continue for")
        await taken(ann, "result", ready, "Download the result")
        await taken(ann, "failed", f"jobs/{day.jobs['failed']}", "What went wrong")
        await taken(ann, "running", f"jobs/{day.jobs['running']}", "Writing code")
        await taken(ann, "waiting", f"jobs/{day.jobs['waiting']}", "Why is it waiting?")
        await taken(ann, "workflow", f"workflows/{day.workflow}", TITLES[3])


async def test_the_form_of_a_new_job_and_the_palette_are_shown_in_four_forms(day: Day, visit: Visit) -> None:
    async with visit(day.there, day.user(), look="table") as ann:
        await ann.go("jobs")
        await ann.page.keyboard.press("n")
        await taken(ann, "form", None, "What should be built?")
        await ann.page.keyboard.press("Escape")
        await ann.page.keyboard.press("Control+k")
        await ann.page.keyboard.type("invoices")
        await taken(ann, "palette", None, TITLES[1])


async def test_the_door_is_shown_in_four_forms(day: Day, visit: Visit) -> None:
    async with visit(day.there) as anybody:
        await taken(anybody, "door", None, "Sign in to Headgate")


async def test_each_page_of_an_operator_is_shown_in_four_forms(day: Day, visit: Visit) -> None:
    async with visit(day.there, day.operator()) as olga:
        await taken(olga, "queue", "queue", "until the release is out")
        await taken(olga, "groups", "groups", "6 of 6 slots taken")
        await taken(olga, "workers", "workers", "What they did")
        await taken(olga, "insight", "insight", "Was the forecast right?")


async def taken(person: Visitor, name: str, view: str | None, seen: str) -> None:
    """The view, once this is seen in it, in each form: nothing is wrong by axe-core, nothing wider than the screen."""
    if view is not None:
        await person.go(view)
    await expect(person.page.get_by_text(seen).first).to_be_visible()
    wrong = list[str]()
    for form, (width, height, scheme) in FORMS.items():
        if form == "wide" or IN_FOUR_FORMS:
            await person.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await person.page.set_viewport_size({"width": width, "height": height})
            await person.look(f"{name}-{form}")
            await shot(person, f"{name}-{form}")
            wrong += [f"{name}, {form}: {each}" for each in await person.audit()]
    assert wrong == []


IN_FOUR_FORMS: Final = "HEADGATE_PICTURES" in os.environ


async def shot(person: Visitor, name: str) -> None:
    """What the screen shows, without what is below it."""
    cdp = await person.page.context.new_cdp_session(person.page)
    taken = await cdp.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    await cdp.detach()
    folder = IMAGES if IN_FOUR_FORMS else SCREENSHOTS
    (folder / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))
    await person.page.screenshot(path=SCREENSHOTS / f"screen-{name}.png")
