"""The images build the wheels of `make wheels`: by its command, of what their build is sent, to the same bytes."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

from tests.fixtures.wheels import ROOT
from tests.release import BUILD, build_wheels


def test_an_image_is_built_from_the_wheels_of_a_release(tmp_path: Path) -> None:
    context, dockerfile = tmp_path / "context", (ROOT / "Dockerfile").read_text(encoding="utf-8")
    _send(context)

    build_wheels(context, tmp_path / "of the images")
    build_wheels(ROOT, tmp_path / "of the release")

    assert f"RUN uv {' '.join(BUILD)} /wheels" in dockerfile
    assert len(made := _digests(tmp_path / "of the release")) == 4
    assert _digests(tmp_path / "of the images") == made


def _send(context: Path) -> None:
    """What the builder is sent: the lines of .dockerignore that let through."""
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        name = line.removeprefix("!")
        if name == line:
            continue
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy2(ROOT / name, context / name)


def _digests(folder: Path) -> dict[str, str]:
    return {wheel.name: sha256(wheel.read_bytes()).hexdigest() for wheel in folder.glob("*.whl")}
