"""What to tell a person of a process that has ended: the one line of its log that says why, as far as a line does.

Pure. Our services write JSON, everything else writes text; a traceback may stand behind either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from libs.runtime.terminal import without_credentials

LONGEST: Final = 300
FAULTS: Final = frozenset({"ERROR", "CRITICAL"})
NOTHING: Final = "(nothing)"


def last_words(log: str) -> str:
    """The last line, unless that only tells of the ending which a fault before it has caused."""
    lines = [line for line in log.splitlines() if line.strip()]
    if not lines:
        return NOTHING
    told = [_record(line) for line in lines]
    last = len(lines) - 1
    faults = [number for number, record in enumerate(told) if record.get("level") in FAULTS]
    if faults and told[last]:
        last = faults[-1]
    return without_credentials(_sentence(told[last]) or lines[last].strip())[:LONGEST]


def _sentence(record: Mapping[str, Any]) -> str:
    """Its message, and the last line of the fault that it tells of."""
    exception = str(record.get("exception", "")).strip().rpartition("\n")[2]
    return ": ".join(filter(None, (str(record.get("message", "")), exception)))


def _record(line: str) -> Mapping[str, Any]:
    """Empty where it is no JSON."""
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", record) if isinstance(record, dict) else {}
