"""Secrets: what is somebody's own stands nowhere that another reads."""

from __future__ import annotations

from typing import Final

from tests.abuse.attempts import Attempt, Looks

SERVICES: Final = ("admission", "scheduler", "worker", "notifier")
BUT_WORKERS: Final = ("admission", "scheduler", "notifier")  # who hides its environment from its own user too
LOGS: Final = tuple(f"log of {name}" for name in (*SERVICES, "the command", "the gateway", "requests", "NATS"))
METRICS: Final = tuple(f"metrics of {name}" for name in SERVICES)
SHOWN: Final = ("answers of the API", "page of everybody")
COMMAND_LINES: Final = tuple(f"command line of {name}" for name in (*SERVICES, "nats", "valkey", "caddy"))


def _nowhere(secret: str, *places: str) -> dict[str, Attempt]:
    return {f"{secret} in the {place}": Looks(secret, place) for place in places}


TABLE: Final[dict[str, dict[str, Attempt]]] = {
    "a token is written nowhere": {
        **_nowhere("token of ann", *LOGS, "events of everybody", *METRICS, *SHOWN),
    },
    "an operator's token is written nowhere": _nowhere(
        "operator's token",  # the command itself says it, to who started it
        *(log for log in LOGS if log != "log of the command"),
        "events of everybody",
        *METRICS,
    ),
    "a ticket is written nowhere": _nowhere("ticket", *LOGS, "events of everybody", *METRICS, *SHOWN),
    "a prompt is its user's": _nowhere("prompt", *LOGS, "events of everybody", *METRICS, *SHOWN),
    "passwords are for their owners": {
        **_nowhere(
            "password of nats/worker", "log of worker", "log of the command", "log of NATS", "metrics of worker"
        ),
        **_nowhere("password of nats/admission", "log of admission", "log of the command", "events of everybody"),
        **_nowhere("password of valkey/scheduler", "log of scheduler", "log of Valkey", "events of everybody"),
        **_nowhere("password of system", "log of NATS", "log of the command"),
        **_nowhere("secret of webhooks", "log of notifier", "log of the command", "answers of the API"),
    },
    "a process is told what is its own": {
        **_nowhere("password of nats/worker", *(f"environment of {name}" for name in ("admission", "notifier"))),
        **_nowhere("password of nats/admission", *(f"environment of {name}" for name in ("scheduler", "notifier"))),
        **_nowhere("password of nats/operator", *(f"environment of {name}" for name in BUT_WORKERS)),
        **_nowhere("password of valkey/headgate", *(f"environment of {name}" for name in BUT_WORKERS)),
        **_nowhere("password of valkey/admission", "environment of notifier"),
        **_nowhere("secret of webhooks", "environment of admission", "environment of scheduler"),
        **_nowhere("key of a provider", *(f"environment of {name}" for name in BUT_WORKERS)),
    },
    "no command line tells a password": {
        **_nowhere("password of nats/worker", *COMMAND_LINES[:4]),
        **_nowhere("password of valkey/headgate", *COMMAND_LINES[4:]),
        **_nowhere("password of system", "command line of nats"),
        **_nowhere("key of a provider", *COMMAND_LINES[:4]),
    },
    "a provider's key is the worker's": _nowhere(
        "key of a provider", *LOGS, "events of everybody", "answers of the API", *METRICS
    ),
    "the private key stays in its file": _nowhere("private key", *LOGS, *SHOWN, "events of everybody"),
}
