"""Admission's part of the API's document: `python -m services.admission.openapi` prints it.

Made of the routes themselves, so it cannot say anything else than they do.
"""

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from fastapi import APIRouter
from opentelemetry.metrics import NoOpMeter

from libs.runtime.openapi import part
from services.admission.api import Edge
from services.admission.routes import ROUTES
from services.admission.submission_counts import SubmissionCounts


def routers() -> Iterator[APIRouter]:
    """All of them. No route is called here, so none needs what it would answer from."""
    nobody = cast("Any", None)
    edge = cast("Edge", SimpleNamespace(counts=SubmissionCounts(nobody, NoOpMeter("nobody"))))
    return (routes(edge) for routes in ROUTES)


if __name__ == "__main__":
    sys.stdout.write(part(routers()))
