"""What a process of this machine may know of the shell that started it: a list for each of them, and nothing beside it.

    everything that runs      the machine: where programs, certificates and temporary files are, the language, the time
    each service              the same, what all services may be told, limits of providers, OpenTelemetry's variables
    the worker                besides: its sandbox, its pipelines, and of providers those that HEADGATE_PROVIDERS names

Owns the names. Whatever else is set there, the operator's token, the key of a provider that nobody asked for, a secret
of another program, reaches none of them.
"""

from collections.abc import Mapping
from typing import Final

from libs.local.errors import NothingContains
from libs.runtime.switches import SIGNALS, is_sent

SANDBOX: Final = "HEADGATE_SANDBOX"
PROVIDERS: Final = "HEADGATE_PROVIDERS"
TRUSTED: Final = "trusted"
MACHINE: Final = frozenset(
    {
        *("PATH", "HOME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "PYTHONUTF8", "PYTHONHASHSEED"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED"),
        *("PYTHONWARNINGS", "PYTHONFAULTHANDLER", "PYTHONASYNCIODEBUG"),
    }
)
EACH: Final = frozenset({"HEADGATE_LOG_LEVEL", "HEADGATE_LOG_REPLICAS", "HEADGATE_OUTAGE_PATIENCE_S", *MACHINE})
OWN: Final[Mapping[str, frozenset[str]]] = {
    "worker": frozenset(
        {
            *(PROVIDERS, "HEADGATE_PIPELINES", "HEADGATE_INDEX", "HEADGATE_WHEELS", "UV_SYSTEM_CERTS"),
            *(SANDBOX, "HEADGATE_SANDBOX_UIDS", "HEADGATE_SANDBOX_CGROUP"),
            *("HEADGATE_DRAIN_GRACE_S", "HEADGATE_END_GRACE_S"),
        }
    ),
}
LIMITS: Final = "LLM_MAX_CONCURRENCY_"  # as `libs.policy.loading` reads them, which the first moments do not wait for
TELEMETRY: Final = "OTEL_"
# How what is sent gets there, a proxy's password included: only where something is sent.
SENDING: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
OF_PROVIDER: Final = ("API_KEY", "BASE_URL", "MODEL")


def of_machine(shell: Mapping[str, str]) -> dict[str, str]:
    """For what is no service: the servers and the gateway."""
    return {name: value for name, value in shell.items() if name in MACHINE}


def of_service(service: str, shell: Mapping[str, str]) -> dict[str, str]:
    """What this service inherits. What `headgate up` itself tells it comes over that."""
    names = EACH | OWN.get(service, frozenset())
    if service == "worker":
        names |= _of_providers(shell.get(PROVIDERS, ""))
    return {name: value for name, value in shell.items() if name in names or _is_for_all(name, shell)}


def _of_providers(named: str) -> frozenset[str]:
    prefixes = [name.strip().upper() for name in named.split(",") if name.strip()]
    host = {"OLLAMA_HOST"} if "OLLAMA" in prefixes else set[str]()
    return frozenset({f"{prefix}_{what}" for prefix in prefixes for what in OF_PROVIDER} | host)


def _is_for_all(name: str, shell: Mapping[str, str]) -> bool:
    """A policy is the same for all of them; so is what becomes of traces, metrics and logs."""
    if name.startswith((LIMITS, TELEMETRY)):
        return True
    return name.upper() in SENDING and any(is_sent(signal, shell) for signal in SIGNALS)


def sandbox_here(environ: Mapping[str, str], *, platform: str) -> str:
    """What the workers of this machine are told of what contains a job's commands. Raises NothingContains.

    Unasked, everything is trusted only where the system can contain nothing and nobody but the author, who needs no
    model, writes code. Any other author is trusted by a word of the user's, never by ours. On Linux it is the
    worker that finds out, by running a command.
    """
    asked = environ.get(SANDBOX) or "auto"
    if platform == "linux" or asked == TRUSTED:
        return asked
    if asked != "auto":
        raise NothingContains(platform=platform, why=f"{SANDBOX}={asked} asks for it")
    if providers := environ.get(PROVIDERS, "").strip():
        raise NothingContains(platform=platform, why=f"a model is to write some of it ({PROVIDERS}={providers})")
    return TRUSTED
