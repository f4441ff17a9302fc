"""The package that other teams install: pydantic and nothing else, and the README works with it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pydantic
import pytest

from headgate_contracts.generate import HERE
from libs.eventlog import Appended
from tests.fixtures.lives import life_of
from tests.fixtures.logs import opened
from tests.fixtures.readme import CONSUMER as README_CONSUMER

LIBRARIES = Path(pydantic.__file__).parents[1]
OF_PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
UV = Path(sys.executable).parent / "uv"

# A Python of its own: the standard library, what stands in these folders, and no more.
ALONE = (sys.executable, "-I", "-S", "-u", "-c")
IMPORTS = """
import sys
sys.path[:0] = sys.argv[1:]
import headgate_contracts, pkgutil
for module in pkgutil.iter_modules(headgate_contracts.__path__, "headgate_contracts."):
    __import__(module.name)
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)))
"""
READS = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import headgate_contracts
from headgate_contracts import Event, UnknownEvent, fold, parse_event, parse_subject
assert Path(headgate_contracts.__file__).is_relative_to(sys.argv[1])
events = [parse_event(line.encode()) for line in sys.stdin]
assert all(str(parse_subject(event.subject)) == event.subject for event in events)
newer = events[-1].encode().replace(b".ready.v1", b".praised.v1")
assert isinstance(parse_event(newer), UnknownEvent)
print(fold(events).status)
"""
CONSUMES = """
import asyncio, sys
sys.path[:0] = sys.argv[1:3]
names = {}
exec(sys.argv[3], names)
asyncio.run(names["report_failures"](sys.argv[4], project="shop"))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing in it but the wheel, unpacked as an installer does it."""
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
    offline = ("--quiet", "--offline", "--no-config", "--python", sys.executable)
    _run(str(UV), "build", *offline, "--wheel", "--no-build-isolation", "--out-dir", str(wheels), str(HERE))
    [wheel] = wheels.glob("*.whl")
    _run(str(UV), "pip", "install", *offline, "--no-deps", "--target", str(target), str(wheel))
    return target


def test_it_asks_for_pydantic_alone(installed: Path) -> None:
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    [metadata] = installed.glob("*.dist-info/METADATA")

    assert [name.partition(">")[0] for name in project["dependencies"]] == ["pydantic"]
    assert re.findall(r"^Requires-Dist: (\w+)", metadata.read_text(), flags=re.MULTILINE) == ["pydantic"]


def test_it_imports_nothing_but_pydantic(installed: Path) -> None:
    seen = _run(*ALONE, IMPORTS, str(installed), str(LIBRARIES)).split()

    assert {name for name in seen if not name.startswith("_")} == {"headgate_contracts"} | OF_PYDANTIC


def test_it_brings_its_types_and_the_api(installed: Path) -> None:
    for name in ("py.typed", "openapi.json"):
        assert (installed / "headgate_contracts" / name).is_file()


def test_it_reads_builds_subjects_folds_and_passes_over_what_is_newer(installed: Path) -> None:
    life = b"\n".join(event.encode() for event in life_of())

    assert _run(*ALONE, READS, str(installed), str(LIBRARIES), given=life) == "ready\n"


async def test_the_consumer_of_the_readme_runs_on_it(installed: Path, nats_url: str) -> None:
    async with opened(nats_url) as log:
        for seq, event in enumerate(life_of(story="queued dispatched started scaffold failed", project_id="shop")):
            assert isinstance(await log.append(event, after=seq), Appended)
    consumer = await asyncio.create_subprocess_exec(
        *ALONE, CONSUMES, str(installed), str(LIBRARIES), README_CONSUMER, nats_url, stdout=asyncio.subprocess.PIPE
    )
    assert consumer.stdout is not None

    try:
        told = await asyncio.wait_for(consumer.stdout.readline(), timeout=30)
    finally:
        consumer.kill()
        await consumer.wait()

    assert told.decode().startswith("job-1 ")


def _run(*words: str, given: bytes | None = None) -> str:
    done = subprocess.run(words, input=given, capture_output=True, check=False)  # noqa: S603 - our own interpreter and uv
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
