"""From a file and the environment to a policy, or to every reason why not.

Owns the only reading and the wording of errors. Refuses to guess: an unknown key or a wrong type is never passed over.
"""

import re
import reprlib
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from libs.policy.errors import PolicyError, Problem, key_path
from libs.policy.model import CONFLICTS, DEFAULTS, Policy
from libs.policy.sections import IN_WORDS, toml_text

ENVIRONMENT_PREFIX: Final = "LLM_MAX_CONCURRENCY_"

# What was expected, by pydantic's name of the error and with its context.
EXPECTED: Final = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
    "less_than": "less than {lt}",
    "enum": "one of {expected}",
}

MOST_LISTED: Final = 20  # problems: a search for what was meant takes a millisecond or more, on a service's loop
LONGEST_SEARCHED: Final = 200  # characters of a key, more than any has

FOLLOWING: Final = {CONFLICTS, "default_factory_not_called"}  # these only follow from something else
KNOWN: Final = {*DEFAULTS, *Policy.model_fields, *(path.rpartition(".")[0] for path in DEFAULTS)}

Table = dict[str, Any]


def load_policy(path: Path | None, *, environ: Mapping[str, str]) -> Policy:
    """Read `policy.toml` or `headgate.toml`, or without a path the defaults. The environment overrides both."""
    return policy_from(read_document(path) if path else {}, environ=environ)


def policy_from(document: Table, *, environ: Mapping[str, str]) -> Policy:
    """What a file holds, as a policy. The document is taken apart by it."""
    problems = list(_overridden(document, environ))
    try:
        policy = Policy.model_validate(document)
    except ValidationError as error:
        problems += _problems(document, error)
    else:
        if not problems:
            return policy
    raise PolicyError(_listed(problems))


def _listed(problems: list[Problem]) -> list[Problem]:
    more = len(problems) - MOST_LISTED
    if more <= 0:
        return problems
    return [*problems[:MOST_LISTED], Problem("policy", f"and {more} more", "write these right first")]


def read_document(path: Path) -> Table:
    """What the file says, not looked at yet."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = Problem(str(path), f"cannot be read ({error.strerror})", "name a TOML file that exists")
    except ValueError as error:  # no TOML, or no UTF-8
        problem = Problem(str(path), f"is not TOML ({error})", "correct it there")
    raise PolicyError([problem])


def _overridden(document: Table, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Write the provider limits of the environment into the document. An empty variable counts as not set."""
    places = _places(document)
    for name in sorted(name for name in environ if name.startswith(ENVIRONMENT_PREFIX) and environ[name]):
        value = environ[name]
        if name not in places:
            nearest = get_close_matches(name, places, n=1, cutoff=0)[0]
            yield Problem(name, "there is no such provider", f"set {nearest}, or add the provider to providers.limits")
        elif not re.fullmatch(r"[1-9][0-9]{0,8}", value):
            yield Problem(name, f"{reprlib.repr(value)} is not a whole number from 1 up", "set it to 4 for example")
        else:
            table, key = places[name]
            table[key] = int(value)


def _places(document: Table) -> dict[str, tuple[Table, str]]:
    """What each variable overrides: a table of the document and a key in it."""
    providers = _table(document, "providers")
    limits = _table(providers, "limits")
    names = {*Policy().providers.limits, *limits}
    by_provider = {f"{ENVIRONMENT_PREFIX}{name.upper()}": (limits, name) for name in sorted(names)}
    return {**by_provider, f"{ENVIRONMENT_PREFIX}GLOBAL": (providers, "global_limit")}


def _table(document: Table, key: str) -> Table:
    """The table at the key, made where there is none. Something else there stays, and is reported as what it is."""
    found = document.setdefault(key, {})
    return cast("Table", found) if isinstance(found, dict) else {}


def _problems(document: Table, error: ValidationError) -> Iterator[Problem]:
    """The faults of single keys, then the conflicts between the sound ones. Takes the faulty ones out."""
    details = [detail for detail in error.errors(include_url=False) if detail["type"] not in FOLLOWING]
    for number, detail in enumerate(details):
        yield _fault(detail, searches=number < MOST_LISTED)
    for detail in details:
        _drop(document, *detail["loc"])
    faulty = {_path_of(detail) for detail in details} & KNOWN
    for conflict in _conflicts(document):
        if not any(re.search(rf"\b{re.escape(key)}\b", str(conflict)) for key in faulty):
            yield conflict


def _path_of(detail: ErrorDetails) -> str:
    return key_path(*(part for part in detail["loc"] if isinstance(part, str) and part != "[key]"))


def _fault(detail: ErrorDetails, *, searches: bool) -> Problem:
    path = _path_of(detail)
    if detail["type"] == "extra_forbidden":
        meant = f"write {_nearest(path, len(detail['loc']))} if you mean that, or " if searches else ""
        return Problem(path, "there is no such key", f"{meant}leave it out")
    expected = _expected(detail)
    instead = f"for example {toml_text(DEFAULTS[path])}" if path in DEFAULTS else expected
    return Problem(path, f"{reprlib.repr(detail['input'])} is not {expected}", f"write {instead}")


def _nearest(path: str, depth: int) -> str:
    as_deep = [known for known in KNOWN if known.count(".") + 1 >= depth]
    return get_close_matches(path[:LONGEST_SEARCHED], as_deep, n=1, cutoff=0)[0]


def _expected(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    if detail["type"] == "string_pattern_mismatch":
        return IN_WORDS[context["pattern"]]
    shown = {name: toml_text(value) if isinstance(value, float) else value for name, value in context.items()}
    return EXPECTED[detail["type"]].format(**shown)


def _drop(table: Table, head: str | int, *rest: str | int) -> None:
    below = table.get(str(head))
    if rest and isinstance(below, dict):
        _drop(cast("Table", below), *rest)
    else:
        table.pop(str(head), None)


def _conflicts(document: Table) -> tuple[Problem, ...]:
    try:
        Policy.model_validate(document)
    except ValidationError as error:
        return error.errors()[0].get("ctx", {})[CONFLICTS]
    return ()
