"""Under which label a group is counted, and that a tenant's name never lands in a group of all."""

from __future__ import annotations

import pytest

from libs.policy import Policy, PolicyInForce
from libs.policy.reloading import sections_of
from services.scheduler.labels import OTHER, GroupLabels

POLICY = Policy.model_validate({"concurrency": {"limits": {"workflows": 5, "db": 2, "group:shop:web": 1}}})


@pytest.mark.parametrize(
    ("group", "label"),
    [
        ("workflows", "workflows"),
        ("group:ann:shop:workflows", OTHER),
        ("group:shop:workflows", OTHER),
        ("group:shop:db", "db"),
        ("group:shop:web", "group:shop:web"),
        ("group:ann:shop:web", OTHER),
        ("pool:gpu", "pool:gpu"),
        ("llm:global", "llm:global"),
        ("user:ann", None),
        ("project:shop", None),
    ],
)
def test_a_group_is_counted_under_a_name_of_policy_or_with_all_others(group: str, label: str | None) -> None:
    assert GroupLabels(POLICY).of_group(group) == label


def test_a_reload_names_groups_too() -> None:
    policy = PolicyInForce.of(Policy())
    labels = GroupLabels(policy)
    before = labels.of_group("group:shop:db")

    policy.take(sections_of(POLICY))

    assert (before, labels.of_group("group:shop:db")) == (OTHER, "db")
    assert (labels.has("db"), labels.has("web")) == (True, False)
