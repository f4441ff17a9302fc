"""What a configuration says about rights, where nats-server's own reading of it would surprise."""

import pytest

from libs.local.nats_config import NatsUser


@pytest.mark.parametrize(
    ("user", "publish"),
    [
        (NatsUser("u", "p"), {"allow": [">"]}),
        (NatsUser("u", "p", publish=("a", "b.>")), {"allow": ["a", "b.>"]}),
        (NatsUser("u", "p", publish=("a.>",), refused=("a.b",)), {"allow": ["a.>"], "deny": ["a.b"]}),
        (NatsUser("u", "p", publish=()), {"deny": [">"]}),
        (NatsUser("u", "p", publish=(), refused=("a.b",)), {"deny": [">"]}),
    ],
    ids=["everything", "a list", "a list with holes", "nothing", "nothing, with holes"],
)
def test_no_list_of_rights_says_more_than_was_meant(user: NatsUser, publish: dict[str, list[str]]) -> None:
    permissions = user.as_config()["permissions"]

    assert isinstance(permissions, dict)
    assert permissions["publish"] == publish
