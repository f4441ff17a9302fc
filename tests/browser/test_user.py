"""A user's way through the page, on the whole system: sign in, submit, wait, watch, answer, take the result."""

from __future__ import annotations

import asyncio
import re
import tarfile
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect

from headgate_contracts import Tier
from tests.browser.conftest import Visit
from tests.browser.visitor import PIPELINES
from tests.fixtures.installation import Installation, installed

POLICY = """
[tiers.partner]
cycles_per_batch = 2
jobs_per_user = 2
"""
QUICK = dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.05)


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    folder = tmp_path_factory.mktemp("user")
    async with installed(folder, policy=POLICY, workers=1, slots=4, environ=PIPELINES) as installation:
        yield installation


def partner(there: Installation, user: str) -> str:
    return there.token(user, Tier.PARTNER)


async def submitted(there: Installation, user: str, **body: Any) -> str:
    async with there.client(user, Tier.PARTNER) as client:
        answer = await client.post("/jobs", json={"project_id": "shop", "pipeline": "rehearsal", "input": {}} | body)
        assert answer.status_code == 202, answer.text
        return answer.json()["id"]


async def test_a_pasted_token_signs_in_and_nonsense_is_told_what_to_do(there: Installation, visit: Visit) -> None:
    async with visit(there) as ann:
        await ann.page.get_by_label("Token").fill("nonsense")
        await ann.page.get_by_role("button", name="Sign in").click()
        await expect(ann.page.get_by_role("alert")).to_contain_text("Copy the whole line that headgate token prints")

        await ann.page.get_by_label("Token").fill(f"  {partner(there, 'ann')}\n")
        await ann.page.get_by_role("button", name="Sign in").click()

        await expect(ann.page.get_by_role("heading", name="Your jobs")).to_be_visible()
        await ann.page.locator(".bar .menu summary").click()
        await expect(ann.page.locator(".bar .menu")).to_contain_text("partner")
        await ann.page.get_by_role("button", name="Sign out").click()
        await expect(ann.page.get_by_role("heading", name="Sign in to Headgate")).to_be_visible()


async def test_a_token_that_is_refused_says_why_at_the_door(there: Installation, visit: Visit) -> None:
    header, claims, _ = partner(there, "ann").split(".")

    async with visit(there, f"{header}.{claims}.AAAA") as ann:
        await expect(ann.page.get_by_role("heading", name="Sign in to Headgate")).to_be_visible()
        await expect(ann.page.get_by_role("alert")).not_to_be_empty()


async def test_a_link_with_a_token_signs_in_and_leaves_none_in_the_address(there: Installation, visit: Visit) -> None:
    async with visit(there, partner(there, "bea")) as bea:
        await expect(bea.page.get_by_text("Nothing here yet")).to_be_visible()
        await expect(bea.page.locator("#connection")).to_have_text("Live")

        assert "token" not in bea.page.url
        await bea.page.reload()
        await expect(bea.page.get_by_role("heading", name="Your jobs")).to_be_visible()


async def test_a_link_with_anothers_token_asks_whoever_is_signed_in(there: Installation, visit: Visit) -> None:
    async with visit(there, partner(there, "bea")) as bea:
        link = f"{bea.url}/#token={partner(there, 'bob')}"
        await bea.page.goto(link)
        dialog = bea.page.get_by_role("dialog")
        await expect(dialog).to_contain_text("You are signed in as bea")
        assert "token" not in bea.page.url
        await dialog.get_by_role("button", name="Stay bea").click()
        await expect(bea.page.locator(".bar .menu summary")).to_have_text("bea")

        await bea.page.goto(link)
        await dialog.get_by_role("button", name="Sign in as bob").click()

        await expect(bea.page.locator(".bar .menu summary")).to_have_text("bob")


async def test_the_sample_is_built_before_ones_eyes_and_its_result_taken(there: Installation, visit: Visit) -> None:
    async with visit(there, partner(there, "cat")) as cat:
        await (await cat.form()).get_by_role("button", name="Submit").click()
        card = cat.job("A URL shortener with expiry")
        await expect(card).to_contain_text("Ready", timeout=60_000)
        await card.get_by_role("link").click()
        await expect(cat.card("Progress").get_by_role("cell", name="passed")).to_be_visible()
        await expect(cat.card("Log")).to_contain_text("pytest: passed")
        await expect(cat.card("Today")).to_contain_text("1 of 50 jobs used")

        files = cat.card("Files")
        await expect(files.get_by_role("heading", level=3)).to_be_visible()  # README.md, drawn
        await files.get_by_role("button", name="pyproject.toml").click()
        await expect(files.locator("pre")).to_contain_text("[project]")
        await cat.look("job-files")
        assert await cat.audit() == []

        async with cat.page.expect_download() as downloading:
            await cat.page.get_by_role("button", name="Download the result").click()

        with tarfile.open(await (await downloading.value).path()) as result:
            assert any(name.endswith("shortener.py") for name in result.getnames())


async def test_a_dry_run_tells_what_would_happen_and_submits_nothing(there: Installation, visit: Visit) -> None:
    async with visit(there, partner(there, "dee")) as dee:
        await (await dee.form()).get_by_role("button", name="What would happen?").click()

        await expect(dee.page.get_by_text("It would be #1 in the queue")).to_be_visible()
        await expect(dee.page.get_by_text("Nothing was submitted")).to_be_visible()
        await expect(dee.page.get_by_text("Nothing here yet")).to_be_visible()


async def test_the_form_of_a_pipeline_is_made_from_the_schema_of_its_input(there: Installation, visit: Visit) -> None:
    async with visit(there, partner(there, "ria")) as ria:
        form = await ria.form()
        await form.get_by_label("Pipeline").select_option("report")
        await expect(form.get_by_text("What it is about")).to_be_visible()
        assert await ria.audit() == []
        await form.get_by_label("Topic").fill("tea")
        await form.get_by_label("Tone").select_option("formal")
        await form.get_by_label("Sources").fill('["a", 1]')
        await ria.look("form-of-a-schema")

        await form.get_by_role("button", name="Submit").click()
        await expect(form.get_by_text('1 is not of type "string"').first).to_be_visible()
        await form.get_by_label("Sources").fill('["a"]')
        await form.get_by_role("button", name="Submit").click()

        await expect(ria.job("Ready")).to_have_count(1)
        async with there.client("ria", Tier.PARTNER) as client:
            [job] = (await client.get("/jobs")).json()
            told = (await client.get(f"/jobs/{job['id']}/input")).json()
        assert told == {"topic": "tea", "pages": 3, "tone": "formal", "draft": False, "sources": ["a"]}


async def test_a_question_with_a_schema_is_answered_by_its_form(there: Installation, visit: Visit) -> None:
    asking = await submitted(there, "oda", pipeline="delivery", input={})

    async with visit(there, partner(there, "oda")) as oda:
        await oda.go(f"jobs/{asking}")
        form = oda.page.get_by_role("form", name="Where to?")
        await expect(form.get_by_text("Where it is brought to")).to_be_visible()
        assert await oda.audit() == []
        await form.get_by_label("Address").fill("Harbour 1")
        await form.get_by_label("Floor").fill("3")
        await form.get_by_label("Quiet").select_option("yes")
        await form.get_by_role("button", name="Answer").click()

        number = oda.page.get_by_role("form", name="How many?")
        await number.get_by_label("How many?").fill("2")
        await number.get_by_role("button", name="Answer").click()
        await expect(oda.page.get_by_role("button", name="Download the result")).to_be_visible()

    async with there.client("oda", Tier.PARTNER) as client:
        told = (await client.get(f"/jobs/{asking}/files/delivery.json")).json()
    assert told == {"address": "Harbour 1", "floor": 3, "quiet": True, "copies": 2}


async def test_what_somebody_types_is_not_taken_away_by_what_happens(there: Installation, visit: Visit) -> None:
    typed = {"Seconds: code": "3.5", "Failing iterations": "2", "Project": "half a na"}

    async with visit(there, partner(there, "dot")) as dot:
        form = await dot.form()
        await form.get_by_label("Pipeline").select_option("rehearsal")
        for label, text in typed.items():
            await form.get_by_label(label).fill(text)
        await dot.page.keyboard.press("Escape")
        await submitted(there, "dot", input={"stages": QUICK})
        await dot.job("Ready").get_by_role("link").click()
        await dot.go("jobs")

        form = await dot.form()
        assert {label: await form.get_by_label(label).input_value() for label in typed} == typed


async def test_what_is_refused_is_told_in_the_servers_words(there: Installation, visit: Visit) -> None:
    async with visit(there, partner(there, "eve")) as eve:
        await eve.form()
        await eve.page.get_by_text("More", exact=True).click()
        await eve.page.get_by_label("Not before").fill("2199-01-01T00:00")
        await eve.page.get_by_role("button", name="Submit").click()

        await expect(eve.page.get_by_role("alert").filter(has_text="days ahead")).to_be_visible()
        await expect(eve.page.get_by_text("Nothing here yet")).to_be_visible()


async def test_a_job_shows_its_place_and_reason_then_its_stages(there: Installation, visit: Visit) -> None:
    holding = [await submitted(there, "fay", input={"stages": {"code": 60}}) for _ in range(2)]

    async with visit(there, partner(there, "fay")) as fay:
        await fay.submit_rehearsal(called="Two seconds", seconds=2, project="blog")
        await fay.job("Two seconds").get_by_role("link").click()
        place = fay.card("Place in the queue")
        await expect(place).to_contain_text("You are #1 in queue")
        await expect(place).to_contain_text("Your jobs: 2 of 2 slots are taken")
        await expect(place).to_contain_text("A position can change as priority jobs arrive")
        await expect(place.get_by_role("img", name="Starts in")).to_be_visible()
        await fay.look("job-queued")

        await ended(there, "fay", holding[:1])

        await expect(fay.page.locator("td.now")).to_have_count(1)
        await expect(place).to_have_count(0)
        await fay.look("job-running")
        await expect(fay.card("Progress").get_by_role("cell", name="passed")).to_be_visible()
    await ended(there, "fay", holding[1:])


async def test_a_job_that_moved_says_why(there: Installation, visit: Visit) -> None:
    holding = [await submitted(there, "gil", input={"stages": {"code": 60}}) for _ in range(2)]
    waiting = await submitted(there, "gil")

    async with visit(there, partner(there, "gil")) as gil:
        await gil.go(f"jobs/{waiting}")
        await expect(gil.card("Place in the queue")).to_contain_text("You are #1 in queue")

        holding.append(await submitted(there, "gil", priority="high"))

        moves = gil.page.get_by_role("list", name="Why it moved")
        await expect(moves).to_contain_text("#1 → #2")
        await expect(moves).to_contain_text("1 job of a higher priority")
        await gil.look("job-moved")
    await ended(there, "gil", [*holding, waiting])


async def test_a_job_asks_its_user_and_goes_on_when_told_to(there: Installation, visit: Visit) -> None:
    async with visit(there, partner(there, "hal")) as hal:
        await hal.submit_rehearsal(seconds=0.1, failing_iterations=3)
        question = hal.page.get_by_role("group", name="The job asks you")
        await expect(question).to_contain_text("2 of 2 iterations used")
        await expect(question.get_by_role("button", name="Cancel job")).to_be_visible()
        await hal.look("jobs-asks")
        await hal.job("Rehearsal").get_by_role("link").click()
        await expect(hal.page.get_by_role("cell", name="did not pass")).to_have_count(2)
        await hal.look("job-asks")

        await question.get_by_role("button", name="Continue for 2 more").click()

        await expect(hal.page.get_by_role("group", name="The result")).to_contain_text("in 4 iterations")
        await expect(hal.card("Progress").get_by_role("row", name="Iteration 4")).to_contain_text("passed")
        await expect(hal.card("Progress")).to_contain_text("you granted 2 more")
        await expect(hal.card("About")).to_contain_text("4 used, 2 left")
        await hal.look("job-ready")


async def test_a_job_that_asks_can_be_cancelled_from_the_list(there: Installation, visit: Visit) -> None:
    await submitted(there, "ida", input={"stages": QUICK, "failing_cycles": 9})

    async with visit(there, partner(there, "ida")) as ida:
        await ida.page.get_by_role("button", name="Cancel job").click()

        await expect(ida.job("Rehearsal for shop")).to_contain_text("Cancelled")
        await expect(ida.page.get_by_role("group", name="The job asks you")).to_have_count(0)


async def test_a_running_job_is_cancelled(there: Installation, visit: Visit) -> None:
    running = await submitted(there, "jan", input={"stages": {"code": 60}})

    async with visit(there, partner(there, "jan")) as jan:
        await jan.go(f"jobs/{running}")
        await jan.page.get_by_role("button", name="Cancel", exact=True).click()

        await expect(jan.page.locator(".job-head")).to_contain_text("Cancelled")


async def test_an_error_is_told_with_its_detail_and_a_debug_id_to_copy(there: Installation, visit: Visit) -> None:
    told = {"summary": "The parts do not fit.", "detail": "part 3 is 2 mm too wide\nmeasured twice"}
    failed = await submitted(there, "kim", pipeline="speaking", input=told)

    async with visit(there, partner(there, "kim"), permissions=["clipboard-read", "clipboard-write"]) as kim:
        await kim.go(f"jobs/{failed}")
        error = kim.card("What went wrong")
        await expect(error).to_contain_text("The parts do not fit.")
        await expect(error.get_by_text("part 3 is 2 mm too wide")).not_to_be_visible()
        await error.get_by_text("Details").click()
        await expect(error.get_by_text("part 3 is 2 mm too wide")).to_be_visible()
        await error.get_by_role("button", name="Copy").click()
        await expect(error.get_by_role("button", name="Copy")).to_have_text("Copied")
        await kim.look("job-failed")

        copied = await kim.page.evaluate("navigator.clipboard.readText()")
        async with there.client("kim", Tier.PARTNER) as client:
            assert copied == (await client.get(f"/jobs/{failed}")).json()["error"]["debug_id"]


async def test_a_failed_job_is_submitted_again_with_one_click(there: Installation, visit: Visit) -> None:
    failed = await submitted(there, "lea", input={"stages": QUICK, "fail_at": "deps"})

    async with visit(there, partner(there, "lea")) as lea:
        await lea.go(f"jobs/{failed}")
        await lea.page.get_by_role("button", name="Submit again").click()

        await expect(lea.page).not_to_have_url(f"{lea.url}/#/jobs/{failed}")
        await expect(lea.page.locator(".job-head")).to_contain_text("Failed")
        await lea.go("jobs")
        await expect(lea.page.locator("article.job")).to_have_count(2)


async def test_a_log_is_searched_and_followed(there: Installation, visit: Visit) -> None:
    lines = [f"line {number}: {'needle' if number % 40 == 0 else 'hay'}" for number in range(1, 121)]
    talking = await submitted(there, "mia", pipeline="speaking", input={"lines": lines, "seconds": 4})

    async with visit(there, partner(there, "mia")) as mia:
        await mia.go(f"jobs/{talking}")
        log = mia.page.get_by_role("log")
        await expect(mia.card("Log").get_by_role("button", name="Pause")).to_be_visible()
        await expect(log).to_contain_text("line 100")
        assert await log.evaluate("(box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 40")
        await log.evaluate("(box) => { box.scrollTop = 0 }")
        await expect(mia.card("Log").get_by_role("button", name="Follow")).to_be_visible()
        await expect(mia.card("Log")).to_contain_text("120 lines")
        assert await log.evaluate("(box) => box.scrollTop") == 0

        await mia.page.get_by_label("Search the log").fill("NEEDLE")

        await expect(mia.card("Log")).to_contain_text("3 of 120 lines")
        assert await log.locator("mark").all_text_contents() == ["needle"] * 3
        await mia.page.get_by_label("Search the log").fill("")
        await expect(mia.page.locator(".job-head")).to_contain_text("Ready")
        await expect(log.locator("p")).to_have_count(120)
        assert [await said(line) for line in await log.locator("p").all()] == lines

        await mia.card("Timeline").get_by_role("button", name="code").click()
        await mia.card("Timeline").get_by_role("link", name="120 lines of the log").click()
        assert mia.page.url.endswith(f"#/jobs/{talking}#L1-120")
        await log.get_by_role("link", name="Line 7", exact=True).click()
        await expect(log.locator("p.named")).to_have_count(1)
        assert await said(log.locator("p.named")) == "line 7: hay"


async def test_a_timeline_says_what_held_the_job_before_anybody_looked(there: Installation, visit: Visit) -> None:
    async with there.client("olga", Tier.CTO_SCALE, scope="jobs:read jobs:write ops") as olga:
        await olga.post("/queue/pause", json={"scope": "user:tim", "reason": "a look"})
        held = await submitted(there, "tim")
        await olga.post("/queue/resume", json={"scope": "user:tim"})

    async with visit(there, partner(there, "tim")) as tim:
        await tim.go(f"jobs/{held}")
        await expect(tim.page.locator(".job-head")).to_contain_text("Ready")
        timeline = tim.card("Timeline")
        await expect(timeline.get_by_role("group", name="checks")).to_be_visible()
        first = timeline.get_by_role("group", name="Waits").get_by_role("button").first
        await expect(first).to_have_accessible_name(re.compile("^Your jobs were paused by olga: a look, "))


async def test_a_log_is_narrowed_down_to_a_level(there: Installation, visit: Visit) -> None:
    lines = ["DEBUG looks", "INFO begins", "\x1b[33mWARNING\x1b[0m thin ice", "ERROR broke", "says nothing of it"]
    told = await submitted(there, "lev", pipeline="speaking", input={"lines": lines})

    async with visit(there, partner(there, "lev")) as lev:
        await lev.go(f"jobs/{told}")
        await expect(lev.page.locator(".job-head")).to_contain_text("Ready")
        log = lev.card("Log")
        for level, shown in (("From warning on", lines[2:4]), ("Errors", lines[3:4]), ("All lines", lines)):
            await log.get_by_label("Lines of which level").select_option(level)
            await expect(log.locator("p[data-line]")).to_have_count(len(shown))

        assert await said(log.locator("p.error")) == "ERROR broke"
        await expect(log.locator("p.warning")).to_have_count(1)


async def test_a_picture_of_the_result_is_shown_and_nothing_in_it_runs(there: Installation, visit: Visit) -> None:
    script = "<script>parent.document.title = 'taken'</script><image href='http://127.0.0.1:9/' />"
    picture = f"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'>{script}</svg>"
    made = await submitted(there, "pia", pipeline="speaking", input={"lines": ["x"], "files": {"plan.svg": picture}})

    async with visit(there, partner(there, "pia")) as pia:
        await pia.go(f"jobs/{made}")
        files = pia.card("Files")
        await files.get_by_role("button", name="plan.svg").click()

        await expect(files.get_by_role("img", name="plan.svg")).to_have_js_property("naturalWidth", 40)
        assert await pia.page.title() == "speaking for shop · Headgate"
    async with there.client("pia", Tier.PARTNER) as client:
        answer = await client.get(f"/jobs/{made}/files/plan.svg")
    assert (answer.headers["content-type"], answer.headers["content-security-policy"]) == (
        "image/svg+xml",
        "default-src 'none'; sandbox",
    )


async def test_a_finished_job_is_run_again_from_a_stage_with_another_input(there: Installation, visit: Visit) -> None:
    first = await submitted(there, "ria", input={"stages": QUICK})

    async with visit(there, partner(there, "ria")) as ria:
        await ria.go(f"jobs/{first}")
        await ria.page.get_by_role("button", name="Run again from").click()
        await ria.page.get_by_role("radio", name="Installing").check()
        await ria.page.get_by_label("Change the input").check()
        await ria.page.get_by_label("Input, as JSON").fill('{"stages": {"deps": 0.1}}')
        await ria.look("run-again")
        assert await ria.audit() == []
        await ria.page.get_by_role("button", name="Run again", exact=True).click()

        await expect(ria.page).not_to_have_url(f"{ria.url}/#/jobs/{first}")
        await expect(ria.page.locator(".job-head")).to_contain_text("Ready")
        await expect(ria.card("Progress").get_by_role("cell", name="kept")).to_have_count(2)
        await expect(ria.card("About")).to_contain_text(f"{first}, from deps")


async def test_a_workflow_has_a_page_and_can_be_ended_and_submitted_again(there: Installation, visit: Visit) -> None:
    phases = [{"pipeline": "rehearsal", "title": title, "input": {"stages": QUICK}} for title in ("Schema", "API")]
    phases[0]["input"] = {"stages": QUICK | {"code": 900}}
    async with there.client("wes", Tier.PARTNER) as client:
        workflow = (await client.post("/workflows", json={"project_id": "shop", "phases": phases})).json()

    async with visit(there, partner(there, "wes")) as wes:
        await wes.go(f"jobs/{workflow['phases'][0]['id']}")
        await wes.page.get_by_role("link", name="Its workflow").click()
        await expect(wes.card("Phases").get_by_role("listitem")).to_have_count(2 + 4)  # and the stages of the first
        await wes.look("workflow")
        assert await wes.audit() == []
        await wes.page.get_by_role("button", name="Cancel all").click()
        await wes.page.get_by_role("button", name="Submit again from phase 1").click()

        await expect(wes.page).not_to_have_url(f"{wes.url}/#/workflows/{workflow['id']}")
        await expect(wes.card("Phases").get_by_role("link", name="Schema")).to_be_visible()


async def test_which_jobs_are_shown_is_part_of_the_address(there: Installation, visit: Visit) -> None:
    await submitted(there, "nan", input={"stages": QUICK})
    await submitted(there, "nan", project_id="blog", input={"stages": QUICK, "fail_at": "code"})

    async with visit(there, partner(there, "nan")) as nan:
        await expect(nan.job("Failed")).to_have_count(1)
        await expect(nan.job("Ready")).to_have_count(1)

        await nan.page.get_by_role("link", name="Failed").click()
        await expect(nan.page.locator("article.job")).to_have_count(1)
        await nan.page.get_by_role("combobox", name="Project").select_option("shop")
        await expect(nan.page.get_by_text("No such job")).to_be_visible()
        assert nan.page.url.endswith("#/jobs?project=shop&show=failed")

        await nan.page.go_back()
        await expect(nan.page.locator("article.job")).to_have_count(1)
        await nan.page.reload()
        await expect(nan.job("Failed")).to_have_count(1)
        await expect(nan.job("Ready")).to_have_count(0)


async def test_two_users_do_not_see_each_other(there: Installation, visit: Visit) -> None:
    hers = await submitted(there, "ora", project_id="secret", input={"stages": QUICK})

    async with visit(there, partner(there, "pam")) as pam:
        await expect(pam.page.get_by_text("Nothing here yet")).to_be_visible()
        await submitted(there, "ora", project_id="secret", input={"stages": QUICK})
        await submitted(there, "pam", input={"stages": QUICK})
        await expect(pam.job("Ready")).to_have_count(1)
        assert "secret" not in await pam.page.locator("body").inner_text()

        await pam.page.evaluate("(view) => { location.hash = view }", f"#/jobs/{hers}")

        await expect(pam.page.get_by_role("heading", name="This job cannot be shown", level=1)).to_be_visible()
        await expect(pam.page.get_by_role("link", name="Back to your jobs")).to_be_visible()


async def said(line: Any) -> str:
    return await line.locator("span").last.inner_text()


async def ended(there: Installation, user: str, jobs: list[str]) -> None:
    async with there.client(user, Tier.PARTNER) as client:
        await asyncio.gather(*(client.post(f"/jobs/{job}/cancel") for job in jobs))


async def test_what_others_wrote_is_shown_as_text(there: Installation, visit: Visit) -> None:
    evil = "<img src=x onerror=\"document.title = 'taken'\">"
    user, told = f"quo{evil}", {"lines": [evil, f"<script>{evil}</script>"], "summary": evil, "detail": f"{evil}\n" * 3}
    failed = await submitted(there, user, pipeline="speaking", project_id=evil, labels={"note": evil}, input=told)

    async with visit(there, partner(there, user)) as quo:
        form = await quo.form()
        await form.get_by_label("What should be built?").fill(evil)
        await form.get_by_label("Project").fill(evil)
        await form.get_by_role("button", name="Submit").click()
        await expect(quo.job(evil).first).to_be_visible()
        await expect(quo.page.locator(".bar .menu summary")).to_have_text(user)
        await quo.go(f"jobs/{failed}")
        await expect(quo.page.get_by_role("log")).to_contain_text(f"<script>{evil}</script>")
        await quo.page.get_by_text("Details").click()
        for card in ("What went wrong", "About"):
            await expect(quo.card(card)).to_contain_text(evil)
        await quo.page.evaluate("(view) => { location.hash = view }", f"#/jobs/{evil}")
        await expect(quo.page.get_by_text("This job cannot be shown")).to_be_visible()
        await quo.page.evaluate("(view) => { location.hash = view }", f"#/jobs?show={evil}&project={evil}")
        await expect(quo.page.get_by_role("combobox", name="Project")).to_have_value(evil)

        assert await quo.page.title() == "Jobs · Headgate"
        assert await quo.page.locator("img[src=x], main script").count() == 0
