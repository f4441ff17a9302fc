"""A test that waits for ever fails alone: those after it run as if it had not been."""

import asyncio
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = """
[pytest]
pythonpath = {root}
asyncio_mode = auto
asyncio_default_fixture_loop_scope = session
asyncio_default_test_loop_scope = session
timeout = 240
addopts = -p no:cacheprovider -p no:anyio
filterwarnings = error
"""
PLUGIN = 'pytest_plugins = ["tests.fixtures.timeouts"]'
SHORT_GRACE = """
def pytest_configure():
    from tests.fixtures import timeouts

    timeouts.GRACE_S = 2.0
"""
NEXT = """
import asyncio
import shlex

async def test_the_next():
    assert asyncio.all_tasks() == {asyncio.current_task()}
"""
WAITS = """
async def never():
    await asyncio.Event().wait()

@pytest.mark.timeout(1)
async def test_it():
    await never()
"""
BLOCKS = """
import time

@pytest.mark.timeout(1)
async def test_it():
    while True:
        time.sleep(0.01)
"""
CLEARS_UP_FOR_EVER = """
import pytest_asyncio

@pytest_asyncio.fixture
async def kept():
    yield
    await asyncio.Event().wait()

@pytest.mark.timeout(1)
async def test_it(kept):
    assert False
"""


async def said_of(folder: Path, test: str, *, conftest: str = "") -> str:
    """What pytest says of this test and one more."""
    (folder / "pytest.ini").write_text(SETTINGS.format(root=shlex.quote(str(ROOT))))
    (folder / "conftest.py").write_text(f"{PLUGIN}\n{conftest}")
    (folder / "test_first.py").write_text(f"import asyncio\nimport pytest\n{test}")
    (folder / "test_second.py").write_text(NEXT)
    words = (sys.executable, "-m", "pytest", "--rootdir", str(folder))
    process = await asyncio.create_subprocess_exec(*words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out, _ = await process.communicate()
    return out.decode()


async def test_it_is_shown_where_it_waits_and_lives_on_nowhere(tmp_path: Path) -> None:
    said = await said_of(tmp_path, WAITS)

    assert "1 failed, 1 passed" in said, said
    assert "await never()" in said
    assert "Timeout (>1.0 s)" in said


async def test_one_that_lets_the_loop_do_nothing_is_ended_by_force(tmp_path: Path) -> None:
    said = await said_of(tmp_path, BLOCKS, conftest=SHORT_GRACE)

    assert "1 failed" in said, said
    assert "1 passed" in said, said
    assert "Timeout (>1.0s) from pytest-timeout" in said


@pytest.mark.parametrize("test", [CLEARS_UP_FOR_EVER, CLEARS_UP_FOR_EVER.replace("assert False", "pass")])
async def test_clearing_up_has_its_time_too_whatever_became_of_the_test(tmp_path: Path, test: str) -> None:
    said = await said_of(tmp_path, test)

    assert "1 error" in said, said
    assert "Timeout (>1.0 s)" in said
    assert "test_second.py ." in said
