"""What runs the tests: it ends as they do, unless a process has outlived them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.worker_system import lives

ROOT = Path(__file__).parents[2]
LEAVES_ONE = """
import subprocess, sys
hidden = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600.25)"
left = subprocess.Popen([sys.executable, "-c", hidden], stdout=subprocess.PIPE)
print(int(left.stdout.readline()))
"""


@pytest.mark.parametrize(("code", "shown"), [(0, 0), (3, 3), (-signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_run_that_leaves_nothing_ends_as_its_command_does(code: int, shown: int) -> None:
    ends = f"import os; os._exit({code})" if code >= 0 else f"import os; os.kill(os.getpid(), {-code})"

    assert outlived(ends).returncode == shown


@pytest.mark.parametrize("code", [0, 3])
def test_what_outlives_a_run_is_named_and_ended_and_fails_it(code: int) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux tells of what has lost its parent")
    ran = outlived(f"{LEAVES_ONE}\nsys.exit({code})", ending_s=0.2)

    left = int(ran.stdout)
    assert ran.returncode == (code or 1)
    assert f"outlived the tests, and was ended: {left} " in ran.stderr
    assert "time.sleep(600.25)" in ran.stderr
    assert not lives(left)


def outlived(program: str, *, ending_s: float = 30.0) -> subprocess.CompletedProcess[str]:
    run = f"""
import sys
from tests import outliving
outliving.ENDING_S = {ending_s}
sys.exit(outliving.main(sys.argv[1:]))
"""
    command = (sys.executable, "-c", run, sys.executable, "-c", program)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own
