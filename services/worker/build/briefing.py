"""What a model is told: the rules, the task, the project as it is, and what the checks said.

Owns the texts and their bounds. What a user or a check has said is handed over between marks, as material.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypedDict

from services.worker.build.asked import Names
from services.worker.build.tree import MAX_FILE_BYTES, MAX_FILES

MAX_SHOWN_CHARS: Final = 200_000  # of the project: what most models can read, with room for an answer
MAX_FAILURE_CHARS: Final = 16_000


class ChatMessage(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


RULES: Final = """\
You write small, tidy Python packages (Python 3.11 and later, src layout) with tests, and repair them when checks fail.

Answer with files in exactly this form, each marker on a line of its own:

=== FILE src/{package}/example.py ===
the whole content of the file
=== END ===

To remove a file: === DELETE src/{package}/old.py ===
{needs}
Rules:
- Write only below src/{package}/ and tests/, and README.md. pyproject.toml is written for you.
- Always give whole files, never parts of files and never a diff. A file that you leave out stays as it is.
- Files called tests/test_*.py hold pytest tests that import {package}. They need no network and end within seconds.
- The code must pass `ruff check` (rules B, E4, E7, E9, F, I, SIM, UP; 100 columns) and `pytest`.
- At most {max_files} files of {max_kib} KiB. Prefer several small files to a large one.
- Words outside of the blocks are ignored: keep them few.
"""
WITH_NEEDS: Final = """\
If other packages are really needed, name all of them (an empty block takes them back):

=== NEEDS ===
httpx>=0.28
=== END ===
"""
WITHOUT_NEEDS: Final = "Use the standard library alone: no other package can be installed.\n"


def opening(
    prompt: str, names: Names, tree: Mapping[str, str], *, failure: str, can_fetch: bool
) -> tuple[ChatMessage, ChatMessage]:
    """The first two messages of an iteration."""
    rules = RULES.format(
        package=names.package,
        needs=WITH_NEEDS if can_fetch else WITHOUT_NEEDS,
        max_files=MAX_FILES,
        max_kib=MAX_FILE_BYTES // 1024,
    )
    task = f"The package {names.package} is asked for in these words:\n\n<task>\n{prompt}\n</task>\n"
    shown = f"\nThe project as it is:\n\n{_shown(tree)}"
    if not failure:
        return _said("system", rules), _said("user", f"{task}{shown}\nWrite the package and its tests.")
    checks = f"\nThe checks of this project failed:\n\n<checks>\n{failure[-MAX_FAILURE_CHARS:]}\n</checks>\n"
    return _said("system", rules), _said("user", f"{task}{shown}{checks}\nMend it: answer with the files that change.")


def go_on(kept: Iterable[str], *, cut: str | None) -> ChatMessage:
    """After an answer that was cut off."""
    have = ", ".join(sorted(kept)) or "none"
    again = f"{cut} was cut off and is not kept: send it again from its beginning, or split it." if cut else ""
    return _said("user", f"Your answer was cut off. Complete files that arrived: {have}. {again} Go on with the rest.")


def complain(problems: Iterable[str]) -> ChatMessage:
    """After an answer that cannot be used as it is."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return _said("user", f"This cannot be accepted:\n{listed}\n\nAnswer again, in the form that was described.")


def repeat(text: str) -> ChatMessage:
    """What the model itself has said."""
    return _said("assistant", text)


def _said(role: Literal["system", "user", "assistant"], content: str) -> ChatMessage:
    return {"role": role, "content": content}


def _shown(tree: Mapping[str, str]) -> str:
    """The files as blocks; from where there is too much, their names alone."""
    parts: list[str] = []
    room = MAX_SHOWN_CHARS
    for path, text in tree.items():
        room -= len(text)
        parts.append(f"=== FILE {path} ===\n{text}=== END ===\n" if room >= 0 else f"({path}: not shown)\n")
    return "\n".join(parts)
