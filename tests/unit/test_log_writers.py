"""Nothing but `libs/eventlog` writes to the log's subjects."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREFIXES = ("headgate.jobs.", "headgate.sched.", "headgate.ops.")
NAMES = {"JobSubject", "SchedSubject", "OpsSubject", "JOBS_PREFIX", "SCHED_PREFIX", "OPS_PREFIX", "LOG_SUBJECTS"}
SENDING = {"publish", "request", "publish_async", "publish_batch"}
APPENDING = ("Nats-Expected-Last", "Nats-Batch-")


def sources() -> Iterator[Path]:
    for folder in ("libs", "services", "contracts/headgate_contracts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ROOT / "libs/eventlog" not in path.parents:
                yield path


def writes_in(source: str) -> list[str]:
    """What in this source sends to the log's subjects, or dresses a message as an append."""
    tree = ast.parse(source)
    sends = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in SENDING]
    found = [f"{_called(send)} in line {send.lineno}" for send in sends if any(map(_names_the_log, ast.walk(send)))]
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return found + [text for text in texts if isinstance(text, str) and text.startswith(APPENDING)]


def _called(call: ast.Call) -> str | None:
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def _names_the_log(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return text.startswith(PREFIXES)
        case ast.Name(id=name):
            return name in NAMES
        case ast.Attribute(attr=name):
            return name in {"subject", "route"} | NAMES
        case _:
            return False


def test_nothing_else_writes_to_the_log() -> None:
    found = {str(path.relative_to(ROOT)): writes_in(path.read_text()) for path in sources()}

    assert {path: writes for path, writes in found.items() if writes} == {}


@pytest.mark.parametrize(
    "write",
    [
        "await nc.publish(event.subject, event.encode())",
        "await js.publish(str(event.data.route()), data)",
        "await broker.publish(data, subject=f'headgate.jobs.v1.{job}.x.y.ready')",
        "await nc.request(str(SchedSubject('main')), data)",
        "await js.publish(f'{subjects.OPS_PREFIX}.paused', data)",
        "headers = {'Nats-Expected-Last-Subject-Sequence': '0'}",
    ],
)
def test_a_write_would_be_found(write: str) -> None:
    assert len(writes_in(f"async def f():\n    {write}")) == 1


def test_a_publish_to_other_subjects_is_no_write() -> None:
    assert writes_in("async def f(m):\n    await nc.publish('headgate.logs.v1.job-1.code', m.line)") == []
