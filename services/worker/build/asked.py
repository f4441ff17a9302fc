"""What a build is asked for: the job's input, read and bounded, and names made of its prompt that are safe wherever
they stand: in a path, in Python, in TOML, in Markdown.

    {"prompt": "a URL shortener", "provider": "ollama", "model": "qwen3-coder"}

Only the prompt is required. Without a provider the first one that is configured is used; a model that is named takes
the place of the one configured.

Owns the way from a stranger's words to names and texts. Nothing of a prompt gets into a file but what passes here:
names hold `a-z 0-9 _`, a text is one line without control characters and is quoted by the template that writes it.
"""

import keyword
import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from headgate_contracts.tokens import Token

MAX_PROMPT_CHARS: Final = 32_000  # an input has 64 KiB; the rest of what a model reads is the project itself
EXAMPLES: Final = [
    "A URL shortener with expiry",
    "A to-do list with due dates",
    "Statistics over a CSV file",
    "A rate limiter",
]

Prompt = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_PROMPT_CHARS),
    Field(title="What should be built?", examples=EXAMPLES),
]
Model = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]


class BuildInput(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: Prompt
    provider: Token | None = None
    model: Model | None = None


MAX_WORDS: Final = 3
MAX_NAME_CHARS: Final = 24  # a line of a template with a name in it still fits
MAX_TITLE_CHARS: Final = 100
# What a prompt says around its subject.
FILLERS: Final = frozenset(
    re.findall(
        r"[a-z]+",
        """a an and app application as based be build built by can class client code command create develop does easy
        fast for from generate give good i implement in interface into is it just kind let library like line little make
        me module my need nice of on one or our package please program project python script service simple small so
        some system that the then this to tool tiny use using want we web which will with would write you""",
    )
)
TAKEN: Final = frozenset(
    {"src", "tests", "test", "docs", "env", "build", "dist", "pytest", "ruff", "iniconfig", "packaging", "pluggy"}
)


@dataclass(frozen=True, slots=True)
class Names:
    """What a package is called."""

    package: str  # as Python imports it
    title: str  # what was asked for, in one line

    @property
    def distribution(self) -> str:
        """As an installer calls it."""
        return self.package.replace("_", "-")


def name_package(prompt: str, *, project: str) -> Names:
    """By the prompt's own words; by the project where those are of no use."""
    for source in (prompt, project):
        words = [word for word in words_of(source) if word not in FILLERS and not word.isdecimal()][:MAX_WORDS]
        name = _importable("_".join(words))
        if name:
            return Names(name, _title(prompt))
    return Names("package", _title(prompt))


def words_of(text: str) -> list[str]:
    """Its words in plain small letters; what has no such letters is left out."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.findall(r"[a-z0-9]+", plain)


def _importable(name: str) -> str:
    """A name that Python and pip accept and that hides no other package; empty where nothing is left of it."""
    name = re.sub(r"^[0-9_]+", "", name)[:MAX_NAME_CHARS].rstrip("_")
    if not name:
        return ""
    hides = keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in sys.stdlib_module_names or name in TAKEN
    return f"{name}_package" if hides else name


def _title(prompt: str) -> str:
    """One line, printable, cut at a word."""
    line = " ".join("".join(char if char.isprintable() else " " for char in prompt).split())
    if len(line) > MAX_TITLE_CHARS:
        line = line[:MAX_TITLE_CHARS].rpartition(" ")[0] or line[:MAX_TITLE_CHARS]
        line += " …"
    return line
