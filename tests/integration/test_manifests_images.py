"""What goes into an image: what its process imports, and nothing that it does not."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from typing import Final

import grimp
import pytest

from libs.deployment.bill import BaseImage
from libs.deployment.images import TOOLCHAIN, bill, our_own
from tests.fixtures.manifests import ROOT

ROOTS: Final = {
    "admission": ("services.admission.__main__",),
    "scheduler": ("services.scheduler.__main__",),
    "worker": (
        "services.worker.__main__",
        "services.worker.child.spawner",
        "services.worker.build",
        "services.worker.rehearsal",
    ),
    "notifier": ("services.notifier.__main__",),
    "operator": ("libs.cli.*", "libs.deployment.secrets"),
}
ON_ITS_OWN_SERVERS: Final = {"libs.cli.demo", "libs.cli.up"}  # which no image brings
OURS: Final = {"headgate", "headgate_contracts", "headgate_pipeline", "libs", "services"}
# What is imported from a package that brings it along, and what is used without a word of ours importing it.
BROUGHT_BY: Final = {
    "cryptography": "pyjwt",
    "h11": "uvicorn",
    "prometheus-client": "opentelemetry-exporter-prometheus",
    "pydantic-core": "pydantic",
}
OF_OPENTELEMETRY: Final = {
    "opentelemetry-exporter-otlp-proto-grpc",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-prometheus",
    "opentelemetry-sdk",
}
UNSPOKEN: Final = {"redis": "hiredis"}  # its parser, taken where it is there


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*sorted(OURS), include_external_packages=True)


@pytest.mark.parametrize("image", sorted(ROOTS))
def test_an_image_holds_what_its_process_imports_and_nothing_else(image: str) -> None:
    assert set(_group(image)) == _imported(ROOTS[image])


@pytest.mark.parametrize("image", sorted(ROOTS))
def test_every_image_can_be_built(image: str) -> None:
    text = (ROOT / "Dockerfile").read_text()

    assert re.search(rf"^FROM (service|process) AS {image}$", text, re.MULTILINE)
    assert re.search(rf"--only-group {image}\b", text)


def test_the_version_of_python_is_named_once_so_that_another_needs_one_word() -> None:
    text = (ROOT / "Dockerfile").read_text()

    assert re.findall(r"3\.\d+", text) == ["3.14"]
    assert text.count("COPY --from=code /code /opt/headgate/code\n") == len(ROOTS)


def test_every_image_starts_the_process_itself_so_that_signals_arrive() -> None:
    started = re.findall(r"^(?:ENTRYPOINT|CMD) (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert started
    assert all(line.startswith("[") for line in started)  # else a shell would get the signals


@pytest.fixture(autouse=True)
def dated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `make images` dates them by the commit: where these tests run there need be no git."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")


@pytest.mark.parametrize("image", sorted(ROOTS))
def test_a_bill_lists_what_the_lock_brings_into_the_image_with_hashes(image: str) -> None:
    listed = json.loads(bill(image, BaseImage("python:3.14-slim")))["components"]

    named = {(each["name"], each["version"]) for each in listed if each["type"] == "library"}
    ours = set(our_own().items())
    brought = named - ours
    assert ours <= named
    assert set(_group(image)) <= {name for name, _ in brought}
    assert brought <= _locked()
    assert not {"colorama", "async-timeout"} & {name for name, _ in brought}  # for another system, an older Python
    for each in listed:
        if (each["name"], each["version"]) in brought:
            assert [told["alg"] for link in each["externalReferences"] for told in link["hashes"]], each["name"]


def test_a_workers_bill_lists_what_builds_are_made_of_too() -> None:
    named = {each["name"] for each in json.loads(bill("worker", BaseImage("python:3.14-slim")))["components"]}

    assert {"pytest", "ruff"} <= named
    assert "pytest" not in {
        each["name"] for each in json.loads(bill("scheduler", BaseImage("python:3.14-slim")))["components"]
    }


def test_the_same_sources_give_the_same_bill_and_another_base_another() -> None:
    plain, pinned = BaseImage("python:3.14-slim"), BaseImage("python:3.14-slim", f"sha256:{'0' * 64}")

    assert bill("operator", plain) == bill("operator", plain)
    assert bill("operator", plain) != bill("operator", pinned)
    [base] = [each for each in json.loads(bill("operator", pinned))["components"] if each["type"] == "container"]
    assert base["purl"] == f"pkg:docker/python@sha256:{'0' * 64}"


def test_nothing_is_sent_to_the_builder_but_what_an_image_is_made_of() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]

    assert lines[0] == "*"
    assert not {"!.headgate", "!.git", "!tests"} & set(lines)


def _locked() -> set[tuple[str, str]]:
    locks = (ROOT / "uv.lock", TOOLCHAIN / "uv.lock")
    return {(each["name"], each["version"]) for lock in locks for each in tomllib.loads(lock.read_text())["package"]}


def _group(name: str) -> Iterator[str]:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    for entry in groups[name]:
        if isinstance(entry, dict):
            yield from _group(entry["include-group"])
        else:
            yield _plain(re.split(r"[\[<>=~; ]", entry)[0])


def _imported(roots: tuple[str, ...]) -> set[str]:
    """The distributions behind all that these modules import, near or far."""
    modules = {module for root in roots for module in _named(root)} - ON_ITS_OWN_SERVERS
    reached = modules.union(*(graph().find_upstream_modules(module) for module in modules))
    found = set[str]()
    for package in {module.split(".")[0] for module in reached} - OURS - set(sys.stdlib_module_names):
        found |= OF_OPENTELEMETRY if package == "opentelemetry" else _distribution_of(package)
    return found | {UNSPOKEN[name] for name in found & UNSPOKEN.keys()}


def _named(root: str) -> set[str]:
    """One module, or all of a package: the command imports its parts by name, when they are asked for."""
    package, star, _ = root.partition("*")
    return {module for module in graph().modules if module.startswith(package)} if star else {root}


def _distribution_of(package: str) -> set[str]:
    names = {_plain(name) for name in packages_distributions()[package]}
    return {BROUGHT_BY.get(name, name) for name in names}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
