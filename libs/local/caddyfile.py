"""The gateway's configuration. What it says, and why, stands in `Caddyfile.template`, as Caddy reads it.

Owns what differs from place to place, and the bounds. Refuses to start anything: `caddy.py` runs it on one machine,
compose and `k8s/components/ingress` have it from `libs.deployment.generated`.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Final

TEMPLATE: Final = Path(__file__).with_name("Caddyfile.template")
LOG_FILE: Final = """file {name} {{
			roll_size 10MiB
			roll_keep 1
		}}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayBounds:
    """How long and how large. What a service bounds by itself, route by route, is narrower."""

    head_kib: int = 8
    head_s: int = 10
    body_mib: int = 16  # of which a service throws away what is too much, so that its refusal is heard
    body_s: int = 75  # of 7 MiB, the largest body there is, a service says only after 66 s that it is too slow
    untaken_s: int = 10  # for which a client takes nothing of its answer
    idle_s: int = 60
    hold_s: int = 10  # for which a request waits while its service is away
    grace_s: int = 2  # at the end; streams have been ended by their service before


@dataclass(frozen=True, slots=True, kw_only=True)
class Caddyfile:
    """The configuration of one gateway."""

    admission: str  # host:port
    notifier: str
    port: int = 8080
    listen: str = "0.0.0.0"  # noqa: S104 - of its container; fd/7 is a socket that it inherits
    requests_log: str | None = None  # a file, two of 10 MiB at most; else they are told with everything else
    bounds: GatewayBounds = GatewayBounds()

    def render(self) -> str:
        return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
            asdict(self.bounds),
            admission=self.admission,
            notifier=self.notifier,
            port=self.port,
            listen=self.listen,
            requests_log=LOG_FILE.format(name=self.requests_log) if self.requests_log else "stderr",
        )
