"""What each process of one machine finds in its environment: what it reads, and nothing of the shell beside that."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from libs.local.environments import of_machine, of_service
from libs.local.provisions import Provisions
from libs.local.settings import UpSettings
from libs.local.state import StateFolder
from libs.policy import Policy
from libs.policy.loading import ENVIRONMENT_PREFIX
from libs.runtime.settings import ServiceSettings
from services.admission.settings import AdmissionSettings
from services.notifier.settings import NotifierSettings
from services.scheduler.settings import SchedulerSettings
from services.worker.child.messages import ProviderEndpoint
from services.worker.children import PASSED_ON
from services.worker.endpoints import endpoints
from services.worker.settings import WorkerSettings

SETTINGS: Final[dict[str, type[ServiceSettings]]] = {
    "admission": AdmissionSettings,
    "notifier": NotifierSettings,
    "scheduler": SchedulerSettings,
    "worker": WorkerSettings,
}
USERS: Final = {"HEADGATE_JWKS", "HEADGATE_JWT_ISSUER", "HEADGATE_JWT_AUDIENCE"}
# Each process is told when it is started; one port for metrics would be the same for all.
LISTENS: Final = {"HEADGATE_HTTP_HOST", "HEADGATE_HTTP_PORT", "HEADGATE_METRICS_PORT"}
ELSEWHERE: Final = {"HEADGATE_CA_FILE"}  # the servers of one machine speak without TLS
STRANGE: Final = {
    "HEADGATE_TOKEN": "an operator's",
    "HEADGATE_URL": "http://elsewhere",
    "HEADGATE_STATE": "/state",
    "AWS_SECRET_ACCESS_KEY": "of another program",
    "GITHUB_TOKEN": "of another program",
    "GEMINI_API_KEY": "of a provider that is not named",
    "DATABASE_URL": "postgres://of:another@program",
    "SSH_AUTH_SOCK": "/agent",
    "PYTHONSTARTUP": "/a/file",
    "LD_PRELOAD": "/a/library",
}
PROVIDERS: Final = {
    "HEADGATE_PROVIDERS": "openai, ollama,mine",
    "OPENAI_API_KEY": "sk-openai",
    "OPENAI_MODEL": "m",
    "OLLAMA_HOST": "there",
    "MINE_API_KEY": "sk-mine",
    "MINE_BASE_URL": "https://mine.example",
    "MINE_MODEL": "m",
}
NATS: Final = "nats://somebody:password@127.0.0.1:4222"
VALKEY: Final = "redis://127.0.0.1:6379/0"
PROXY: Final = {"HTTPS_PROXY": "http://user:word@proxy"}


@pytest.fixture
def provisions(tmp_path: Path) -> Provisions:
    return Provisions.of(UpSettings(state=tmp_path), StateFolder(tmp_path), Policy())


def given(provisions: Provisions, service: str, shell: dict[str, str]) -> dict[str, str]:
    return provisions.environment(service, name=service, nats_url=NATS, redis_url=VALKEY, inherited=shell)


@pytest.mark.parametrize("service", SETTINGS)
def test_a_service_finds_every_setting_that_is_its_own_and_no_other(provisions: Provisions, service: str) -> None:
    everything = {f"HEADGATE_{field.upper()}" for settings in SETTINGS.values() for field in settings.model_fields}
    own = {f"HEADGATE_{field.upper()}" for field in SETTINGS[service].model_fields} - LISTENS - ELSEWHERE
    asks_who = service in ("admission", "notifier")

    found = given(provisions, service, dict.fromkeys(everything, "set") | STRANGE)

    expected = own - {"HEADGATE_POLICY"} - (set() if asks_who else USERS)
    assert {name for name in found if name.startswith("HEADGATE_")} == expected
    assert not found.keys() & (STRANGE.keys() - everything)


@pytest.mark.parametrize("service", SETTINGS)
def test_keys_of_providers_that_are_named_go_to_the_worker_alone(provisions: Provisions, service: str) -> None:
    found = given(provisions, service, PROVIDERS | STRANGE)

    assert found.keys() & (PROVIDERS | STRANGE).keys() == (PROVIDERS.keys() if service == "worker" else set())


def test_a_worker_finds_all_that_its_providers_are_read_from() -> None:
    found = endpoints(("openai", "ollama", "mine"), of_service("worker", PROVIDERS))

    assert found == {
        "openai": ProviderEndpoint(url="https://api.openai.com/v1", model="m", key="sk-openai"),
        "ollama": ProviderEndpoint(url="http://there:11434/v1", model="qwen2.5-coder", key=None),
        "mine": ProviderEndpoint(url="https://mine.example", model="m", key="sk-mine"),
    }


def test_a_worker_finds_all_that_it_passes_on() -> None:
    assert of_service("worker", dict.fromkeys(PASSED_ON, "set")).keys() == set(PASSED_ON)


@pytest.mark.parametrize("service", SETTINGS)
def test_limits_of_providers_are_everybodys_as_policy_is(service: str) -> None:
    limit = {f"{ENVIRONMENT_PREFIX}OPENAI": "3"}

    assert of_service(service, limit) == limit


@pytest.mark.parametrize("service", SETTINGS)
@pytest.mark.parametrize(
    "sent",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"},
        {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://collector:4318/v1/logs"},
        {"OTEL_METRICS_EXPORTER": "otlp"},
    ],
)
def test_a_proxy_is_handed_on_only_where_something_is_sent(service: str, sent: dict[str, str]) -> None:
    assert of_service(service, PROXY) == {}
    assert of_service(service, PROXY | sent) == PROXY | sent
    off = {"OTEL_SDK_DISABLED": "true"}
    assert of_service(service, PROXY | sent | off) == sent | off


def test_a_server_finds_nothing_but_the_machine() -> None:
    shell = {"PATH": "/bin", "LANG": "C.UTF-8", "HEADGATE_LOG_LEVEL": "DEBUG"} | STRANGE | PROVIDERS | PROXY

    assert of_machine(shell) == {"PATH": "/bin", "LANG": "C.UTF-8"}
