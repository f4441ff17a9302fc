"""What a hostile command tries, at every level: it is contained, nothing of it is left, and the worker lives."""

import os
import signal
import time
from typing import Any

import pytest

from tests.hostile.conftest import BOUNDS, Hostile, living


def contained(ran: dict[str, Any], *ended_by: str) -> None:
    """By one of these; nothing is left, and the next command runs."""
    assert ran.get("ended_by") in ended_by, ran
    assert ran["left"] == []
    assert ran["area"] == []
    assert ran["removed"]
    assert ran["afterwards"] == "still here"


def test_a_fork_bomb_is_ended(hostile: Hostile) -> None:
    ran = hostile.shell("bomb() { bomb | bomb & }; bomb; wait; sleep 600")

    contained(ran, "processes")
    assert ran["took_s"] < 60


def test_a_fork_bomb_of_daemons_is_ended(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0: os.setsid()\n"
        "    except OSError: time.sleep(0.01)\n"
    )

    contained(ran, "processes")


def test_ten_gigabytes_at_once_are_refused(hostile: Hostile) -> None:
    ran = hostile.python("held = bytearray(10 << 30)")

    contained(ran, "itself", "memory")
    assert ran["ended_by"] == "memory" or "MemoryError" in ran["output_tail"]
    assert ran["largest_bytes"] < 2 * BOUNDS["memory_bytes"]


def test_memory_that_grows_ends_at_its_bound(hostile: Hostile) -> None:
    ran = hostile.python("held = []\nwhile True: held.append(b'x' * (4 << 20))")

    contained(ran, "itself", "memory")
    assert ran["largest_bytes"] < 2 * BOUNDS["memory_bytes"]


def test_memory_of_many_processes_is_added_up(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, time\n"
        "for _ in range(20):\n"
        "    if os.fork() == 0:\n"
        "        held = os.urandom(1 << 20) * 40\n"
        "        time.sleep(600)\n"
        "    time.sleep(0.02)\n"
        "time.sleep(600)\n"
    )

    contained(ran, "memory")


def test_what_forks_share_is_counted_once(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, time\n"
        "held = os.urandom(1 << 20) * 60\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0: time.sleep(1); os._exit(0)\n"
        "for _ in range(8): os.wait()\n"
    )

    assert (ran["exit_code"], ran["ended_by"]) == (0, "itself"), ran


def test_memory_that_poses_as_a_file_counts_too(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, time\n"
        "held = [os.memfd_create(str(n)) for n in range(40)]\n"
        "for each in held:\n"
        "    for _ in range(8): os.write(each, bytes(1 << 20))\n"
        "time.sleep(600)\n"
    )

    contained(ran, "memory", "disk")


def test_many_files_fill_no_disk(hostile: Hostile) -> None:
    ran = hostile.shell("i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > file-$i || exit 9; done")

    contained(ran, "disk")


def test_one_large_file_ends_at_its_bound(hostile: Hostile) -> None:
    ran = hostile.shell("exec head -c 10000000000 /dev/zero > large")

    contained(ran, "itself", "disk")
    assert ran["exit_code"] in {128 + signal.SIGXFSZ, 1, None}


def test_deleted_files_that_are_held_open_count_too(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, time\n"
        "held = []\n"
        "for n in range(30):\n"
        "    held.append(open('gone', 'wb', buffering=0)); os.unlink('gone'); held[-1].write(bytes(8 << 20))\n"
        "time.sleep(600)\n"
    )

    contained(ran, "disk")


def test_a_million_empty_files_count_too(hostile: Hostile) -> None:
    ran = hostile.python("n = 0\nwhile True:\n    open(f'empty-{n}', 'w').close(); n += 1")

    contained(ran, "disk")


def test_a_bottomless_folder_is_no_place_to_hide(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, time\n"
        "for _ in range(3000): os.mkdir('d'); os.chdir('d')\n"
        "open('hidden', 'wb').write(bytes(1 << 20))\n"
        "time.sleep(600)\n"
    )

    contained(ran, "disk")


def test_a_folder_without_rights_is_no_place_to_hide(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, time\n"
        "os.mkdir('closed')\n"
        "for n in range(20): open(f'closed/{n}', 'wb').write(bytes(8 << 20))\n"
        "os.chmod('closed', 0)\n"
        "time.sleep(600)\n"
    )

    contained(ran, "disk")


def test_a_disk_that_others_have_filled_is_the_machines_fault_and_not_the_commands(hostile: Hostile) -> None:
    if os.getuid() != 0:
        pytest.skip("only root mounts a disk of its own to fill")

    ran = hostile.shell("echo much > file", disk_is_full=True)

    assert ran.get("refused") == "The machine gave out under the command: the disk is full", ran
    assert ran["afterwards"] == "still here"


def test_what_it_writes_last_counts_too(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os\nfor n in '123': os.posix_fallocate(os.open(n, os.O_WRONLY | os.O_CREAT), 0, 40 << 20)"
    )

    contained(ran, "disk")


def test_a_gigabyte_of_output_is_cut(hostile: Hostile) -> None:
    ran = hostile.shell("exec head -c 1000000000 /dev/zero")

    contained(ran, "output")
    assert len(ran["output_tail"]) <= 32_000
    assert ran["took_s"] < 60


def test_a_busy_tree_uses_up_its_time(hostile: Hostile) -> None:
    ran = hostile.shell("trap '' TERM; while :; do :; done & while :; do :; done", timeout_s=1.0)

    contained(ran, "time")
    assert ran["took_s"] < 60


def test_who_ignores_the_signal_is_ended_all_the_same(hostile: Hostile) -> None:
    ran = hostile.shell("trap '' TERM INT HUP; while :; do sleep 600; done", timeout_s=0.5)

    contained(ran, "time")
    assert ran["took_s"] < 60


def test_a_daemon_does_not_outlive_its_command(hostile: Hostile) -> None:
    ran = hostile.python(
        "import os, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    if os.fork() == 0:\n"
        "        os.closerange(0, 100)\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        "print('let go')\n"
    )

    contained(ran, "itself")
    assert (ran["exit_code"], ran["output_tail"]) == (0, "let go\n")
    assert ran["took_s"] < 60


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_worker_that_dies(hostile: Hostile, fatal: signal.Signals) -> None:
    nonce = f"dies-{os.getpid()}-{hostile.place}-{fatal}"
    way = {"argv": ["bash", "-c", "trap '' TERM; setsid sleep 600 & sleep 600"], "nonce": nonce, "timeout_s": 600}

    with hostile.started([way]) as driver:
        if not _begins(nonce, driver):
            said = driver.communicate(timeout=30)
            pytest.skip(f"no such level here: {said}")
        os.kill(driver.pid, fatal)
        driver.wait(timeout=30)

        until = time.monotonic() + 60
        while living(nonce) and time.monotonic() < until:
            time.sleep(0.02)
        assert living(nonce) == []


def _begins(nonce: str, driver: Any) -> bool:
    while len(living(nonce)) < 2:
        if driver.poll() is not None:
            return False
        time.sleep(0.05)
    return True
