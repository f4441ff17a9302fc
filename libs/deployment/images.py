"""The images, and for each a bill of materials in `dist/images/`: `python -m libs.deployment.images`.

With `--bills` it writes the bills alone, for which no engine is needed; with `--again` each image is built once more,
without what the builder keeps, and ends with 1 where the two differ in any file. Labels say the version, the commit and
the base; times are the commit's. A base's digest is known where a registry gave it.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from libs.deployment import ROOT
from libs.deployment.bill import BaseImage, Contents, bill_of
from libs.deployment.sameness import differences, exported

IMAGES: Final = ("admission", "scheduler", "worker", "notifier", "operator")
SERVERS: Final = ("nats",)  # for compose, with what asks whether the server is well: nothing of the lock is in it
DOCKERFILE: Final = ROOT / "Dockerfile"
FOLDER: Final = ROOT / "dist" / "images"
TOOLCHAIN: Final = ROOT / "services" / "worker" / "build" / "toolchain"
LABEL: Final = "org.opencontainers.image"


def bases() -> Mapping[str, str]:
    """By the argument of the Dockerfile that names it; PYTHON_IMAGE and NATS_IMAGE name others, with a digest too."""
    named: list[tuple[str, str]] = re.findall(r"^ARG ([A-Z]+)=(\S+:\S+)$", DOCKERFILE.read_text("utf-8"), re.MULTILINE)
    return {name: os.environ.get(f"{name}_IMAGE") or usual for name, usual in named}


def commit_time_s() -> int:
    """Of what is built, or what SOURCE_DATE_EPOCH says."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _said("git", "log", "-1", "--format=%ct"))


def bill(image: str, base: BaseImage) -> str:
    """What is in this image."""
    exports = [_exported("--no-emit-workspace", "--only-group", image)]
    if image == "worker":  # brings what builds are made of
        exports.append(_exported("--project", str(TOOLCHAIN), "--all-groups", "--no-emit-project"))
    ours = our_own()
    return bill_of(
        Contents(
            image=image,
            version=ours["headgate-server"],
            exports=exports,
            ours=ours,
            bases=[base],
            environment=_environment(base.name),
            epoch_s=commit_time_s(),
        )
    )


def _exported(*words: str) -> Mapping[str, Any]:
    """What uv says of the lock, or of a part of it."""
    usual = ("export", "--quiet", "--frozen", "--no-config", "--format=cyclonedx1.5")
    return json.loads(_said(str(Path(sys.executable).with_name("uv")), *usual, *words))


def _environment(base: str) -> Mapping[str, str]:
    """Of markers, within the image."""
    [version] = re.findall(r"python:(\d+\.\d+)", base) or [platform.python_version()]
    machine = platform.machine()
    return {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": {"arm64": "aarch64"}.get(machine, machine),
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }


def our_own() -> Mapping[str, str]:
    """The packages that are made here, with their versions: an image holds them all."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    members = [ROOT / name / "pyproject.toml" for name in root["tool"]["uv"]["workspace"]["members"]]
    projects = [root, *(tomllib.loads(path.read_text(encoding="utf-8")) for path in members)]
    return {each["project"]["name"]: each["project"]["version"] for each in projects}


def build(image: str, base: BaseImage, *, anew: bool = False) -> str:
    """By Docker; gives the image's id. One that is built anew has no name and nothing that was kept of another."""
    version = our_own()["headgate-server"]
    how = ["--no-cache"] if anew else ["--tag", f"headgate-{image}:{version}"]
    labels = {
        f"{LABEL}.version": version,
        f"{LABEL}.revision": _said("git", "rev-parse", "HEAD"),
        f"{LABEL}.created": datetime.fromtimestamp(commit_time_s(), UTC).isoformat(),
        f"{LABEL}.base.name": base.name,
        **({f"{LABEL}.base.digest": base.digest} if base.digest else {}),
    }
    words = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
    words += [word for name, value in bases().items() for word in ("--build-arg", f"{name}={value}")]
    epoch = {"SOURCE_DATE_EPOCH": str(commit_time_s())}
    command = ["docker", "build", "--quiet", "--target", image, *how, *words, "."]
    return _said(*command, environment={**os.environ, **epoch})


def known(base: str) -> BaseImage:
    """With the digest that its registry gave, where the engine has it from one."""
    if "@" in base:
        return BaseImage(base, base.partition("@")[2])
    ended = subprocess.run(  # noqa: S603 - our own words
        ["docker", "image", "inspect", "--format", "{{json .RepoDigests}}", base],  # noqa: S607 - whichever is there
        check=False,
        capture_output=True,
        text=True,
    )
    found: Sequence[str] = json.loads(ended.stdout) if ended.returncode == 0 else []
    return BaseImage(base, found[0].partition("@")[2] if found else None)


def _said(*command: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m libs.deployment.images", description=__doc__)
    parser.add_argument("--bills", action="store_true", help="write the bills alone")
    parser.add_argument("--again", action="store_true", help="build each twice, and compare what is in them")
    told = parser.parse_args(words)
    alone, different = told.bills, list[str]()
    FOLDER.mkdir(parents=True, exist_ok=True)
    named = bases()
    for image in (*IMAGES, *(() if alone else SERVERS)):
        base = BaseImage(named["PYTHON"]) if alone else known(named["PYTHON"])
        if image in IMAGES:
            (FOLDER / f"{image}.cdx.json").write_text(bill(image, base), encoding="utf-8")
        built = "" if alone else f" {build(image, base)}"
        if told.again and not alone:
            different += differences(exported(built.strip()), exported(build(image, base, anew=True)))
        digest = base.digest or "whose digest no registry has told"
        sys.stdout.write(f"headgate-{image}{built} from {base.name}, {digest}\n")
    if told.again:
        said = [f"built again, files that differ: {len(different)}", *different]
        sys.stdout.write("\n  ".join(said) + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
