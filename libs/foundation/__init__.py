"""What every service stands on: its settings, its probes, its telemetry, and the two servers, waited for."""

from libs.foundation.ground import Ground, bootstrap

__all__ = ["Ground", "bootstrap"]
