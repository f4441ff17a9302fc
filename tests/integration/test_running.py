"""How the suites are run: what the processes of a run share, and what they do not."""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SHARING: Final = """
import os
from pathlib import Path

import pytest

@pytest.fixture(scope="module")
def server():
    Path(__file__).with_name(f"{Path(__file__).stem}-by-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(20))
def test_it(server, number):
    pass
"""


def test_a_file_is_run_by_one_process_so_that_its_tests_share_a_server(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"test_{name}.py").write_text(SHARING)

    words = (sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", "-n", "2")
    ran = subprocess.run([*words, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours

    assert "40 passed" in ran.stdout, ran.stdout + ran.stderr
    servers = [path.name.partition("-by-") for path in tmp_path.glob("*-by-*")]
    assert sorted(name for name, _, _ in servers) == ["test_one", "test_other"]
    assert len({pid for _, _, pid in servers}) == 2
