"""The OpenAPI 3.1 document of the HTTP API, as it was generated from the services' routes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def openapi_document() -> dict[str, Any]:
    """A new copy each time."""
    return json.loads(files("headgate_contracts").joinpath("openapi.json").read_text(encoding="utf-8"))
