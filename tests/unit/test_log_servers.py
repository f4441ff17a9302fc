"""What a server has to be like, and how a difference is told."""

from typing import Any

import pytest

from libs.eventlog import LogRefused, LogSettings
from libs.eventlog.expectation import messages_of
from libs.eventlog.guard import stream_differences
from libs.eventlog.servers import Server
from libs.eventlog.streams import HEADERS_BYTES, streams
from libs.eventlog.values import Entry
from tests.fixtures.lives import job_after, step


def report(version: str, **config: Any) -> dict[str, Any]:
    return {"server": {"name": "n1"}, "data": {"version": version, "jetstream": {"config": config}}}


@pytest.mark.parametrize("version", ["2.15.1", "2.15.2", "2.16.0", "3.0.0", "2.15.1-RC.3", "10.0.0"])
def test_a_server_that_is_new_enough_and_syncs_is_fit(version: str) -> None:
    assert Server.answering(report(version, sync_always=True, sync_interval=120_000_000_000)).differences() == []


@pytest.mark.parametrize("version", ["2.15.0", "2.14.9", "2.9.25", "1.99.99"])
def test_an_older_server_is_refused_by_its_number(version: str) -> None:
    differences = Server.answering(report(version, sync_always=True)).differences()

    assert differences == [f"server n1: version is {version}, must be 2.15.1 or newer"]


def test_a_server_that_syncs_now_and_then_is_refused_by_its_interval() -> None:
    differences = Server.answering(report("2.15.1", sync_interval=120_000_000_000)).differences()

    assert differences == ["server n1: sync_interval is 120 s, must be always"]


def test_a_server_without_jetstream_is_refused() -> None:
    differences = Server.answering({"server": {"name": "n1"}, "data": {"version": "2.15.1"}}).differences()

    assert differences == ["server n1: sync_interval is 0 s, must be always"]


def test_a_difference_names_the_setting_what_it_is_and_what_it_must_be() -> None:
    jobs, *_ = streams(LogSettings(replicas=3))
    found = dict(jobs.settings) | {
        "num_replicas": 1,
        "max_age": 86_400_000_000_000,
        "deny_delete": False,
        "sources": [{"name": "OTHER"}],
        "subjects": ["headgate.>"],
    }
    del found["allow_atomic"]

    assert stream_differences(jobs, found) == [
        "JOBS: num_replicas is 1, must be 3",
        "JOBS: max_age is 86400 s, must be 7776000 s",
        'JOBS: sources is [{"name": "OTHER"}], must be unset',
        'JOBS: subjects is ["headgate.>"], must be ["headgate.jobs.v1.>", "headgate.sched.v1.>", "headgate.ops.v1.>"]',
        "JOBS: deny_delete is false, must be true",
        "JOBS: allow_atomic is unset, must be true",
    ]


def test_what_is_off_may_be_left_out() -> None:
    for stream in streams(LogSettings()):
        assert stream_differences(stream, {key: value for key, value in stream.settings.items() if value}) == []


@pytest.mark.parametrize("replicas", [0, 2, 4, 7])
def test_a_number_of_replicas_that_survives_nothing_more_is_refused(replicas: int) -> None:
    with pytest.raises(LogRefused, match=f"replicas is {replicas}: use 1, 3 or 5"):
        LogSettings(replicas=replicas)


def test_the_largest_headers_fit_beside_the_largest_event() -> None:
    job = job_after("queued", "j" * 40).model_copy(update={"seq": 2**63})
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03"
    [message] = messages_of([Entry(step(job, "dispatched"), job, trace)])
    seat = {"Nats-Batch-Id": "f" * 32, "Nats-Batch-Sequence": "50", "Nats-Batch-Commit": "1"}

    lines = [f"{key}: {value}\r\n" for key, value in {**message.headers, **seat}.items()]

    assert len("NATS/1.0\r\n" + "".join(lines) + "\r\n") < HEADERS_BYTES
