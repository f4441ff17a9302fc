"""Names that operators give: scopes and groups, with users and projects as they sign in. Pure.

Owns the mapping of foreign ids inside such names. Everywhere else a user or project stands by itself.
"""

from __future__ import annotations

import re
from typing import Final

from headgate_contracts.tokens import foreign_token

GROUP: Final = re.compile(r"[a-z]+(:[A-Za-z0-9_-]{1,64}){0,2}")
OWNED: Final = ("user", "project")


def scope_named(text: str) -> str:
    """The scope as events carry it. The body's own check has seen that it is one."""
    kind, _, name = text.partition(":")
    return f"{kind}:{foreign_token(name)}" if kind in OWNED else text


def group_named(text: str) -> str | None:
    """The group as events carry it; null where nothing can have that name."""
    kind, _, name = text.partition(":")
    if kind in OWNED and name:
        return f"{kind}:{foreign_token(name)}"
    if kind == "group" and ":" in name:
        project, _, last = name.rpartition(":")
        text = f"{kind}:{foreign_token(project)}:{last}" if project else text
    return text if GROUP.fullmatch(text) else None
