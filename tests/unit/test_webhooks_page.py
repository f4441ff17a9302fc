"""docs/webhooks.md: its receiver takes what the notifier sends, and nothing else."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from typing import Any

from services.notifier.calling import Call
from services.notifier.webhooks import call_for
from tests.fixtures.lives import life_of

[RECEIVER] = re.findall(
    r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(), flags=re.DOTALL
)
KEY, NEW_KEY = b"s" * 32, b"n" * 32
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


def receiver() -> Any:
    names: dict[str, Any] = {}
    exec(RECEIVER.replace("whsec_…", SECRET), names)  # noqa: S102 - the page's own
    return names["received"]


def a_call(*keys: bytes, aged_s: int = 0) -> Call:
    event = life_of()[-1]
    return call_for(event, url="http://hooks.example.com/", keys=keys, now_s=int(time.time()) - aged_s)


def test_a_call_is_taken_once_by_either_secret_while_they_change() -> None:
    received, call = receiver(), a_call(NEW_KEY, KEY)

    status, event = received(call.headers, call.body)

    assert (status, event["type"]) == (200, "dev.headgate.job.ready.v1")
    assert received(call.headers, call.body) == (200, None)


def test_a_strangers_call_a_changed_one_and_an_old_one_are_refused() -> None:
    received, call = receiver(), a_call(KEY)

    assert received(a_call(NEW_KEY).headers, a_call(NEW_KEY).body) == (400, None)
    assert received(call.headers, call.body + b" ") == (400, None)
    assert received(a_call(KEY, aged_s=600).headers, call.body) == (400, None)
