"""What every service stands on: its settings, its probes, its telemetry, and the two servers, waited for."""

from libs.foundation.ground import Ground, lay

__all__ = ["Ground", "lay"]
