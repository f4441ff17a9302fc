"""`headgate demo`: the whole system in a folder of its own, four jobs, and a word about each thing that is seen."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headgate_contracts.vocabulary import Tier
from libs.cli.board import JobLine
from libs.cli.client import Api, path_of
from libs.cli.errors import CliError
from libs.cli.following import watch_all
from libs.cli.jobs import contents
from libs.cli.output import Output
from libs.cli.streams import follow
from libs.cli.target import Target
from libs.cli.up import run
from libs.local.provisions import USER_SCOPE, signed
from libs.local.settings import UpSettings
from libs.local.state import StateFolder
from libs.local.up_file import UpFile
from libs.runtime.unpacking import Most, unpack

SLOTS: Final = 2  # fewer than there are jobs, so that some are seen to wait
STAGES: Final = {"scaffold": 0.6, "code": 2.0, "deps": 0.8, "checks": 0.6}
OF_A_RESULT: Final = Most(size_bytes=16 * 1024 * 1024, entries=1000, levels=32)  # it has a few KiB in a dozen files


class DemoFailed(CliError):
    """{how} The logs of that run are gone with its folder: `headgate up` keeps them."""


@dataclass(frozen=True, slots=True)
class Act:
    """One job of the tour."""

    title: str
    tier: Tier
    input: dict[str, Any]
    pipeline: str = "build"


ACTS: Final = (
    Act("bootstrapper", Tier.BOOTSTRAPPER, {"prompt": "a to-do list with due dates"}),
    Act("partner, first checks fail", Tier.PARTNER, {"stages": STAGES, "failing_cycles": 1}, "rehearsal"),
    Act("cto_scale", Tier.CTO_SCALE, {"prompt": "a rate limiter"}),
    Act("partner", Tier.PARTNER, {"prompt": "a URL shortener with expiry"}),
)


def demo(args: Namespace, out: Output) -> int:
    """The tour, from start to stop."""
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as folder:
        settings = UpSettings(port=0, state=Path(folder), policy=None, workers=1, slots=SLOTS)
        out.say("Headgate starts: nats-server for the log, Valkey for the view, four services, one port.", style="bold")
        return run(settings, then=lambda up: _in_thread(lambda: _tour(up, settings, out)), out=out, stay=False)


def _tour(up: UpFile, settings: UpSettings, out: Output) -> None:
    out.say(f"It is ready on {up.url}.\n")
    out.say(
        f"Four jobs for {SLOTS} slots: two run at once, the others wait and are told where\n"
        "they stand. Three are builds, one of each tier: a package is written, its\n"
        "environment made, its tests run. One is a rehearsal whose first checks fail.",
        style="bold",
    )
    apis = [Api(Target(up.url, _token(settings, act))) for act in ACTS]
    jobs = [_submitted(api, act) for api, act in zip(apis, ACTS, strict=True)]
    watched = [
        (JobLine(job["id"], act.title), follow(api, job["id"])) for api, act, job in zip(apis, ACTS, jobs, strict=True)
    ]
    ends = watch_all(watched, out)
    broken = [_how_it_ended(api, line) for api, line in zip(apis, ends, strict=True) if line.status != "ready"]
    if broken:
        raise DemoFailed(how=" ".join(broken))
    _show_history(apis[-1], jobs[-1]["id"], out)
    _show_result(apis[-1], jobs[-1]["id"], out)
    out.say("\nThat was it. `make up` starts a Headgate that stays; `headgate --help` tells what to do with it.")


def _how_it_ended(api: Api, line: JobLine) -> str:
    """With what only its owner is told."""
    error: Mapping[str, Any] = api.get(path_of("jobs", line.id))["error"] or {}
    return f"The job of {line.title} ended as {line.words.rstrip('.')}. {error.get('detail', '')}".rstrip()


def _submitted(api: Api, act: Act) -> dict[str, Any]:
    body = {"project_id": "demo", "pipeline": act.pipeline, "input": act.input}
    return api.post("/v1/jobs", body, key=f"demo {act.title}".replace(" ", "-").replace(",", ""))


def _show_history(api: Api, job_id: str, out: Output) -> None:
    history = api.get(path_of("jobs", job_id, "events"))
    out.say("\nEverything above was told from a log of events. This is what it holds about the last job:", style="bold")
    out.table(
        ("SEQ", "EVENT", "STATUS THEN", "ITERATION"),
        [
            (
                str(each["seq"]),
                each["event"],
                each["status"],
                str(each.get("iteration") or each.get("iterations") or ""),
            )
            for each in history
        ],
    )


def _show_result(api: Api, job_id: str, out: Output) -> None:
    """Fetch it, look into it, and run its own tests: it is a package like any other."""
    archive = api.fetch(path_of("jobs", job_id, "result"))
    out.say(f"\nIts result was downloaded ({len(archive)} bytes) and holds:", style="bold")
    for name, size in contents(archive).items():
        out.say(f"  {size:>6}  {name}")
    with tempfile.TemporaryDirectory(prefix="headgate-result-") as folder:
        unpack(io.BytesIO(archive), Path(folder), most=OF_A_RESULT)
        out.say("\nIts own tests, run here:", style="bold")
        out.say(f"  {_tested(Path(folder))}")


def _tested(folder: Path) -> str:
    """The last line that pytest says."""
    project = next(folder.rglob("pyproject.toml")).parent
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = ran.stdout.strip().splitlines()
    if ran.returncode:
        raise DemoFailed(how=f"The tests of the result do not pass: {said[-1] if said else ran.stderr[-500:]}.")
    return said[-1]


def _token(settings: UpSettings, act: Act) -> str:
    user = act.title.partition(",")[0].replace("_", "-")
    return signed(StateFolder(settings.state).keys, user=user, tier=act.tier, scope=USER_SCOPE)


async def _in_thread(work: Callable[[], None]) -> None:
    """Until the work is done. A thread that nobody waits for at the end: Ctrl-C must not wait for its next answer."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    faults: list[Exception] = []

    def body() -> None:
        try:
            work()
        except Exception as fault:  # noqa: BLE001 - it is raised where the work is awaited
            faults.append(fault)
        loop.call_soon_threadsafe(done.set)

    threading.Thread(target=body, daemon=True).start()
    await done.wait()
    for fault in faults:
        raise fault
