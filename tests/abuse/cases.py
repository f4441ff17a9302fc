"""All rows of all families, each with its defence and its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.abuse.attempts import Attempt
from tests.abuse.families import brokers, exhaustion, http, jobs, secrets, tenancy, tokens, web
from tests.abuse.families import input as inputs

FAMILIES: Final = {
    "tokens": tokens.TABLE,
    "input": inputs.TABLE,
    "HTTP": http.TABLE,
    "tenancy": tenancy.TABLE,
    "secrets": secrets.TABLE,
    "broker rights": brokers.TABLE,
    "hostile jobs": jobs.TABLE,
    "web": web.TABLE,
    "exhaustion": exhaustion.TABLE,
}


@dataclass(frozen=True)
class Case:
    family: str
    defence: str
    name: str
    attempt: Attempt

    def __str__(self) -> str:
        return f"{self.family}: {self.defence}: {self.name}".encode("ascii", "backslashreplace").decode()


CASES: Final = tuple(
    Case(family, defence, name, attempt)
    for family, table in FAMILIES.items()
    for defence, rows in table.items()
    for name, attempt in rows.items()
)
