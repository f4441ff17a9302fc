"""A release: a version for the tree, wheels that were tried, and the tag's text.

    make cut VERSION=0.2.0     each place that names the version, and the changelog's section with today's date
    make wheels                every wheel into dist/, each tried by the oldest and the newest Python that is here
    make release               one version everywhere, nothing unreleased, contracts frozen; wheels; dist/tag.txt

Owns what "tried" is. Each wheel is installed alone in a clean environment, as its users do it: beside it lie only the
other wheels, all else comes from the index. The server's runs `headgate demo` and `headgate up` in an empty folder, no
clone on any path, and the others run the examples of their pages against that (`tests/examples.py`).
`requirements.txt` beside them names what the server was tested with, by hashes; it is tried too. Refuses to tag and to
upload: that is a person's deed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from headgate_contracts import gate
from tests.examples import BESIDE, EXAMPLES, SERVER, Environment, carry_out, examples_of, running, use_command
from tests.fixtures.wheels import ROOT, UV
from tests.fresh.machines import OF_THE_NETWORK

DIST: Final = ROOT / "dist"
CHANGES_OF_CONTRACTS: Final = "contracts/CHANGELOG.md"
NOT_YET: Final = "(not yet released)"
BUILD: Final = ("build", "--quiet", "--wheel", "--no-build-isolation", "--all-packages", "--out-dir")  # the images' too
# What is installed: an environment each.
INSTALLED: Final = (*EXAMPLES, SERVER)
# Where a version of ours stands that a person has written; what is generated follows.
PLACES_OF_VERSIONS: Final = (
    *("pyproject.toml", "libs/client/pyproject.toml", "libs/pipeline/pyproject.toml"),
    *("docker-compose.yml", "k8s/base/kustomization.yaml", "docs/run.md", "libs/deployment/chart/values.py"),
)
OURS: Final = (  # what stands before a version, and the version
    re.compile(r'^(version = ")(\d[\w.]*)(?=")', re.MULTILINE),
    re.compile(r'("headgate(?:-server|-pipeline)?==)(\d[\w.]*)(?=")'),
    re.compile(r"(\bheadgate-(?:\w+|\$name):)(\d[\w.]*\d)"),
    re.compile(r"(\bname: headgate-\w+, newTag: )(\d[\w.]*\d)"),
)
PLACES: Final = (*os.get_exec_path(), *(str(path) for path in (Path.home() / ".pyenv" / "versions").glob("*/bin")))


class NotReady(Exception):
    """This tree is no release: {why}."""

    def __init__(self, why: str) -> None:
        super().__init__((type(self).__doc__ or "").format(why=why))


@dataclass(frozen=True, slots=True)
class Section:
    """What the changelog says of a version."""

    date: date
    text: str


def main(argv: Sequence[str]) -> None:
    """A fault is the command that failed, with what it said."""
    parser = argparse.ArgumentParser(prog="tests.release")
    parser.add_argument("deed", choices=("wheels", "release", "cut"))
    parser.add_argument("words", nargs="*", help="Pythons by their versions; of a cut the version")
    asked = parser.parse_args(argv)
    try:
        match asked.deed:
            case "cut":
                cut(ROOT, asked.words[0], day=datetime.now(UTC).date())
            case "wheels":
                wheels(asked.words)
            case _:
                release(ROOT, asked.words)
    except NotReady as why:
        raise SystemExit(f"release: {why}") from None


def wheels(versions: Sequence[str]) -> None:
    """Build, then try."""
    found = list(_pythons(versions))
    if not found:
        raise SystemExit(f"wheels: none of the Pythons {', '.join(versions)} is here")
    _build()
    for python in dict.fromkeys((found[-1], found[0])):
        _try_examples(python)
        _try_as_locked(python)
    _say(f"{len(list(DIST.glob('*.whl')))} wheels and requirements.txt are in {DIST.relative_to(ROOT)}/")


def release(root: Path, versions: Sequence[str]) -> None:
    """All that has to be so first, then the wheels, then the text."""
    version, changes = version_of(root), (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = section_of(changes, version)
    require_nothing_unreleased(changes)
    if wrong := wrong_versions(root, version):
        raise NotReady(f"the version is {version}, and there stands: {'; '.join(wrong)}")
    require_frozen(root)
    wheels(versions)
    built = sorted(wheel.name for wheel in DIST.glob("*.whl"))
    text = tag_text(version, section, contracts=version_of(root / "contracts"), wheels=built)
    (DIST / "tag.txt").write_text(text, encoding="utf-8")
    _say(f"{version} is ready: git tag --annotate v{version} --file dist/tag.txt")


def cut(root: Path, version: str, *, day: date) -> None:
    """From now on this tree is that version. `make lock` and `make generate` follow."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise NotReady(f"{version!r} is no version: write three numbers, as 0.2.0")
    for place in PLACES_OF_VERSIONS:
        path = root / place
        text = path.read_text(encoding="utf-8")
        for pattern in OURS:
            text = pattern.sub(lambda found: found[1] + version, text)
        path.write_text(text, encoding="utf-8")
    changes = root / "CHANGELOG.md"
    changes.write_text(cut_changes(changes.read_text(encoding="utf-8"), version, day=day), encoding="utf-8")
    _replace(root / CHANGES_OF_CONTRACTS, NOT_YET, f"({day.isoformat()})")


def cut_changes(changes: str, version: str, *, day: date) -> str:
    """What is unreleased is of this version. Where that was cut before, and not published, it goes under the headings
    that are there, and what has none under `Changed`."""
    head, _, rest = changes.partition("## Unreleased\n")
    fresh, mark, older = rest.partition("\n## ")
    begins = f"{version} ("
    if not older.startswith(begins):
        return f"{head}## Unreleased\n\n## {version} ({day.isoformat()})\n{fresh}{mark}{older}"
    section, mark, older = older.partition("\n## ")
    said = section.partition("\n")[2]
    parts = re.split(r"^### (.+)\n", f"### Changed\n{fresh}", flags=re.MULTILINE)[1:]
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        said = _under(heading, text.strip("\n"), said)
    return f"{head}## Unreleased\n\n## {version} ({day.isoformat()})\n{said}{mark}{older}"


def _under(heading: str, text: str, section: str) -> str:
    """First below the heading, which is made where there is none."""
    if not text:
        return section
    before, found, after = section.partition(f"### {heading}\n\n")
    return f"{before}{found}{text}\n{after}" if found else f"{section.rstrip()}\n\n### {heading}\n\n{text}\n"


def _replace(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")


# ── what a release is ─────────────────────────────────────────────────────────


def version_of(project: Path) -> str:
    told = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    return str(told["project"]["version"])


def wrong_versions(root: Path, version: str) -> list[str]:
    """Each place where another one stands."""
    found = (
        (place, before, there)
        for place in PLACES_OF_VERSIONS
        for pattern in OURS
        for before, there in pattern.findall((root / place).read_text(encoding="utf-8"))
    )
    return [f"{place}: {before.lstrip()}{there}" for place, before, there in found if there != version]


def section_of(changes: str, version: str) -> Section:
    begins = re.search(rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$", changes, re.MULTILINE)
    if begins is None:
        raise NotReady(f"CHANGELOG.md has no section `## {version} (<date>)`")
    text = re.split(r"^## ", changes[begins.end() :], maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not text:
        raise NotReady(f"the section {version} of CHANGELOG.md says nothing")
    return Section(date.fromisoformat(begins[1]), text)


def require_nothing_unreleased(changes: str) -> None:
    """Whatever is in the tree is in the release."""
    _, _, rest = changes.partition("## Unreleased\n")
    if re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip():
        raise NotReady("CHANGELOG.md has something below Unreleased: `make cut` moves it into the version's section")


def require_frozen(root: Path) -> None:
    """The contracts of this version are released as they stand."""
    version = ".".join(version_of(root / "contracts").split(".")[:2])
    released = root / "contracts" / "released"
    if version not in gate.versions(released):
        raise NotReady(f"contracts {version} are not frozen: python -m headgate_contracts.gate --freeze {version}")
    if NOT_YET in (root / CHANGES_OF_CONTRACTS).read_text(encoding="utf-8"):
        raise NotReady(f"{CHANGES_OF_CONTRACTS} says {NOT_YET}: `make cut` writes the day there")
    if broken := list(gate.broken(released)):
        raise NotReady(f"the contracts break what is released: {'; '.join(broken)}")


def tag_text(version: str, section: Section, *, contracts: str, wheels: Sequence[str]) -> str:
    """Of an annotated tag. Git takes a line that begins with # for a comment, so headings are words with a colon."""
    changes = re.sub(r"^#+ (.*)$", r"\1:", section.text, flags=re.MULTILINE)
    built = "\n".join(f"  {name}" for name in wheels)
    said = f"Released on {section.date.isoformat()}, with version {contracts} of the contracts."
    return f"Headgate {version}\n\n{said}\n\nWheels:\n\n{built}\n\n{changes}\n"


# ── what is installed ─────────────────────────────────────────────────────────


def build_wheels(source: Path, into: Path) -> None:
    """All of ours. Of the same sources they have the same bytes, wherever they are built: their times are the day of
    the release."""
    day = section_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version_of(ROOT)).date
    epoch_s = round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    _run(*BUILD, str(into), str(source), SOURCE_DATE_EPOCH=str(epoch_s))


def _build() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    build_wheels(ROOT, DIST)
    listed = ("--quiet", "--frozen", "--no-dev", "--no-emit-workspace", "--no-annotate", "--no-header")
    _run("export", *listed, "--project", str(ROOT), "--output-file", str(DIST / "requirements.txt"))
    built = {wheel.name.partition("-")[0].replace("_", "-") for wheel in DIST.glob("*.whl")}
    known = {name.partition("[")[0] for name in INSTALLED}
    if built != known:
        raise SystemExit(f"wheels: built {sorted(built)}, and how to try {sorted(known)} is known")


def _try_examples(python: str) -> None:
    """Each wheel with what its pages show, against the server of the same release."""
    with _environment(python, SERVER) as server:
        server.runs("headgate", "demo")
        _say(f"{SERVER} runs its demo on {Path(python).name}")
        with running(server) as there:
            use_command(server)
            for name in EXAMPLES:
                with _environment(python, name, *BESIDE.get(name, ())) as environment:
                    for example in examples_of(name):
                        carry_out(example, environment, there)
                        _say(f"{name} on {Path(python).name}: {example.name}")


def _try_as_locked(python: str) -> None:
    with _environment(python) as environment:
        into = ("--quiet", "--python", str(environment.programs.parent))
        _run("pip", "install", *into, "--require-hashes", "--requirement", str(DIST / "requirements.txt"))
        _run("pip", "install", *into, "--no-deps", "--offline", *(str(wheel) for wheel in sorted(DIST.glob("*.whl"))))
        _run("pip", "check", *into)
        environment.runs("headgate", "--help")
    _say(f"{SERVER} with all of requirements.txt on {Path(python).name}")


@contextmanager
def _environment(python: str, *packages: str) -> Iterator[Environment]:
    """A clean one with these, ours from `dist`, and all else from the index, where a stranger's project is named as our
    client is: so ours are asked for by their versions."""
    with tempfile.TemporaryDirectory(prefix="headgate-wheels-") as folder:
        made, empty = Path(folder, "environment"), Path(folder, "empty")
        empty.mkdir()
        _run("venv", "--quiet", "--python", python, str(made))
        if packages:
            fresh = (word for each in INSTALLED for word in ("--refresh-package", each.partition("[")[0]))
            into = ("--quiet", "--python", str(made), "--find-links", str(DIST))
            _run("pip", "install", *into, *fresh, *map(_ours, packages))
        network = {name: os.environ[name] for name in OF_THE_NETWORK if name in os.environ}
        shell = network | {"PATH": os.defpath, "HOME": folder, "LANG": "C.UTF-8", "TMPDIR": folder}
        yield Environment(made / "bin", empty, shell)


def _ours(package: str) -> str:
    """The version that lies in `dist`; of a stranger's package any."""
    name = package.partition("[")[0].replace("-", "_")
    [version] = {wheel.name.split("-")[1] for wheel in DIST.glob(f"{name}-*.whl")} or {""}
    return f"{package}=={version}" if version else package


def _run(*words: str, **more: str) -> None:
    """Of uv, which trusts what the machine trusts."""
    told = {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1", **more}
    _ended(subprocess.run((UV, "--no-config", *words), env=told | os.environ, capture_output=True, check=False))  # noqa: S603 - our own uv


def _ended(ran: subprocess.CompletedProcess[bytes]) -> None:
    if ran.returncode:
        said = (ran.stdout + ran.stderr).decode(errors="replace")
        raise SystemExit(f"wheels: {' '.join(ran.args)} ended with {ran.returncode}\n{said}")


def _pythons(versions: Sequence[str]) -> Iterator[str]:
    """Those of these versions that run, in this order. pyenv has names of Pythons that are not there."""
    for version in versions:
        for place in PLACES:
            program = Path(place) / f"python{version}"
            with suppress(OSError, subprocess.CalledProcessError):
                subprocess.run((program, "-c", ""), capture_output=True, check=True)  # noqa: S603 - found by its name
                yield str(program)
                break


def _say(text: str) -> None:
    sys.stdout.write(f"wheels: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
