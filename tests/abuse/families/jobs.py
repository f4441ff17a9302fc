"""Hostile jobs: what a command of a job tries, in the one place that a worker is; `tests/hostile` knows them all."""

from __future__ import annotations

from typing import Final

from tests.abuse.attempts import Attempt, Pries


def _pries(*what: str, network: bool = False) -> dict[str, Attempt]:
    tail = ", with a network" if network else ""
    return {f"{each}{tail}": Pries(each, network=network) for each in what}


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "a command does not touch the worker": _pries(
        "attach",
        "the worker",
        "limits of the worker",
        "niceness of the worker",
        "niceness of its user",
        "processors of the worker",
        "schedule of the worker",
        "parameters of the worker",
        "attributes of the worker",
        "disks of the worker",
    ),
    "a command gains no rights": _pries("unshare", "io_uring", "raw"),
    "a command reads and writes what is its own": _pries(
        "private file",
        "shadow",
        "locks",
        "terminal",
        "open folder",
        "the machine's temporary files",
        "through a link",
        "rights of a private file",
    ),
    "a command without a network has none": _pries("TCP", "metadata", "door", "letter box", "abstract"),
    "a command with a network is a client of named ports": _pries(
        "TCP",
        "metadata",
        "MPTCP",
        "fast open",
        "fast open of messages",
        "serve at a port",
        "serve at any port",
        "abstract name",
        "door",
        "letter box",
        network=True,
    ),
}
