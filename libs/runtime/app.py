"""The application of a service that clients ask: routes behind a gate, and a problem for each fault."""

from typing import Any

from libs.runtime.auth import Tokens
from libs.runtime.faults import Faults, answer_with_problems
from libs.runtime.gate import Gate, Gated
from libs.runtime.openapi import DescribedApp
from libs.runtime.telemetry import Telemetry


def create_app(
    service: str,
    *,
    version: str,
    gate: Gate,
    telemetry: Telemetry,
    tokens: Tokens | None = None,
    faults: Faults | None = None,
) -> DescribedApp:
    """Routes are added when their clients are there, before the gate opens.

    `faults` says which problem an exception becomes; `tokens` is what `Identity` asks.
    """
    app = DescribedApp(
        title=f"Headgate {service}",
        version=version,
        docs_url=None,  # both pages load scripts from elsewhere
        redoc_url=None,
        telemetry=_recorded_by(telemetry),
    )
    app.state.tokens = tokens
    app.add_middleware(Gated, gate=gate)
    answer_with_problems(app, faults or {})
    return app


def _recorded_by(telemetry: Telemetry) -> dict[str, Any]:
    """In the framework's own words."""
    return {
        "tracer_provider": telemetry.tracer_provider,
        "meter_provider": telemetry.meter_provider,
        "logs": False,  # ours are in JSON on stdout
        "operation_spans": False,  # a quarter of the time of a small request
        "auto_configure": False,
    }
