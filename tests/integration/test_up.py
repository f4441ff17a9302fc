"""`headgate up` as a process of its own, with everything real: jobs go through, deaths are mended, nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from libs.local.environments import of_machine, of_service
from libs.local.ports import free_ports
from libs.local.up_file import UpFile, read_up_file
from libs.runtime.eventually import eventually

READY_WITHIN_S = 90.0  # a machine under full load; an idle one needs 4
STOPPED_WITHIN_S = 90.0  # the same; an idle one needs what its slowest service needs, under 10
PROCESSES = ("admission", "notifier", "scheduler", "worker", "worker-2", "valkey", "nats")
REHEARSAL = {"stages": {"scaffold": 0.05, "code": 0.1, "deps": 0.05, "checks": 0.05}}
SERVICES = ("admission", "notifier", "scheduler", "worker")
PLANTED = {
    "HEADGATE_TOKEN": "an-operators",
    "HEADGATE_WEBHOOK_SECRETS": "of-the-shell",
    "OPENAI_API_KEY": "of-a-provider-that-is-not-named",
    "GITHUB_TOKEN": "of-another-program",
    "HTTPS_PROXY": "http://user:word@127.0.0.1:9",
    "HEADGATE_DRAIN_GRACE_S": "7",
}  # in the shell of `headgate up`
UNHURRIED = {"stages": {"scaffold": 0.2, "code": 5}, "log_lines": 20}  # so that it runs when somebody looks


@dataclass(frozen=True)
class Machine:
    """A folder, and what runs on it."""

    state: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        told = {"HEADGATE_STATE": str(self.state), "HEADGATE_PORT": str(self.port)}
        size = {"HEADGATE_WORKERS": "2", "HEADGATE_SLOTS": "2"}
        return {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")} | told | size

    @property
    def shell(self) -> dict[str, str]:
        """The one that `headgate up` is started in."""
        return self.environment | PLANTED

    @property
    def up(self) -> UpFile | None:
        return read_up_file(self.state / "up.json")

    async def begun(self, *words: str) -> asyncio.subprocess.Process:
        """One command, as it runs."""
        command = (sys.executable, "-m", "libs.cli", *words)
        return await asyncio.create_subprocess_exec(
            *command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    async def headgate(self, *words: str) -> tuple[int, str, str]:
        """One command: its code, what it printed, what it complained of."""
        return await ended(await self.begun(*words))

    async def submitted(self, **changes: Any) -> str:
        words = ("--project", "shop", "--pipeline", "rehearsal", "--input", json.dumps(REHEARSAL | changes), "--json")
        code, out, err = await self.headgate("submit", *words)
        assert code == 0, err
        return json.loads(out)["id"]


@pytest_asyncio.fixture(scope="module")
async def machine(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Machine]:
    """One that runs, for the tests that leave it running."""
    async with running(tmp_path_factory.mktemp("up")) as (machine, _):
        yield machine


async def test_nothing_that_runs_finds_what_is_anothers_in_its_environment(machine: Machine) -> None:
    """Read from the kernel, where we may: a worker lets nobody of its own user look. It shows a forked service with
    what the fork server began with, so with no password. What each is told is in `test_local_environments`."""
    assert machine.up
    found: dict[str, dict[str, str]] = {}
    for process in (*machine.up.services, *machine.up.servers):
        with suppress(PermissionError):
            found[process.name] = environment_of(process.pid)

    assert found.keys() >= {"admission", "scheduler", "notifier", "nats", "valkey", "caddy"}
    for name, told in found.items():
        may = of_service("", machine.shell) if name.partition("-")[0] in SERVICES else of_machine(machine.shell)
        assert told.items() & machine.shell.items() <= may.items(), name
        assert not PLANTED.items() & told.items(), name
        assert not [key for key in told if key.startswith("HEADGATE_") and key not in may], name


async def test_a_job_goes_from_submission_to_its_result(machine: Machine, tmp_path: Path) -> None:
    asked = ("--project", "shop", "--pipeline", "rehearsal", "--input", json.dumps(UNHURRIED))

    code, followed, err = await machine.headgate("submit", *asked, "--follow", "--json")
    job = json.loads(followed.splitlines()[0])["job_id"]
    _, history, _ = await machine.headgate("jobs", "events", job, "--json")
    result, contents, _ = await machine.headgate("jobs", "result", job, "-o", str(tmp_path / "r.tar.gz"), "--json")

    assert (code, result) == (0, 0), err
    events = [json.loads(line) for line in followed.splitlines()]
    statuses = [event["data"]["status"] for event in events if event["event"] == "status"]
    assert statuses[-1] == "ready"
    lines = [event["data"]["line"] for event in events if event["event"] == "log"]
    assert lines == [f"line {number} of 20 of iteration 1" for number in range(1, 21)]
    assert [event["event"] for event in json.loads(history)] == [
        "queued",
        "dispatched",
        "started",
        *["stage"] * 4,
        "ready",
    ]
    assert json.loads(contents)["contents"].keys() == {"rehearsal.json"}


@pytest.mark.up
async def test_whoever_follows_a_job_that_is_over_reads_all_of_it_in_its_order(machine: Machine) -> None:
    job = await machine.submitted(stages={"code": 0.5}, log_lines=2, failing_cycles=1)
    _, live, _ = await machine.headgate("jobs", "follow", job)

    code, out, _ = await machine.headgate("jobs", "follow", job)

    said = [f"code │ line {number} of 2 of iteration {iteration}" for iteration in (1, 2) for number in (1, 2)]
    told = [line for line in out.splitlines() if not line.startswith("queued")]
    first, second = ["starting", "scaffold", "code", *said[:2], "deps", "checks"], ["scaffold, iteration 2"]
    assert code == 0
    assert told[:7] == first
    assert told[told.index(second[0]) :][:4] == ["scaffold, iteration 2", "code, iteration 2", *said[2:]]
    assert told[-1].startswith("ready: ")
    assert [line for line in live.splitlines() if "│" in line] == [line for line in told if "│" in line]


@pytest.mark.up
async def test_a_job_that_fails_says_so_and_ends_with_1(machine: Machine) -> None:
    job = await machine.submitted(fail_at="code")

    code, out, _ = await machine.headgate("jobs", "follow", job)

    assert code == 1
    assert "failed: " in out
    assert "as its input asked for" in out


@pytest.mark.up
async def test_a_job_that_asks_goes_on_once_it_is_answered(machine: Machine) -> None:
    job = await machine.submitted(failing_cycles=3)  # as many as a partner's first batch
    await eventually(lambda: status_is(machine, job, "awaiting_confirmation"), every_s=0.2)

    answered, _, _ = await machine.headgate("jobs", "confirm", job)
    code, _, _ = await machine.headgate("jobs", "follow", job)
    twice, _, said = await machine.headgate("jobs", "confirm", job)

    assert (answered, code) == (0, 0)
    assert twice == 4
    assert "asks nothing" in said


@pytest.mark.up
async def test_a_running_job_can_be_cancelled(machine: Machine) -> None:
    job = await machine.submitted(stages={"code": 60})
    await eventually(lambda: status_is(machine, job, "code"), every_s=0.2)

    assert (await machine.headgate("jobs", "cancel", job))[0] == 0
    code, _, _ = await machine.headgate("jobs", "follow", job)

    assert code == 1
    assert await status_is(machine, job, "cancelled")


@pytest.mark.up
async def test_the_log_can_be_read_as_another_team_would(machine: Machine) -> None:
    job = await machine.submitted()
    await machine.headgate("jobs", "follow", job)

    code, out, err = await machine.headgate("log", "tail", "--last", "1000", "--no-follow", "--json")

    assert code == 0, err
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["type"] for record in records if record["data"].get("job_id") == job][
        -1
    ] == "dev.headgate.job.ready.v1"


@pytest.mark.up
async def test_a_migration_of_a_running_system_finds_nothing_to_do(machine: Machine) -> None:
    code, out, err = await machine.headgate("migrate", "--json")

    assert code == 0, err
    assert json.loads(out) == {"made": [], "changed": [], "removed": []}


@pytest.mark.up
async def test_another_user_sees_nothing_of_the_first_ones_jobs(machine: Machine) -> None:
    job = await machine.submitted()
    _, token, _ = await machine.headgate("token", "--user", "somebody-else", "--tier", "partner")

    status, _ = await asyncio.to_thread(answer_of, f"http://127.0.0.1:{machine.port}/v1/jobs/{job}", token.strip())

    assert status == 404


async def test_the_page_is_there(machine: Machine) -> None:
    status, page = await asyncio.to_thread(answer_of, f"http://127.0.0.1:{machine.port}/", "")

    assert status == 200
    assert b"<html" in page


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.up
async def test_whoever_is_killed_is_back_and_jobs_go_on(machine: Machine, name: str) -> None:
    before = machine.up
    assert before
    os.kill(pid_of(before, name), signal.SIGKILL)

    await eventually(lambda: (up := machine.up) and pid_of(up, name) != pid_of(before, name))
    job = await machine.submitted()
    code, out, err = await asyncio.wait_for(machine.headgate("jobs", "follow", job), 90)

    assert code == 0, out + err
    after = machine.up
    assert after
    assert (after.url, after.user_token) == (before.url, before.user_token)
    assert {each.name for each in after.services} == {each.name for each in before.services}


@pytest.mark.up
async def test_a_job_is_not_lost_with_its_worker(machine: Machine) -> None:
    job = await machine.submitted(stages={"code": 5})
    await eventually(lambda: status_is(machine, job, "code"), every_s=0.2)

    up = machine.up
    assert up
    for name in ("worker", "worker-2"):
        os.kill(pid_of(up, name), signal.SIGKILL)
    code, out, err = await asyncio.wait_for(machine.headgate("jobs", "follow", job), 120)

    assert code == 0, out + err
    assert "given back (" in out


@pytest.mark.up
async def test_ctrl_c_leaves_nothing_running_and_the_next_start_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as (machine, process):
        job = await machine.submitted()
        await machine.headgate("jobs", "follow", job)
        long_one = await machine.submitted(stages={"code": 5})
        first = machine.up
        assert first
        following = await machine.begun("jobs", "follow", long_one)
        assert following.stdout
        await following.stdout.readline()
        await eventually(lambda: status_is(machine, long_one, "code"), every_s=0.2)

        process.send_signal(signal.SIGINT)

        assert await asyncio.wait_for(process.wait(), STOPPED_WITHIN_S) == 0
        assert not [each for each in (*first.services, *first.servers) if alive(each.pid)]
        assert machine.up is None

    async with running(tmp_path, port=machine.port) as (machine, _):
        code, out, err = await asyncio.wait_for(ended(following), 90)

        assert code == 0, out + err
        assert await status_is(machine, job, "ready")


@pytest.mark.up
async def test_a_killed_supervisor_leaves_nothing_running_and_the_next_start_goes_on(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux tells a child of its parent's end")
    async with running(tmp_path) as (machine, process):
        job = await machine.submitted()
        first = machine.up
        assert first

        process.kill()

        await process.wait()
        await eventually(lambda: not [each for each in (*first.services, *first.servers) if alive(each.pid)])

    async with running(tmp_path, port=machine.port) as (machine, _):
        code, out, err = await asyncio.wait_for(machine.headgate("jobs", "follow", job), 90)

    assert code == 0, out + err


@pytest.mark.up
async def test_a_second_one_on_the_same_folder_says_so(machine: Machine) -> None:
    code, _, err = await machine.headgate("up", "--port", "0")

    assert code == 1
    assert "runs already" in err
    assert machine.up


@pytest.mark.up
async def test_the_demo_shows_every_tier_and_a_result_within_a_minute(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "unused", 0)

    code, out, err = await asyncio.wait_for(machine.headgate("demo"), 100)

    assert code == 0, out + err
    for title in ("bootstrapper", "partner", "cto_scale", "rehearsal"):
        assert f"{title}  ready" in out
    assert "pyproject.toml" in out
    assert " passed in " in out


async def test_nobody_was_refused_what_it_needs(machine: Machine) -> None:
    """Stands behind all that used the machine: what the servers refused since it was started."""
    nats = (machine.state / "nats" / "nats.log").read_text()
    services = "".join(path.read_text() for path in sorted((machine.state / "logs").iterdir()))

    assert [line for line in nats.splitlines() if "Violation" in line] == []
    assert "NOPERM" not in services
    assert "NoPermission" not in services


@asynccontextmanager
async def running(state: Path, *, port: int | None = None) -> AsyncIterator[tuple[Machine, asyncio.subprocess.Process]]:
    machine = Machine(state, port or free_ports(1)[0])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "libs.cli", "up"),
        env=machine.shell,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            lines = [line async for line in _until_ready(process.stdout)]
        assert f"ready http://127.0.0.1:{machine.port}" in lines, "\n".join(lines)
        yield machine, process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def _until_ready(lines: asyncio.StreamReader) -> AsyncIterator[str]:
    while line := (await lines.readline()).decode():
        yield line.rstrip("\n")
        if line.startswith("ready "):
            return


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def status_is(machine: Machine, job: str, status: str) -> bool:
    up = machine.up
    assert up
    code, body = await asyncio.to_thread(answer_of, f"{up.url}/v1/jobs/{job}", up.user_token)
    return code == 200 and json.loads(body)["status"] == status


def environment_of(pid: int) -> dict[str, str]:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if word)


def pid_of(up: UpFile, name: str) -> int:
    return next(each.pid for each in (*up.services, *up.servers) if each.name == name)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"  # one that nobody has reaped


def answer_of(url: str, token: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our own machine
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the same
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()
