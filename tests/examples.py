"""What the pages of the packages show, run as a reader runs it: a wheel's examples in an environment of that wheel,
against `headgate up` of the same wheels.

Owns which examples a wheel has, and what stands around one that is a piece: a loop, a client, a test's runner.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
SERVER: Final = "headgate-server"
READY: Final = "ready http"
WITH_CLIENT: Final = """
import asyncio
from headgate import Headgate
async def migrate():
    await asyncio.sleep(0)
async def main():
    async with Headgate() as hg:
{body}
asyncio.run(main())
"""
TESTS_RUN: Final = """
import asyncio, inspect
tests = [each for name, each in list(globals().items()) if name.startswith("test_")]
assert tests
for test in tests:
    asyncio.run(test()) if inspect.iscoroutinefunction(test) else test()
"""
BREAKS: Final = '{"stages": {"scaffold": 0.02, "code": 0.02}, "fail_at": "code"}'
# Of a project in which one job has failed already; the page's own loop goes on for ever.
FIRST_FAILURE: Final = """
import asyncio, os
asyncio.run(report_failures(os.environ["NATS_URL"], project="shop"))
"""


@dataclass(frozen=True, slots=True)
class Example:
    """A program, the modules that it finds beside it, and what it says first where it does not end by itself."""

    name: str
    program: str
    modules: Mapping[str, str] = field(default_factory=dict[str, str])
    says: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """One of wheels, and the empty folder that everything in it starts in."""

    programs: Path
    folder: Path
    shell: Mapping[str, str]

    def begins(self, program: str, *words: str, **told: str) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - ours
            (str(self.programs / program), *words),
            cwd=self.folder,
            env={**self.shell, **told},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def runs(self, program: str, *words: str, **told: str) -> str:
        """What it said; it has to end well."""
        begun = self.begins(program, *words, **told)
        said, _ = begun.communicate()
        return require(begun, said)


def require(begun: subprocess.Popen[str], said: str) -> str:
    if begun.returncode:
        raise SystemExit(f"wheels: {begun.args!r} ended with {begun.returncode}\n{said}")
    return said


def blocks_of(page: str, *, section: str = "") -> list[str]:
    """Its Python, block by block; of one section, where one is named."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if section:
        text = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    found: list[str] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert found, f"{page} shows no Python there"
    return found


def examples_of(wheel: str) -> tuple[Example, ...]:
    """Those of the pages that this wheel's users read."""
    return EXAMPLES.get(wheel, tuple)()


def _of_the_client() -> tuple[Example, ...]:
    page = "docs/client.md"
    [quick] = blocks_of("libs/client/README.md")
    first, without_loop, slot, refused, *_ = blocks_of(page)
    pieces = {"slot": slot, "refused": refused}
    return (
        Example("libs/client/README.md", quick),
        Example(page, first),
        Example(f"{page}, without a loop", without_loop),
        *(
            Example(f"{page}, {name}", WITH_CLIENT.format(body=indent(piece, " " * 8)))
            for name, piece in pieces.items()
        ),
    )


def _of_the_client_in_memory() -> tuple[Example, ...]:
    [tests] = blocks_of("docs/client.md", section="In your own tests")
    return (Example("docs/client.md, in your own tests", tests + TESTS_RUN),)


def _of_authors() -> tuple[Example, ...]:
    greeting, greeted = blocks_of("libs/pipeline/README.md")
    survey, surveyed = blocks_of("docs/pipelines.md", section="From nothing to a passing test")
    return (
        Example("libs/pipeline/README.md", greeted + TESTS_RUN, {"greeting.py": greeting}),
        Example("docs/pipelines.md", surveyed + TESTS_RUN, {"survey.py": survey}),
    )


def _of_consumers() -> tuple[Example, ...]:
    [consumer] = blocks_of("contracts/README.md", section="A working consumer, in ten lines")
    return (Example("contracts/README.md", consumer + FIRST_FAILURE, says="The rehearsal broke in code"),)


EXAMPLES: Final[Mapping[str, Callable[[], tuple[Example, ...]]]] = {
    "headgate": _of_the_client,
    "headgate[testing]": _of_the_client_in_memory,
    "headgate-pipeline": _of_authors,
    "headgate-contracts": _of_consumers,
}
# What the pages have installed beside a wheel.
BESIDE: Final[Mapping[str, Sequence[str]]] = {"headgate-contracts": ("nats-py",)}


def carry_out(example: Example, environment: Environment, there: Mapping[str, str]) -> None:
    """As its page says; it ends well, or says what it should."""
    for name, text in example.modules.items():
        (environment.folder / name).write_text(text, encoding="utf-8")
    begun = environment.begins("python", "-u", "-c", example.program, **there)
    if example.says is None:
        said, _ = begun.communicate()
        require(begun, said)
        return
    said = _until(begun, example.says)
    begun.kill()
    begun.communicate()
    if example.says not in said:
        raise SystemExit(f"wheels: {example.name} did not say {example.says!r}\n{said}")


@contextmanager
def running(server: Environment) -> Iterator[Mapping[str, str]]:
    """`headgate up` in an empty folder, with the pipeline of docs/pipelines.md; what others have to be told of it."""
    (server.folder / "greeting.py").write_text(blocks_of("docs/pipelines.md")[0], encoding="utf-8")
    told = {"PYTHONPATH": str(server.folder), "HEADGATE_PIPELINES": "greeting"}
    up = server.begins("headgate", "up", "--port", "0", "--workers", "1", **told)
    said = _until(up, READY)
    try:
        if READY not in said:
            raise SystemExit(f"wheels: headgate up was never ready\n{said}")
        known = json.loads((server.folder / ".headgate" / "up.json").read_text(encoding="utf-8"))
        yield {"HEADGATE_URL": known["url"], "HEADGATE_TOKEN": known["user_token"], "NATS_URL": known["nats_url"]}
    finally:
        up.send_signal(signal.SIGINT)
        rest, _ = up.communicate()
    require(up, said + rest)


def use_command(server: Environment) -> None:
    """The lines of docs/pipelines.md in another terminal, and a job that fails, for consumers."""
    greeted = ("--pipeline", "greeting", "--input", '{"name": "Ann"}')
    job = _submitted(server, *greeted)
    server.runs("headgate", "jobs", "result", job, "--output", "greeting.tar.gz")
    _submitted(server, "--pipeline", "rehearsal", "--input", BREAKS)
    server.runs("headgate", "pipelines", "new", "weather")
    replace(server, folder=server.folder / "weather").runs("headgate", "pipelines", "check", "weather")


def _submitted(server: Environment, *words: str) -> str:
    begun = server.begins("headgate", "submit", "--project", "shop", "--follow", "--json", *words)
    said, _ = begun.communicate()
    told: Any = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    return str(told["job_id"])


def _until(begun: subprocess.Popen[str], text: str) -> str:
    """What it has said, up to this text or its end."""
    assert begun.stdout is not None
    said = ""
    for line in begun.stdout:
        said += line
        if text in line:
            break
    return said
