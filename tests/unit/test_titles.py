"""What jobs are called: where a title comes from, who is shown it, and that it is content."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headgate_contracts import Status
from headgate_contracts.titles import title_in, title_of
from services.admission.events import Actor
from services.admission.outcomes import Accepted
from tests.fixtures.admission_api import JOB, AdmissionApi, refused, submitted
from tests.fixtures.memory_admission import MemoryAdmission

SECRET = "the merger with Initech"
OPS = "jobs:read jobs:write ops"


@pytest.mark.parametrize(
    ("asked", "content", "title"),
    [
        ("Checkout", {"prompt": "a shop"}, "Checkout"),
        (None, {"prompt": "\n  a URL\tshortener \nwith expiry"}, "a URL shortener"),
        ("", {"prompt": "a \x1b[31mred\x9b line"}, "a [31mred line"),
        (None, {"prompt": "x" * 201}, "x" * 199 + "…"),
        (None, {"prompt": ["no", "text"]}, ""),
        (None, {"stages": {}}, ""),
    ],
)
def test_a_title_is_what_was_asked_for_or_the_prompts_first_line(
    asked: str | None, content: dict[str, object], title: str
) -> None:
    assert title_of(asked, content) == title


def test_the_title_of_a_kept_input_is_its_prompts_first_line() -> None:
    assert title_in(b'{"prompt":"once more\\nplease"}') == "once more"


async def test_lists_pages_and_the_queue_show_it_and_no_event_does(admission: MemoryAdmission) -> None:
    api = AdmissionApi(admission)
    async with api.client() as ann:
        job = await submitted(ann, title=SECRET)
        await admission.fold()
        shown = (await ann.get(f"/v1/jobs/{job['id']}")).json()
        [listed] = (await ann.get("/v1/jobs")).json()
        content = await ann.get(f"/v1/jobs/{job['id']}/input")
    async with api.client("olga", scope=OPS) as olga:
        [line] = (await olga.get("/v1/queue")).json()["jobs"]

    assert [each["title"] for each in (job, shown, listed, line)] == [SECRET] * 4
    assert content.json() == JOB["input"]
    assert not any(SECRET in repr(record) for record in await admission.log.read(job["id"]))


async def test_operators_see_the_titles_of_a_groups_holders_asked_for_at_once(admission: MemoryAdmission) -> None:
    asked = list[Sequence[str]]()
    find = admission.titles.of

    async def counted(ids: Sequence[str]) -> dict[str, str]:
        asked.append(ids)
        return await find(ids)

    admission.titles.of = counted
    jobs = [await admission.submitted(user="u1", title=title) for title in ("one", "two")]
    for job in jobs:
        await admission.go_on(job, "dispatched", "started")
    await admission.fold()
    async with AdmissionApi(admission).client("olga", scope=OPS) as olga:
        group = (await olga.get("/v1/concurrency/user:u1")).json()
        asked.clear()
        groups = (await olga.get("/v1/concurrency")).json()

    assert [(each["job_id"], each["title"]) for each in group["holders"]] == [
        (jobs[0].id, "one"),
        (jobs[1].id, "two"),
    ]
    assert asked == [sorted(job.id for job in jobs)]
    assert len([each for each in groups if each["holders"]]) > 1


async def test_a_dry_run_shows_the_title_and_keeps_none(admission: MemoryAdmission) -> None:
    async with AdmissionApi(admission).client() as ann:
        shown = (await ann.post("/v1/jobs?dry_run=true", json=JOB)).json()

    assert shown["title"] == "a URL shortener"
    assert await admission.titles.names() == []


async def test_a_title_of_two_lines_or_too_long_is_refused(admission: MemoryAdmission) -> None:
    async with AdmissionApi(admission).client() as ann:
        for title in ("two\nlines", "x" * 201, "\x1b[2J"):
            refused(await ann.post("/v1/jobs", json=JOB | {"title": title}), 422, "invalid")


async def test_the_same_key_with_another_title_is_another_request(admission: MemoryAdmission) -> None:
    key = {"Idempotency-Key": "k"}
    async with AdmissionApi(admission).client() as ann:
        first = (await ann.post("/v1/jobs", json=JOB | {"title": "one"}, headers=key)).json()
        again = (await ann.post("/v1/jobs", json=JOB | {"title": "one"}, headers=key)).json()
        other = await ann.post("/v1/jobs", json=JOB | {"title": "two"}, headers=key)

    assert (again["id"], again["title"]) == (first["id"], "one")
    refused(other, 422, "key-reused")
    assert await admission.titles.of([first["id"]]) == {first["id"]: "one"}


async def test_a_retry_is_called_as_the_first_one_was(admission: MemoryAdmission) -> None:
    first = await admission.submit(title="Checkout")
    assert isinstance(first, Accepted)
    ended = await admission.changing.cancel(first.job, act=Actor("u1"))
    assert isinstance(ended, Accepted)

    again = await admission.retrying.retry(ended.job, new_id="j99", asker=admission.asker())

    assert isinstance(again, Accepted)
    assert await admission.titles.of(["j99"]) == {"j99": "Checkout"}


async def test_erasing_a_user_erases_titles_and_inputs(admission: MemoryAdmission) -> None:
    api = AdmissionApi(admission)
    async with api.client() as ann:
        job = await submitted(ann, title=SECRET)
    await admission.erasing.erase("ann", by="olga", reason="")
    await admission.fold()

    async with api.client() as ann:
        shown = (await ann.get(f"/v1/jobs/{job['id']}")).json()
        content = await ann.get(f"/v1/jobs/{job['id']}/input")

    assert (shown["status"], shown["title"]) == (Status.CANCELLED, None)
    refused(content, 410, "input-gone")
    assert await admission.titles.names() == []


async def test_an_operator_finds_everybodys_jobs_with_their_owners_usage_and_a_user_their_own(
    admission: MemoryAdmission,
) -> None:
    api = AdmissionApi(admission)
    async with api.client() as ann, api.client("bob") as bob:
        for _ in range(2):
            await submitted(ann, title="a shop", labels={"team": "growth"})
        his = await submitted(bob, title="a shop in blue")
        await admission.fold()
        own = (await bob.get("/v1/jobs?q=shop")).json()
        others = await bob.get("/v1/jobs?user=ann")
    async with api.client("olga", scope=OPS) as olga:
        all_of_them = (await olga.get("/v1/jobs?q=sho&sort=oldest")).json()
        hers = (await olga.get("/v1/jobs?user=ann&label=team%3Dgrowth&since=2020-01-01T00:00:00Z")).json()
        page = await olga.get("/v1/jobs?limit=1")
        later = (await olga.get(page.links["next"]["url"])).json()

    assert [job["id"] for job in own] == [his["id"]]
    refused(others, 403, "forbidden")
    assert [job["user_id"] for job in all_of_them] == ["ann", "ann", "bob"]
    assert [job["usage"]["jobs_used"] for job in all_of_them] == [2, 2, 1]
    assert [job["user_id"] for job in hers] == ["ann", "ann"]
    assert [job["user_id"] for job in later] == ["ann"]
