"""docs/pipelines.md is run as it stands: what the page says a pipeline is, a real worker takes for one."""

import re
from pathlib import Path
from typing import Any

from headgate_pipeline import Context
from tests.fixtures.worker_system import a_worker_system, heard_lines

PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def told_to_up(folder: Path) -> dict[str, Any]:
    """What the page puts before `make up`, said in this folder."""
    (told,) = re.findall(r"^(\S.*) make up$", PAGE, flags=re.MULTILINE)
    return dict(word.replace("$PWD", str(folder)).split("=", 1) for word in told.split(" "))


def test_it_takes_about_twenty_lines() -> None:
    assert len([line for line in CODE[0].splitlines() if line.strip()]) <= 25


def test_the_page_names_all_that_a_stage_is_given() -> None:
    given = {name for name in dir(Context) if not name.startswith("_")} - {"job_id", "project_id", "stage"}

    told = {
        name
        for cells in re.findall(r"^\| (`.+?) \|", PAGE, flags=re.MULTILINE)
        for name in re.findall(r"`(\w+)", cells)
    }

    assert given <= told, given - told


async def test_the_pipeline_of_the_page_runs(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "greeting.py").write_text(CODE[0], encoding="utf-8")
    async with a_worker_system(nats_url, redis_url, tmp_path) as system, heard_lines(nats_url) as said:
        await system.base.scheduler("a")
        await system.worker("w1", **told_to_up(tmp_path / "modules"))
        await system.submit("job-1", {"name": "Ann"}, pipeline="greeting")

        job = await system.until("job-1", "ready", "failed")

        assert job.status == "ready", job.failure
        assert await system.result("job-1") == {"greeting.txt": b"Hello, Ann!\n"}
    assert (job.iteration, said[0].line) == (2, "iteration 1: a greeting for Ann")
