"""Names that operators give: scopes and groups, with users and projects as they sign in. Pure.

    project:shop       the project that all who claim `shop` share        group:shop:db       its group `db`
    project:ann:shop   what ann calls shop, and is her own                group:ann:shop:db   its group `db`

Owns the mapping of foreign ids inside such names. Everywhere else a user or project stands by itself. A shared project
whose id has a colon is named by its token, as lists show it.
"""

import re
from collections.abc import Collection
from typing import Final

from headgate_contracts.tokens import foreign_token, project_scope

GROUP: Final = re.compile(r"[a-z]+(:[A-Za-z0-9_-]{1,64}){0,3}")


def scope_named(text: str) -> str:
    """The scope as events carry it. The body's own check has seen that it is one."""
    match text.partition(":"):
        case "user", _, user:
            return f"user:{foreign_token(user)}"
        case "project", _, project:
            return f"project:{_project(project)}"
        case _:
            return text


def group_named(text: str) -> str | None:
    """The group as events carry it; null where nothing can have that name."""
    kind, _, name = text.partition(":")
    if kind in ("user", "project") and name:
        text = scope_named(text)
    elif kind == "group" and ":" in name:
        project, _, last = name.rpartition(":")
        text = f"group:{_project(project)}:{last}" if project else text
    return text if GROUP.fullmatch(text) else None


def leased_group(text: str, *, user: str, projects: Collection[str], all_shared: bool) -> str | None:
    """A group of one of the user's own projects, as events carry it; null where it is no such group."""
    kind, _, rest = text.partition(":")
    project, _, name = rest.rpartition(":")
    if kind != "group" or not project:
        return None
    known = foreign_token(project)
    scope = project_scope(user, known, shared=all_shared or known in projects)
    group = f"group:{scope}:{name}"
    return group if GROUP.fullmatch(group) else None


def _project(name: str) -> str:
    """A shared one by its id, a user's own by both."""
    user, colon, own = name.partition(":")
    return f"{foreign_token(user)}:{foreign_token(own)}" if colon and user and own else foreign_token(name)
