"""Every verb of the command against a system that really runs: what it does, what it prints, how it ends."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from headgate_contracts import Tier
from libs.cli.__main__ import main
from libs.deployment.secrets import write_secrets
from libs.eventlog import LogUnavailable, connect
from libs.local.state import StateFolder
from libs.local.teams import read_teams
from libs.runtime.eventually import eventually
from tests.fixtures.clients import nats_client
from tests.fixtures.installation import Installation, installed
from tests.fixtures.streams import listening

pytestmark = pytest.mark.up

POLICY = """
[queue]
cap = 8
user_share = 4
"""
QUICK = {"stages": dict.fromkeys(("scaffold", "code", "deps", "checks"), 0.02), "log_lines": 2}
LONG = {"stages": {"code": 600}}
DONE, FAILED, USAGE, BUSY, REFUSED = range(5)


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        assert self.code == DONE, self.err
        return json.loads(self.out)


@pytest_asyncio.fixture(scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("verbs"), policy=POLICY, workers=1, slots=3) as there:
        async with there.client("boss", Tier.PARTNER, scope="ops") as boss:
            await eventually(lambda: heard_of_a_worker(boss))
        yield there


async def heard_of_a_worker(operator: httpx.AsyncClient) -> bool:
    return bool((await operator.get("/workers")).json())


@pytest_asyncio.fixture(autouse=True)
async def here(there: Installation, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Commands find it by its folder. Afterwards nothing is paused and nothing waits or runs."""
    monkeypatch.setenv("HEADGATE_STATE", str(there.state))
    yield
    await headgate("queue", "resume", "all")
    await headgate("jobs", "cancel-all", "--project", "shop")
    await eventually(nothing_runs, every_s=0.1)


async def headgate(*words: str) -> Said:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = await asyncio.to_thread(_ended, words)
    return Said(code, out.getvalue(), err.getvalue())


def _ended(words: tuple[str, ...]) -> int:
    try:
        return main(words)
    except SystemExit as end:  # of the parser
        return int(end.code or 0)


async def nothing_runs() -> bool:
    jobs = (await headgate("jobs", "list", "--json")).data
    return all(job["status"] in ("ready", "failed", "cancelled") for job in jobs)


async def submitted(work: dict[str, Any] = LONG, *more: str) -> str:
    words = ("--project", "shop", "--pipeline", "rehearsal", "--input", json.dumps(work), "--json", *more)
    return (await headgate("submit", *words)).data["id"]


async def until(job: str, *statuses: str) -> None:
    async def reached() -> bool:
        return (await headgate("jobs", "show", job, "--json")).data["status"] in statuses

    await eventually(reached, every_s=0.1)


async def test_a_paused_queue_is_shown_explained_and_goes_on() -> None:
    paused = await headgate("queue", "pause", "all", "--reason", "the release first")
    again = await headgate("queue", "pause")
    job = await submitted()
    shown, explained = await headgate("queue", "show"), await headgate("explain", job)
    as_data = (await headgate("explain", job, "--json")).data
    resumed, once_more = await headgate("queue", "resume", "all"), await headgate("queue", "resume", "all")
    await until(job, "code")

    assert "all  is paused: what runs goes on" in paused.out
    assert "paused already, by operator" in again.out
    assert "1 of 8 places are taken." in shown.out
    assert f"{job}  The whole queue is paused by operator: the release first" in shown.out
    assert "1. The whole queue is paused by operator: the release first (since " in explained.out
    assert "it goes on when: operator, or another operator, resumes the whole queue" in explained.out
    assert [reason["reason"] for reason in as_data["waiting_on"]] == ["paused"]
    assert "all  may start again." in resumed.out
    assert "all  was not paused: `headgate queue show` says what is." in once_more.out


async def test_a_slot_is_taken_extended_and_given_back_by_a_script() -> None:
    of_shop = ("--project", "shop")
    lease = (await headgate("concurrency", "take", "yard", *of_shop, "--limit", "1")).out.strip()
    full = await headgate("concurrency", "take", "yard", *of_shop, "--wait", "1")
    longer = await headgate("concurrency", "extend", "yard", lease, *of_shop, "--ttl", "200", "--json")
    given = await headgate("concurrency", "give-back", "yard", lease, *of_shop)
    lost = await headgate("concurrency", "extend", "yard", lease, *of_shop)

    assert len(lease) == 26
    assert (full.code, longer.data["lease"], given.code, lost.code) == (3, lease, 0, 4)


async def test_who_holds_the_slots_is_told_to_an_operator() -> None:
    group = "group:user:shop:db"
    running = await submitted(LONG, "--group", "db", "--group-limit", "1")
    await until(running, "code")
    waits = await submitted(LONG, "--group", "db")

    async def blocked() -> bool:
        return "group_limit" in (await headgate("explain", waits, "--json")).out

    async def worker_shows_it() -> bool:
        return running in (await headgate("workers")).out

    await eventually(blocked)
    await eventually(worker_shows_it)  # from its heartbeat, a moment after the claim
    explained = await headgate("explain", waits)
    status = await headgate("concurrency", "status", group)
    own_slot = await headgate("concurrency", "status", "user:user")
    every = (await headgate("concurrency", "status", "--json")).data
    counts, stats = await headgate("jobs", "counts", "--project", "shop"), await headgate("queue", "stats")
    raised = await headgate("concurrency", "set", group, "--limit", "2", "--reason", "more")
    await until(waits, "code")
    unset = await headgate("concurrency", "unset", group, "--reason", "as before")
    mistyped = await headgate("concurrency", "set", f"{group}s", "--limit", "2")
    audit = await headgate("audit")

    assert f"1. Group {group}: 1 of 1 slots are taken" in explained.out
    assert f"A slot of {group} comes free (now: {running})" in explained.out
    assert f"{running}:1" in status.out
    assert own_slot.out.split().count(running) == 1  # in the column of the job
    assert {"pool:default", "user:user", group} <= {each["group"] for each in every}
    assert re.search(r"^ *1 +code$", counts.out, flags=re.MULTILINE)
    assert re.search(r"^running +default +1 +\d+$", stats.out, flags=re.MULTILINE)
    assert f"{group}  2 slots from now on." in raised.out
    assert f"{group}  1 slot from now on: nothing is set by hand." in unset.out
    assert "limit_unset" in audit.out
    assert mistyped.code == REFUSED
    assert f"nobody has a group '{group}s': there is {group}" in mistyped.err


async def test_a_policy_is_checked_compared_and_reloaded_while_jobs_run(tmp_path: Path) -> None:
    first = [await submitted(LONG) for _ in range(2)]
    for job in first:
        await until(job, "code")
    file, bad = tmp_path / "policy.toml", tmp_path / "bad.toml"
    fewer = f"{POLICY}\n[tiers]\n" + "".join(f"{tier}.jobs_per_user = 1\n" for tier in Tier)
    bad.write_text(f"{POLICY}\n[tiers.partner]\njobs_a_day = 3\n")

    checked = await headgate("policy", "check", str(bad))
    refused = await headgate("policy", "reload", str(bad))
    unchanged = await headgate("policy", "diff", str(_written(file, POLICY)))
    differs = await headgate("policy", "diff", str(_written(file, fewer)))
    done = await headgate("policy", "reload", str(file), "--reason", "a quiet night")
    shown = (await headgate("policy", "show", "--json")).data
    waits = await submitted(LONG)
    still = [(await headgate("jobs", "show", job, "--json")).data["status"] for job in first]

    async def limited() -> bool:
        return "user_limit" in (await headgate("explain", waits, "--json")).out

    await eventually(limited)
    back = await headgate("policy", "reload", str(_written(file, POLICY)))
    await until(waits, "code")

    assert checked.code == refused.code == USAGE
    assert checked.err == refused.err
    assert f"{bad}:7: tiers.partner.jobs_a_day: there is no such key" in checked.err
    assert unchanged.code == DONE, unchanged.out
    assert differs.code == FAILED
    assert "- tiers.partner.jobs_per_user = 3\n+ tiers.partner.jobs_per_user = 1\n" in differs.out
    assert "3 numbers changed" in done.out
    assert (shown["by"], shown["reason"]) == ("operator", "a quiet night")
    assert still == ["code", "code"]  # nobody is killed
    assert back.code == DONE


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


async def test_a_slot_is_forced_free_by_giving_the_attempt_back() -> None:
    job = await submitted()
    await until(job, "code")

    unforced = await headgate("concurrency", "release", "user:user", f"{job}:1")
    freed = await headgate("concurrency", "release", "user:user", f"{job}:1", "--force", "--reason", "stuck")

    async def given_back() -> bool:
        events = (await headgate("jobs", "events", job, "--json")).data
        return [each["reason"] for each in events if each["event"] == "given_back"] == ["forced"]

    await eventually(given_back)
    audit = await headgate("audit")
    assert unforced.code == USAGE
    assert "the attempt is given back, then its slots are free." in freed.out
    assert "lease_released" in audit.out
    assert "stuck" in audit.out


async def test_waiting_jobs_are_moved_and_given_another_class() -> None:
    await headgate("queue", "pause")
    first, second, third = [await submitted() for _ in range(3)]

    async def order(*wanted: str) -> bool:
        return [line["job_id"] for line in (await headgate("queue", "show", "--json")).data["jobs"]] == list(wanted)

    await eventually(lambda: order(first, second, third))
    moved = await headgate("queue", "move", third, "--before", first, "--reason", "blocks the release")
    await eventually(lambda: order(third, first, second))
    raised = await headgate("jobs", "priority", second, "high", "--reason", "a demo")
    await eventually(lambda: order(second, third, first))
    above = await headgate("jobs", "priority", first, "urgent")
    beside = await headgate("queue", "move", first, "--after", "nobody")

    assert (moved.code, raised.code) == (DONE, DONE)
    assert f"{second}  is high now" in raised.out
    assert (above.code, beside.code) == (REFUSED, REFUSED)
    assert "at most" in above.err
    assert "job nobody is not in the queue: name one that is" in beside.err


async def test_a_dry_run_submits_nothing() -> None:
    before = (await headgate("usage", "--json")).data

    tried = await headgate("submit", "a URL shortener", "--project", "shop", "--dry-run")
    told = (await headgate("submit", "a URL shortener", "--project", "shop", "--dry-run", "--json")).data

    assert tried.out.startswith("Nothing was submitted. You are #1 in queue")
    assert told["queue"]["position"] == 1
    assert (await headgate("usage", "--json")).data == before
    assert "used today" in (await headgate("usage")).out


async def test_a_full_queue_ends_a_submission_with_3(there: Installation) -> None:
    await headgate("queue", "pause")
    for _ in range(4):
        await submitted()
    share = await headgate("submit", "one more", "--project", "shop")
    async with there.client("other", Tier.PARTNER) as other:
        body = {"project_id": "shop", "pipeline": "rehearsal", "input": LONG}
        assert [(await other.post("/jobs", json=body)).status_code for _ in range(4)] == [202] * 4
        busy = await headgate("submit", "one more", "--project", "shop")
        await other.post("/jobs/cancel", json={"project": "shop"})

    assert (share.code, busy.code) == (BUSY, BUSY)
    assert "as many as one user may" in share.err
    assert "system busy, try again in 15 minutes. Nothing was changed." in busy.err


async def test_a_workflow_is_submitted_shown_and_cancelled() -> None:
    workflow = (await headgate("workflow", "submit", "an API", "a page for it", "--project", "shop", "--json")).data
    shown = await headgate("workflow", "show", workflow["id"])
    cancelled = await headgate("workflow", "cancel", workflow["id"], "--reason", "enough")

    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == ["PHASE", "1", "2"]
    assert cancelled.code == DONE
    await until(workflow["phases"][0]["id"], "cancelled", "ready")
    assert (await headgate("workflow", "show", "nobodys")).code == REFUSED


async def test_a_failed_job_tells_its_log_and_is_tried_again() -> None:
    failed = await submitted(QUICK | {"fail_at": "deps"})
    followed = await headgate("jobs", "follow", failed)
    log = await headgate("jobs", "log", failed)
    retried = await headgate("jobs", "retry", failed, "--follow")
    other = await headgate("jobs", "retry", (await headgate("jobs", "list", "--limit", "1", "--json")).data[0]["id"])

    assert (followed.code, retried.code, other.code) == (FAILED, FAILED, DONE)
    assert "line 2 of 2" in log.out
    assert "retry_of" in (await headgate("log", "tail", "--no-follow", "--json")).out


async def test_an_answer_is_taken_once() -> None:
    asks = await submitted(QUICK | {"failing_cycles": 3})
    early = await headgate("jobs", "confirm", asks)
    await until(asks, "awaiting_confirmation")

    shown = await headgate("jobs", "show", asks)
    first, second = await headgate("jobs", "confirm", asks), await headgate("jobs", "confirm", asks)
    await until(asks, "ready")

    assert "Continue for 3 more?" in shown.out
    assert [each.code for each in (early, first, second)] == [REFUSED, DONE, REFUSED]
    assert "nothing was changed" in second.err


async def test_all_of_a_label_are_cancelled_and_no_other() -> None:
    await headgate("queue", "pause")
    meant, spared = await submitted(LONG, "--label", "team=a"), await submitted(LONG, "--label", "team=b")

    async def both_are_seen() -> bool:
        return len((await headgate("queue", "show", "--json")).data["jobs"]) == 2

    await eventually(both_are_seen)
    cancelled = (await headgate("jobs", "cancel-all", "--label", "team=a", "--json")).data

    assert [each["job"]["id"] for each in cancelled] == [meant]
    assert (await headgate("jobs", "show", spared, "--json")).data["status"] == "queued"


async def test_the_view_is_folded_again_and_nothing_is_lost() -> None:
    await headgate("queue", "pause", "all", "--reason", "kept")
    job = await submitted()

    rebuilt = await headgate("rebuild", "--json")
    queue = (await headgate("queue", "show", "--json")).data

    assert rebuilt.data["applied"] > 0
    assert [line["job_id"] for line in queue["jobs"]] == [job]
    assert [pause["reason"] for pause in queue["paused"]] == ["kept"]


async def test_what_operators_look_at_has_a_form_for_programs() -> None:
    for words in (("queue", "analytics"), ("workers",), ("audit", "--since", "2026-01-01T00:00:00Z")):

        async def told(words: tuple[str, ...] = words) -> bool:
            return bool((await headgate(*words, "--json")).data)

        await eventually(told)  # a worker is known again from its first heartbeat on
        assert (await headgate(*words)).code == DONE


async def test_what_was_recorded_is_replayed_under_another_policy(tmp_path: Path) -> None:
    job = await submitted(QUICK)
    await until(job, "ready")
    other, plot = tmp_path / "other.toml", tmp_path / "waits.svg"
    other.write_text("[tiers.partner]\njobs_per_user = 1\n")

    compared = (await headgate("simulate", "--policy", str(other), "--plot", str(plot), "--json")).data
    none = await headgate("simulate", "--policy", str(other), "--since", "2099-01-01")
    wrong = await headgate("simulate", "--policy", str(tmp_path / "nowhere.toml"))

    assert compared["jobs"] >= 1
    assert {"recorded", "today", "other"} <= set(compared["waits"][0])
    assert plot.read_text().startswith("<svg")
    assert (none.code, wrong.code) == (FAILED, USAGE)


async def test_a_users_content_is_erased_and_nobodys_is_told() -> None:
    job = await submitted(QUICK)
    await until(job, "ready")

    erased = await headgate("erase", "user", "--yes", "--reason", "asked to be forgotten")
    result, nobody = await headgate("jobs", "result", job), await headgate("erase", "nobody", "--yes")

    assert (erased.code, result.code, nobody.code) == (DONE, REFUSED, REFUSED)
    assert re.search(r"the content of \d+ jobs? is erased", erased.out)
    assert "when an operator erases it" in result.err
    assert "the log knows no job of user 'nobody'" in nobody.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("explain", "nobodys"), REFUSED, "you have no job nobodys"),
        (("concurrency", "status", "nonsense:x"), REFUSED, "nobody has a group 'nonsense:x': the list of all groups"),
        (("queue", "pause", "pool:mistyped"), REFUSED, "scope: 'mistyped' is no pool here: name default"),
        (("queue", "pause", "everything"), REFUSED, "scope: write all, priority:NAME, pool:NAME"),
        (("concurrency", "set", "workflows", "--limit", "0"), USAGE, "0 is too small: write 1 or more"),
        (("concurrency", "set", "workflows", "--limit=-1"), USAGE, "-1 is too small"),
        (("concurrency", "set", "no group", "--limit", "1"), REFUSED, "'no group' is no group: use"),
        (("concurrency", "set", "pool:default", "--limit", "1"), REFUSED, "start or stop workers instead"),
        (
            ("concurrency", "release", "workflows", "x:1", "--force"),
            REFUSED,
            "'x:1' holds no slot of workflows: nobody",
        ),
        (("queue", "move", "a", "--before", "b", "--after", "c"), USAGE, "Give one of --before, --after"),
        (("workflow", "submit", "--project", "shop"), USAGE, "Say what the phases are"),
        (("audit", "--since", "yesterday"), USAGE, "write 2030-01-31T06:00:00Z, or 90m, 24h, 7d"),
        (("jobs", "list", "--limit", "0"), USAGE, "0 is too small"),
        (("jobs", "list", "--limit", "many"), USAGE, "'many' is not a number: write 1 or more"),
        (("jobs", "follow", "no such job"), REFUSED, "job_id: use 1 to 40 letters"),
        (("jobs", "show", "\udcff"), USAGE, "bytes that are no UTF-8"),
        (("submit", "\udcff", "--project", "shop"), USAGE, "bytes that are no UTF-8"),
    ],
)
async def test_what_cannot_be_done_says_why_and_what_would_help(words: tuple[str, ...], code: int, said: str) -> None:
    ended = await headgate(*words)

    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err


async def test_a_token_that_is_taken_back_opens_nothing_ends_what_it_opened_and_stays_so(there: Installation) -> None:
    made = (await headgate("token", "--user", "mallory", "--expires", "12h", "--json")).data
    signed_in = {"Authorization": f"Bearer {made['token']}"}
    async with httpx.AsyncClient(base_url=f"{there.up.url}/v1", headers=signed_in, timeout=30) as mallory:
        ticket = (await mallory.post("/stream-tickets")).json()["ticket"]
        async with listening(there.up.url, "/v1/stream", token=made["token"]) as client:
            revoked = (await headgate("token", "revoke", made["jti"], "--reason", "a lost laptop", "--json")).data
            heard = await client.events()
        again = await headgate("token", "revoke", made["token"])
        at_once = await mallory.get("/jobs")
        async with listening(there.up.url, f"/v1/stream?ticket={ticket}") as client:
            by_ticket = client.status
        await there.kill("admission")
        await eventually(lambda: _answers(mallory, "/jobs", 401), every_s=0.1)
    audit = (await headgate("audit", "--json")).data

    assert [event.kind for event in heard] == ["snapshot"]
    assert (revoked["changed"], at_once.status_code, by_ticket) == (True, 401, 401)
    assert again.out == f"{made['jti']}  it was taken back before.\n"
    [act] = [each for each in audit if each["act"] == "token_revoked"]
    assert (act["about"], act["reason"]) == (made["jti"], "a lost laptop")


async def _answers(client: httpx.AsyncClient, path: str, status: int) -> bool:
    """Not before it runs again: a gateway says 503 until then."""
    found = (await client.get(path)).status_code
    assert found in (status, 502, 503), found
    return found == status


async def test_a_team_reads_the_log_for_as_long_as_it_is_one(there: Installation) -> None:
    async with there.client("u-team", Tier.PARTNER) as client:
        await client.post("/jobs", json={"project_id": "shop", "pipeline": "rehearsal", "input": QUICK})

    made = (await headgate("teams", "add", "billing", "--consumer", "all", "--json")).data
    again = await headgate("teams", "add", "billing")
    own = await headgate("teams", "add", "worker")
    listed = (await headgate("teams", "list", "--json")).data
    async with nats_client(made["nats_url"]) as team:
        consumer = await team.jetstream().pull_subscribe("", "billing-all", "JOBS")
        assert await consumer.fetch(1, timeout=30)
    removed = await headgate("teams", "remove", "billing")

    assert (again.code, own.code, removed.code) == (REFUSED, REFUSED, DONE)
    assert "there is a team billing already" in again.err
    assert [(each["name"], each["consumers"]) for each in listed] == [("billing", ["billing-all"])]
    assert "password" not in listed[0]
    with pytest.raises(LogUnavailable):
        await connect(made["nats_url"], name="gone", within_s=0.5)
    assert (await headgate("teams", "list", "--json")).data == []


async def test_a_team_of_a_deployment_is_written_into_the_file_that_its_servers_read(tmp_path: Path) -> None:
    """Nothing is asked of a server, as none can be reached from here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADGATE_STATE", str(tmp_path))
        early = await headgate("teams", "add", "billing", "--deployed")
        write_secrets(StateFolder(tmp_path))
        made = (await headgate("teams", "add", "billing", "--deployed", "--json")).data
        said = await headgate("teams", "remove", "billing", "--deployed")

    assert (early.code, "make secrets" in early.err) == (FAILED, True)
    assert re.fullmatch(r"nats://team-billing:[\w-]{32}@nats:4222", made["nats_url"])
    assert "headgate migrate" in said.out
    assert read_teams((tmp_path / "secrets" / "teams" / "teams.conf").read_text()) == ()
