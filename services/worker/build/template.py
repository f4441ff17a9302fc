"""The frame of a package: what is the same in all of them, rendered with its names.

Owns `template/` and the lock that a package starts with. A name or a text gets into a file through the quoting of that
file's language, and undefined ones are an error, not an empty word.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.worker.build.asked import Names
from services.worker.build.tree import IGNORED

HERE: Final = Path(__file__).parent
SUFFIX: Final = ".jinja"
FRAME: Final = "template"
LOCK: Final = HERE / "toolchain" / "uv.lock"
PYPROJECT: Final = "pyproject.toml"
MAX_NEEDS: Final = 20
# A plain requirement: a name, extras, versions. No URL, no path, no option of an installer.
_VERSION: Final = r"(?:===|~=|==|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]{1,40}"
_NEED: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"
    r"(?:\[[A-Za-z0-9._-]{1,40}(?:, ?[A-Za-z0-9._-]{1,40}){0,9}\])?"
    rf"(?: ?{_VERSION}(?:, ?{_VERSION}){{0,5}})?"
)


def is_plain_need(text: str) -> bool:
    return _NEED.fullmatch(text) is not None


def render_frame(names: Names, *, needs: Sequence[str]) -> dict[str, str]:
    """Every file of the frame, as a package with these names and needs has it."""
    frame = render_folder(HERE / FRAME, names, {"needs": tuple(needs)})
    if not needs:
        lock = LOCK.read_text(encoding="utf-8")
        frame[LOCK.name] = lock.replace('name = "toolchain"', f'name = "{names.distribution}"')
    return frame


def is_configuration(path: str) -> bool:
    """What the build itself writes into every package, in every iteration. An author may change the rest."""
    return path in {PYPROJECT, LOCK.name, IGNORED}


def needs_of(tree: Mapping[str, str]) -> tuple[str, ...]:
    """What the package says it needs. Commands of the job may have written there: what is not plain is dropped."""
    try:
        told: Any = tomllib.loads(tree.get(PYPROJECT, "")).get("project", {}).get("dependencies", [])
    except (tomllib.TOMLDecodeError, AttributeError):
        return ()
    needs = told if isinstance(told, list) else []
    return tuple(need for need in needs if isinstance(need, str) and is_plain_need(need))[:MAX_NEEDS]


def render_folder(folder: Path, names: Names, facts: Mapping[str, Any]) -> dict[str, str]:
    """All templates below the folder. In a path `__package__` stands for the package's name."""
    environment = _environment(folder)
    tree: dict[str, str] = {}
    for template in sorted(environment.list_templates(filter_func=lambda name: name.endswith(SUFFIX))):
        path = template.removesuffix(SUFFIX).replace("__package__", names.package)
        tree[path] = environment.get_template(template).render(names=names, **facts)
    return tree


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - no HTML is made; each language has its own quoting
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    return environment


def _quoted(text: str) -> str:
    """A string of TOML, and of Python: JSON's escapes are both theirs, and what is left raw is printable."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _markdown(text: str) -> str:
    """Words and nothing else: no link, no code, no HTML."""
    return re.sub(r"([\\`*_{}\[\]<>()#|~&])", r"\\\1", text)


FILTERS: Final[dict[str, Callable[[str], str]]] = {"quoted": _quoted, "markdown": _markdown}
