"""Entity tags (RFC 9110, 8.8.3 and 13.1): which version a condition names. Pure.

Tags are compared as text and never read: `"007"` is another one than `"7"`. Owns both comparisons.
"""

import re
from typing import Final

TAG: Final = re.compile(r'(?:W/)?"[!#-~\x80-\xff]*"')
LIST: Final = re.compile(rf"[ \t,]*{TAG.pattern}(?:[ \t]*,[ \t,]*{TAG.pattern})*[ \t,]*")
ANY: Final = "*"  # no tag is written so


def tags_in(condition: str) -> frozenset[str] | None:
    """What it names: tags, or any that there is. Null where it is neither a list of tags nor `*`."""
    if condition.strip() == ANY:
        return frozenset({ANY})
    return frozenset(TAG.findall(condition)) if LIST.fullmatch(condition) else None


def names_strongly(tags: frozenset[str], etag: str) -> bool:
    """For `If-Match`: something is to be changed, so a weak tag names nothing."""
    return not tags.isdisjoint({ANY, etag})


def names_weakly(tags: frozenset[str], etag: str) -> bool:
    """For `If-None-Match`: something is there already."""
    return names_strongly(frozenset(tag.removeprefix("W/") for tag in tags), etag)


def has_it(if_none_match: str | None, *, etag: str) -> bool:
    """Whether the client has this version already. Of what cannot be read no notice is taken: it gets it again."""
    return names_weakly(tags_in(if_none_match or "") or frozenset(), etag)
