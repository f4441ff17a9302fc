"""The patterns that the API's document says of names are the rules by which they are taken."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from headgate_contracts.asked import HELD_LEASE
from headgate_contracts.commands import AcquireLease
from headgate_contracts.holder import Holder
from headgate_contracts.openapi import openapi_document
from libs.runtime.faults import Refused
from services.admission.intake import key_of
from services.admission.naming import group_named, leased_group

ASCII = st.text(st.characters(min_codepoint=0, max_codepoint=127), max_size=12)
PARTS = st.lists(st.sampled_from(["group", "user", "pool", "llm", "shop", "ünn", "a b", "", "x" * 65]), max_size=5)


def pattern_of(operation: str, name: str) -> str:
    method, path = operation.split()
    [schema] = [
        each["schema"] for each in openapi_document()["paths"][path][method]["parameters"] if each["name"] == name
    ]
    return next(each["pattern"] for each in [schema, *schema.get("anyOf", ())] if "pattern" in each)


KEY = pattern_of("post /v1/jobs", "Idempotency-Key")
GROUP = pattern_of("get /v1/concurrency/{group}", "group")
LEASE = pattern_of("delete /v1/concurrency/{group}/leases/{lease}", "lease")


@given(ASCII)
@example('"a\\"b"')
@example('"a"b"')
@example('a"')
@example('"')
@example("")
@example("k" * 255)
@example("k" * 256)
def test_a_key_is_taken_exactly_where_the_document_says_so(key: str) -> None:
    assert (_taken(key) is not None) is (re.fullmatch(KEY, key) is not None)


@given(PARTS.map(":".join))
def test_a_group_that_is_taken_is_one_by_the_document(text: str) -> None:
    if group_named(text) or leased_group(text, user="ünn", projects=(), all_shared=False):
        assert re.search(GROUP, text)


def test_a_group_that_can_be_none_is_none_by_the_document() -> None:
    for text in ("", "User:ann", "llm:open ai", "group:shop:d b", "a:b:c:d:e", "user:", "pool:gp\nu"):
        assert (group_named(text), re.search(GROUP, text)) == (None, None)


def test_what_holds_a_slot_is_a_lease_by_the_document() -> None:
    holder = Holder("j" * 40, 7)
    alone: dict[str, Any] = {"lease": "01KJPZ7QXN5B2D9F4H8K3M6PRT", "groups": ("group:shop:db",)}
    names = (str(holder), holder.stage_lease(3), AcquireLease(**alone).lease)

    assert HELD_LEASE == LEASE
    assert all(re.search(LEASE, name) for name in names)
    assert not any(re.search(LEASE, name) for name in ("", "a b", "j:1:2", "j/1"))


def _taken(key: str) -> str | None:
    try:
        return key_of(key)
    except Refused:
        return None
