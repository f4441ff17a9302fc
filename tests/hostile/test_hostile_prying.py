"""What a curious command finds: nothing of the worker's, nothing of the machine's, and no way out."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.conftest import PLACES, REFUSED, UNREACHED, Hostile, Place

SCRIPT = (Path(__file__).parent / "prying.py").read_text(encoding="utf-8")
PRIED = (
    *PLACES,
    Place("plain-root-without-landlock", as_root=True, without=("landlock",)),
    Place("plain-root-in-a-container-without-landlock", as_root=True, without=("spaces", "landlock", "cgroup")),
)


@pytest.fixture(params=PRIED, ids=str)
def place(request: pytest.FixtureRequest) -> Place:
    return request.param


@pytest.fixture(scope="session")
def answers() -> dict[tuple[str, bool], dict[str, Any]]:
    return {}


@pytest.fixture
def found(hostile: Hostile, answers: dict[tuple[str, bool], dict[str, Any]]) -> dict[str, Any]:
    """Without a network; asked once in each place."""
    return _asked(hostile, answers, network=False)


@pytest.fixture
def found_outside(hostile: Hostile, answers: dict[tuple[str, bool], dict[str, Any]]) -> dict[str, Any]:
    """With a network."""
    return _asked(hostile, answers, network=True)


def _asked(hostile: Hostile, answers: dict[tuple[str, bool], dict[str, Any]], *, network: bool) -> dict[str, Any]:
    key = (hostile.place.name, network)
    if key not in answers:
        ran = hostile.python(SCRIPT, network=network)
        assert (ran["ended_by"], ran["exit_code"]) == ("itself", 0), ran
        answers[key] = json.loads(ran["output_tail"]) | {"ran": ran}
    return answers[key]


def unless_without(hostile: Hostile, *means: str) -> None:
    if {*means} <= {*hostile.place.without}:
        pytest.skip(f"not contained without {' or '.join(means)}, and said so at start")


def test_the_worker_lives_on_afterwards(found: dict[str, Any]) -> None:
    assert found["ran"]["afterwards"] == "still here"
    assert found["ran"]["left"] == []


def test_nobodys_environment_or_memory_can_be_read(found: dict[str, Any]) -> None:
    assert found["secrets"] == []
    assert found["memories"] == []
    assert found["attach"] in REFUSED


def test_its_own_environment_is_what_it_was_given(found: dict[str, Any]) -> None:
    given = {"ABSTRACT", "DRIVER", "FOLDER", "NONCE", "TCP", "TERMINAL", "UDP"}
    assert set(found["names"]) - given <= {"HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR"}


def test_it_has_three_descriptors_and_a_session_of_its_own(found: dict[str, Any]) -> None:
    assert found["descriptors"] == [0, 1, 2]
    assert found["session"]


def test_it_has_no_rights_and_gets_none(found: dict[str, Any], hostile: Hostile) -> None:
    assert found["user"] != 0
    assert {int(each, 16) for each in found["rights"]} == {0}
    assert found["unshare"] in REFUSED
    assert found["io_uring"] in REFUSED
    assert found["raw"] in REFUSED


def test_it_can_neither_end_nor_throttle_the_worker(found: dict[str, Any]) -> None:
    assert found["the worker"] in REFUSED
    assert found["limits of the worker"] in REFUSED
    for what in ("niceness", "processors", "schedule", "parameters", "attributes", "disks"):
        assert found[f"{what} of the worker"] in REFUSED, what
    assert found["niceness of its user"] in REFUSED
    assert isinstance(found["own niceness"], int)


def test_it_reads_nothing_of_the_workers_and_nothing_secret_of_the_machine(found: dict[str, Any]) -> None:
    assert found["private file"] in REFUSED
    assert found["shadow"] in REFUSED
    assert found["locks"] in REFUSED


def test_it_neither_hears_nor_speaks_on_anybodys_terminal(found: dict[str, Any]) -> None:
    assert found["terminal"] in REFUSED


def test_it_writes_where_it_may_and_nowhere_else(found: dict[str, Any], hostile: Hostile) -> None:
    assert (found["workspace"], found["own home"], found["own temporary files"]) == ("written", "written", "written")
    unless_without(hostile, "spaces", "landlock")
    assert found["ran"]["open"] == []
    assert {found["open folder"], found["through a link"]} <= REFUSED
    assert found["the machine's temporary files"] in REFUSED


def test_nothing_it_wrote_is_left_on_the_machine(found: dict[str, Any], hostile: Hostile) -> None:
    unless_without(hostile, "spaces", "landlock")
    assert found["ran"]["shared"] == []


def test_it_changes_no_rights_of_anybodys_files(found: dict[str, Any], hostile: Hostile) -> None:
    if "rights and times of the worker's files" in found["ran"]["line"]:
        pytest.skip("not contained, and said so at start")
    assert found["rights of a private file"] in REFUSED


@pytest.mark.parametrize("network", [False, True])
def test_no_socket_of_the_machines_is_reached_by_its_name(
    hostile: Hostile, answers: dict[tuple[str, bool], dict[str, Any]], *, network: bool
) -> None:
    asked = _asked(hostile, answers, network=network)

    assert asked["door"] in UNREACHED | {"ENOENT"}
    assert asked["letter box"] in UNREACHED | {"ENOENT"}
    assert asked["abstract"] in UNREACHED


def test_without_a_network_there_is_none(found: dict[str, Any]) -> None:
    assert found["TCP"] in UNREACHED
    assert found["metadata"] in UNREACHED
    assert found["local"] is None


def test_with_a_network_only_named_ports_are_reached(found_outside: dict[str, Any], hostile: Hostile) -> None:
    assert found_outside["MPTCP"] in REFUSED
    assert found_outside["fast open"] == "ENOTSUP"  # which is another name of EOPNOTSUPP
    assert found_outside["fast open of messages"] == "ENOTSUP"
    unless_without(hostile, "landlock")
    assert found_outside["TCP"] == "EACCES"
    assert found_outside["metadata"] == "EACCES"


def test_with_a_network_it_is_nobodys_server(found_outside: dict[str, Any]) -> None:
    assert found_outside["serve at any port"] in REFUSED
    assert found_outside["serve at a port"] in REFUSED
    assert found_outside["abstract name"] in REFUSED


def test_a_port_that_is_named_is_reached(hostile: Hostile) -> None:
    connect = "import os, socket; socket.create_connection(('127.0.0.1', int(os.environ['TCP']))); print('reached')"

    ran = hostile.python(connect, network=True, port_is_allowed=True)

    assert ran["output_tail"] == "reached\n", ran


def test_what_is_not_contained_is_said(found: dict[str, Any], hostile: Hostile) -> None:
    lacks = found["ran"]["line"].partition("NOT contained: ")[2]
    without = hostile.place.without
    assert ("a command reads and writes what its user may" in lacks) == ({"spaces", "landlock"} <= set(without))
    assert ("rights and times" in lacks) == (hostile.place.name == "plain-user-in-a-container")
    assert ("the metadata address too" in lacks) == ("landlock" in without)


def test_every_place_has_a_name_of_its_own() -> None:
    assert len({place.name for place in PRIED}) == len(PRIED)
