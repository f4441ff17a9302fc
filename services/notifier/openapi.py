"""The notifier's part of the API's document: `python -m services.notifier.openapi` prints it."""

import sys
from collections.abc import Iterator
from typing import Any, cast

from fastapi import APIRouter

from headgate_contracts.streamed import SNAPSHOTS, STREAMED, stream_items
from libs.runtime.openapi import part
from services.notifier.api import streams


def routers() -> Iterator[APIRouter]:
    """No route is called here, so none needs what it would answer from. The page is no part of the API."""
    yield streams(cast("Any", None))


def said() -> str:
    return part(routers(), models=[*STREAMED.values(), *SNAPSHOTS.values()], schemas=stream_items())


if __name__ == "__main__":
    sys.stdout.write(said())
