"""Ports that no two processes choose, from their choice on."""

import subprocess
import sys
from pathlib import Path

from libs.local.ports import HIGHEST, KEPT, LOWEST, PortClaims, free_ports

CHOOSE = "from libs.local.ports import free_ports; print(*free_ports({count}), flush=True); input()"
TAKE = """
from pathlib import Path
from libs.local.ports import PortClaims
print(PortClaims(Path({path!r})).take({port}), flush=True)
input()
"""


def other(code: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_processes_choose_different_ports_long_before_anybody_listens() -> None:
    """By chance, half of so many would be the same."""
    half = (HIGHEST - LOWEST) // 2

    with other(CHOOSE.format(count=KEPT)) as first:
        one = set(said_by(first).split())
        with other(CHOOSE.format(count=half)) as second:  # not before: its oldest claims it gives up again
            another = set(said_by(second).split())
            second.communicate("\n")
        first.communicate("\n")

    assert (len(one), len(another)) == (KEPT, half)
    assert not one & another


def test_a_port_is_chosen_once_by_one_process() -> None:
    ports = [port for _ in range(400) for port in free_ports(1)]

    assert len(set(ports)) == 400


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    path, port = tmp_path / "ports", LOWEST
    claims = PortClaims(path)

    with other(TAKE.format(path=str(path), port=port)) as process:
        assert said_by(process) == "True"
        assert not claims.take(port)
        process.communicate("\n")

    assert claims.take(port)


def test_of_very_many_claims_the_oldest_are_given_up(tmp_path: Path) -> None:
    path = tmp_path / "ports"
    claims = PortClaims(path)
    for port in range(KEPT + 1):
        assert claims.take(port)

    with other(TAKE.format(path=str(path), port=0)) as first, other(TAKE.format(path=str(path), port=1)) as second:
        assert (said_by(first), said_by(second)) == ("True", "False")
        first.communicate("\n")
        second.communicate("\n")
