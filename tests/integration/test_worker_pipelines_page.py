"""docs/pipelines.md is run as it stands: what the page says a pipeline is, a real worker takes for one."""

import io
import re
import tarfile
from pathlib import Path

import pytest

from headgate_contracts.commands import LOGS_PREFIX, LogLine
from libs.eventlog.buckets import JetStreamObjects
from libs.eventlog.streams import RESULTS
from services.worker.pipeline import Context
from tests.fixtures.clients import nats_client
from tests.fixtures.floor import a_floor

PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


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


@pytest.mark.timeout(120)
async def test_the_pipeline_of_the_page_runs(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "greeting.py").write_text(CODE[0], encoding="utf-8")
    said: list[str] = []

    async def hear(message: object) -> None:
        said.append(LogLine.model_validate_json(message.data).line)  # type: ignore[attr-defined]

    async with a_floor(nats_url, redis_url, tmp_path) as floor, nats_client(nats_url) as client:
        await client.subscribe(f"{LOGS_PREFIX}.*", cb=hear)
        await client.flush()
        await floor.crowd.scheduler("a")
        await floor.worker("w1", HEADGATE_PIPELINES="greeting", PYTHONPATH=str(tmp_path / "modules"))
        await floor.submit("job-1", {"name": "Ann"}, pipeline="greeting")

        job = await floor.until("job-1", "ready", "failed", within_s=40)

        assert job.status == "ready", job.failure
        content = await JetStreamObjects(client, RESULTS).get(job.result or "")
    with tarfile.open(fileobj=io.BytesIO(content or b"")) as archive:
        file = archive.extractfile("greeting.txt")
        assert file is not None
        assert file.read() == b"Hello, Ann!\n"
    assert (job.iteration, said[0]) == (2, "cycle 1: a greeting for Ann")
