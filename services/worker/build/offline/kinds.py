"""The kinds, by the words that call for them, and what a prompt's words change in each."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from services.worker.build.asked import FILLERS, Names, words_of
from services.worker.build.offline.adventures import adventure_facts
from services.worker.build.template import render_folder

HERE: Final = Path(__file__).parent
DAY_S: Final = 86_400
PERIODS_S: Final = {"second": 1, "minute": 60, "hour": 3600, "day": DAY_S}
EXPIRING: Final = frozenset({"expire", "expires", "expiring", "expiry", "ttl", "temporary", "lifetime", "cache"})
MEASURES: Final = (
    "price",
    "salary",
    "temperature",
    "score",
    "age",
    "weight",
    "sales",
    "revenue",
    "duration",
    "distance",
)

Words = Sequence[str]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class AppKind:
    """A folder of templates, when it is meant, and how it varies."""

    name: str
    called_by: frozenset[str]
    facts: Callable[[Words], Facts]


def choose(prompt: str) -> AppKind:
    """The kind that most of the prompt's words call for; the last one where none is called."""
    words = set(words_of(prompt))
    *known, fallback = KINDS
    best = max(known, key=lambda kind: len(kind.called_by & words))
    return best if best.called_by & words else fallback


def write_package(prompt: str, names: Names) -> dict[str, str]:
    """The files of the package that this prompt gets."""
    kind = choose(prompt)
    return render_folder(HERE / kind.name, names, kind.facts(words_of(prompt)))


def _shortener(words: Words) -> Facts:
    return {
        "code_length": next((number for number in _numbers(words) if 4 <= number <= 32), 7),
        "expires": _has(words, EXPIRING),
        "lifetime_s": 30 * DAY_S,
    }


def _todo(words: Words) -> Facts:
    about = {
        "shopping": ("item", "items", "buy bread", "bring back the bottles"),
        "groceries": ("item", "items", "buy bread", "bring back the bottles"),
        "homework": ("exercise", "exercises", "read chapter one", "learn ten words"),
        "chores": ("chore", "chores", "water the plants", "sweep the stairs"),
        "reading": ("book", "books", "finish the novel", "return the atlas"),
    }
    meant = next((about[word] for word in words if word in about), ("task", "tasks", "write a test", "make it pass"))
    thing, things, first, second = meant
    return {
        "thing": thing,
        "things": things,
        "first": first,
        "second": second,
        "priority": _has(words, {"priority", "priorities", "urgent", "important"}),
        "due": _has(words, {"due", "deadline", "deadlines", "date", "dates", "calendar"}),
    }


def _csv(words: Words) -> Facts:
    tabs, semicolons = _has(words, {"tsv", "tab", "tabs"}), _has(words, {"semicolon", "semicolons"})
    delimiter = "\t" if tabs else ";" if semicolons else ","
    return {
        "delimiter": delimiter,
        "delimiter_escaped": "\\t" if tabs else delimiter,
        "measure": next((word for word in words if word in MEASURES), "value"),
    }


def _limiter(words: Words) -> Facts:
    periods = (PERIODS_S[word.removesuffix("s")] for word in words if word.removesuffix("s") in PERIODS_S)
    return {
        "limit": next((number for number in _numbers(words) if 1 <= number <= 10_000), 10),
        "period_s": next(periods, 60),
        "key": _first(words, {"user", "ip", "tenant", "client", "account", "session", "team"}, "caller"),
    }


def _key_value(words: Words) -> Facts:
    return {
        "expires": _has(words, EXPIRING),
        "max_key": next((number for number in _numbers(words) if 16 <= number <= 4096), 256),
        "key": _first(words, {"session", "user", "config", "setting", "counter", "profile", "token"}, "name"),
    }


def _catalogue(words: Words) -> Facts:
    """Named after the last word of substance: "a tracker for old coins" holds coins."""
    nouns = [word for word in words if word not in FILLERS and re.fullmatch(r"[a-z]{3,16}", word)]
    thing = _singular(nouns[-1]) if nouns else "thing"
    return {"thing": thing, "things": _plural(thing)}


def _numbers(words: Words) -> list[int]:
    return [int(word) for word in words if word.isdecimal() and len(word) <= 6]


def _has(words: Words, wanted: Iterable[str]) -> bool:
    return not set(wanted).isdisjoint(words)


def _first(words: Words, wanted: set[str], otherwise: str) -> str:
    singular = (word.removesuffix("s") if word.removesuffix("s") in wanted else word for word in words)
    return next((word for word in singular if word in wanted), otherwise)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


KINDS: Final = (
    AppKind(
        "shortener",
        frozenset({"url", "urls", "link", "links", "shortener", "shorten", "shortening", "redirect", "bitly"}),
        _shortener,
    ),
    AppKind(
        "todo", frozenset({"todo", "todos", "task", "tasks", "chores", "checklist", "shopping", "homework"}), _todo
    ),
    AppKind(
        "csv_statistics",
        frozenset(
            {"csv", "tsv", "statistics", "stats", "spreadsheet", "table", "column", "columns", "median", "average"}
        ),
        _csv,
    ),
    AppKind(
        "adventure",
        frozenset({"adventure", "game", "dungeon", "maze", "quest", "interactive", "fiction"}),
        adventure_facts,
    ),
    AppKind(
        "rate_limiter",
        frozenset({"rate", "limiter", "limit", "limits", "throttle", "throttling", "quota", "bucket", "requests"}),
        _limiter,
    ),
    AppKind(
        "key_value",
        frozenset({"key", "keys", "value", "values", "store", "kv", "database", "cache", "storage", "redis"}),
        _key_value,
    ),
    AppKind("catalogue", frozenset(), _catalogue),
)
