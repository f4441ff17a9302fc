"""The pages as one folder that the site's generator reads: `.site/pages`, and its configuration beside it.

Owns what is a page: every tracked Markdown file where it lies, so that a link from one to another is the same in the
site and in the repository; and each file or folder of the source that a page links to, as a page of its own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import viewers

ROOT: Final = Path(__file__).parents[2]
SITE: Final = ROOT / ".site"
NO_PAGES: Final = (".github/",)
AS_THEY_ARE: Final = frozenset({".md", ".png", ".svg", ".webp"})
LANGUAGES: Final = {".py": "python", ".ts": "typescript", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
LINK: Final = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?")
FENCE: Final = "`" * 6


def main() -> None:
    shutil.rmtree(SITE / "pages", ignore_errors=True)
    source = set[PurePosixPath]()
    for page in _tracked("*.md"):
        _write(page, _relinked(page, source))
    for path in source:
        _write(_page_of(path), _folder(path) if (ROOT / path).is_dir() else _file(path))
    for image in _tracked("docs/*.png", "docs/*.webp", "docs/*.svg"):
        _place(image).write_bytes((ROOT / image).read_bytes())
    viewers.lay_out(SITE / "pages", contracts=ROOT / "contracts", cache=SITE / "cache")
    shutil.copy(ROOT / "docs/site/zensical.toml", SITE)


def _tracked(*patterns: str) -> Iterator[PurePosixPath]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return (PurePosixPath(name) for name in listed.stdout.split("\0") if name and not name.startswith(NO_PAGES))


def _relinked(page: PurePosixPath, source: set[PurePosixPath]) -> str:
    """With links to pages alone. What is no page of itself, and needs one therefore, is added to the source."""

    def target(link: re.Match[str]) -> str:
        found = (ROOT / page.parent / link[1]).resolve()
        if not found.is_relative_to(ROOT) or not found.exists() or found.suffix in AS_THEY_ARE:
            return link[0]  # the generator says which links lead nowhere
        if (found / "README.md").exists():
            return f"{link[1].rstrip('/')}/README.md"
        path = PurePosixPath(found.relative_to(ROOT))
        source.add(path)
        return "../" * len(page.parent.parts) + str(_page_of(path))

    return LINK.sub(target, (ROOT / page).read_text())


def _page_of(path: PurePosixPath) -> PurePosixPath:
    return path.with_name(f"{path.name}.md")


def _file(path: PurePosixPath) -> str:
    language = LANGUAGES.get(path.suffix, "text")
    return f"# {path}\n\n{FENCE}{language}\n{(ROOT / path).read_text()}{FENCE}\n"


def _folder(path: PurePosixPath) -> str:
    names = "\n".join(str(name.relative_to(path)) for name in _tracked(f"{path}/*"))
    return f"# {path}\n\n{FENCE}text\n{names}\n{FENCE}\n"


def _write(page: PurePosixPath, text: str) -> None:
    _place(page).write_text(text)


def _place(page: PurePosixPath) -> Path:
    place = SITE / "pages" / page
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


if __name__ == "__main__":
    main()
