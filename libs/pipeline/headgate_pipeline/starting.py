"""A new package with a pipeline and its tests, which pass: what `headgate pipelines new NAME` writes."""

import re
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Final

from headgate_pipeline.rules import BUILT_IN

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,47}")

PROJECT: Final = """\
[project]
name = "{name}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["headgate-pipeline"]  # from the wheels of `make wheels`, or an index of yours: PyPI has none of ours

[dependency-groups]
dev = ["pytest"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
only-include = ["{module}.py"]

[tool.pytest.ini_options]
pythonpath = ["."]
testpaths = ["tests"]
"""

PIPELINE: Final = '''\
"""The pipeline `{name}`."""

from pydantic import BaseModel, Field

from headgate_pipeline import ChecksFailed, Context, Pipeline, TryAgain, input_as, stage


class Wanted(BaseModel):
    """A job's input: submissions are checked by it, and the page makes its form of it."""

    topic: str = Field(min_length=1, description="what it is about")
    lines: int = Field(3, ge=1, le=100)


@stage("gather", retries=3, backoff_s=(1, 60))
async def gather(ctx: Context) -> None:
    try:
        text = "\\n".join(f"{{number}}. {{ctx.input.topic}}" for number in range(1, ctx.input.lines + 1))
    except ConnectionError as error:  # whatever is away for a moment
        raise TryAgain("Nothing could be gathered.", str(error)) from error
    (ctx.workspace / "gathered.txt").write_text(text)


@stage("write", title="Writing the report")
async def write(ctx: Context) -> None:
    ctx.log(f"iteration {{ctx.iteration}}")
    ctx.result.mkdir(exist_ok=True)
    (ctx.result / "report.txt").write_text((ctx.workspace / "gathered.txt").read_text() + "\\n")


@stage("check")
async def check(ctx: Context) -> None:
    if ctx.input.topic not in (ctx.result / "report.txt").read_text():
        raise ChecksFailed("The report is about something else.")


pipeline = Pipeline("{name}", (gather, write, check), input_as(Wanted), again_at="write", version="0.1.0")
'''

TEST: Final = """\
from {module} import pipeline
from headgate_pipeline import TryAgain
from headgate_pipeline.testing import run


def test_it_reports() -> None:
    told = run(pipeline, {{"topic": "tea", "lines": 1}}, fails={{"gather": [TryAgain("away")]}}, loses=["gather"])

    assert (told.status, told.result) == ("ready", {{"report.txt": b"1. tea\\n"}})


def test_an_empty_topic_is_refused() -> None:
    assert run(pipeline, {{"topic": ""}}).status == "failed"
"""

FILES: Final = {"pyproject.toml": PROJECT, "{module}.py": PIPELINE, "tests/test_{module}.py": TEST}


class NotStarted(Exception):
    """No package was made: {why}."""

    def __init__(self, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(why=why))


def start(name: str, below: Path) -> list[Path]:
    """The files that were written, in a folder of that name. Raises NotStarted where one is there already."""
    if not NAME.fullmatch(name):
        raise NotStarted(f"{name!r} is no name: begin with a letter, then up to 47 of a-z 0-9 _ -")
    if name in BUILT_IN:
        raise NotStarted(f"the name is taken: {name} is built in")
    folder, module = below / name, name.replace("-", "_")
    if folder.exists():
        raise NotStarted(f"{folder} is there already: take another name, or remove it")
    if iskeyword(module) or find_spec(module) is not None:
        raise NotStarted(f"the name is taken: for Python `import {module}` means something else")
    told = {"name": name, "module": module}
    written = [folder / path.format(**told) for path in FILES]
    for path, text in zip(written, FILES.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**told), encoding="utf-8")
    return written
