"""Which LLM providers this worker may call: where, with which model, as whom. All of it from its own environment.

    HEADGATE_PROVIDERS=ollama,openai        in order of preference; empty: none, whatever keys lie around

    <NAME>_API_KEY      needed, but by ollama        OPENAI_API_KEY
    <NAME>_BASE_URL     OpenAI-compatible            OPENAI_BASE_URL      (ollama: OLLAMA_HOST)
    <NAME>_MODEL                                     OPENAI_MODEL

Four are known, with defaults for URL and model; any other name needs all three. Owns those names. The keys go to the
process of an attempt over its socket, and nowhere else: nothing that a job runs inherits this environment. How long one
pauses after a 429 is `StageSlots.shut` in `attempt/slots.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from libs.runtime.errors import SettingsWrong
from services.worker.child.messages import ProviderEndpoint


@dataclass(frozen=True, slots=True)
class ProviderDefaults:
    """What is set where nothing else is."""

    url: str
    model: str
    needs_key: bool = True


KNOWN: Final[Mapping[str, ProviderDefaults]] = {
    "ollama": ProviderDefaults("http://127.0.0.1:11434/v1", "qwen2.5-coder", needs_key=False),
    "gemini": ProviderDefaults("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash"),
    "openai": ProviderDefaults("https://api.openai.com/v1", "gpt-5-mini"),
    "deepseek": ProviderDefaults("https://api.deepseek.com/v1", "deepseek-chat"),
}


def endpoints(names: Iterable[str], environ: Mapping[str, str]) -> dict[str, ProviderEndpoint]:
    """One for each name, in that order, or every reason why not."""
    problems: list[str] = []
    found = {name: _endpoint(name, environ, problems) for name in names}
    if problems:
        raise SettingsWrong(problems)
    return found


def _endpoint(name: str, environ: Mapping[str, str], problems: list[str]) -> ProviderEndpoint:
    known = KNOWN.get(name, ProviderDefaults("", ""))
    prefix = name.upper().replace("-", "_")
    url, model = _url(prefix, known, environ), environ.get(f"{prefix}_MODEL") or known.model
    key = environ.get(f"{prefix}_API_KEY") or None
    lacks = f"HEADGATE_PROVIDERS names {name}, and"
    if not _is_http(url):
        problems.append(f"{lacks} {prefix}_BASE_URL is no http:// or https:// address; set it to one")
    if not model:
        problems.append(f"{lacks} {prefix}_MODEL is not set; set it to the name of a model")
    if key is None and known.needs_key:
        problems.append(f"{lacks} {prefix}_API_KEY is not set; set it, or take {name} out of HEADGATE_PROVIDERS")
    return ProviderEndpoint(url=url, model=model, key=key)


def _url(prefix: str, known: ProviderDefaults, environ: Mapping[str, str]) -> str:
    told = environ.get(f"{prefix}_BASE_URL")
    host = environ.get("OLLAMA_HOST") if prefix == "OLLAMA" else None
    if not told and host:  # as Ollama's own programs read it: a host, perhaps with a port, perhaps with a scheme
        address = host if "://" in host else f"http://{host}"
        parts = urlsplit(address)
        port = "" if parts.port or "://" in host else ":11434"
        told = f"{parts.scheme}://{parts.netloc}{port}{parts.path.rstrip('/')}/v1"
    return (told or known.url).rstrip("/")


def _is_http(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
