"""What the spawner runs before it forks any attempt: nothing of it is left but what is worth having."""

import asyncio
import os
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from services.worker.child.loop import StageLoop
from services.worker.child.warming import warm_link


def around() -> object:
    """What a process has beside its memory."""
    descriptors = {path.name for path in Path("/dev/fd").iterdir()}
    return Path.cwd(), dict(os.environ), threading.active_count(), descriptors


def runs_with_threads(loop: StageLoop) -> bool:
    """Whether a stage there is woken by a thread, which takes a socket. It is over with the loop then."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop.go_on(theirs)
        thread = loop.run(asyncio.to_thread(threading.get_native_id))
        assert loop._loop is not None
        loop.run(loop._loop.shutdown_default_executor())
        loop.rest()
    loop._loop.close()
    return thread != threading.get_native_id()


def test_it_leaves_no_folder_no_thread_no_descriptor_and_no_other_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = around()

    link = warm_link()

    assert around() == before
    assert list(tmp_path.iterdir()) == []
    assert link.folder is None
    assert link.sandbox is None
    assert runs_with_threads(link.loop)


def test_where_nothing_can_be_written_attempts_begin_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")

    assert runs_with_threads(warm_link().loop)
