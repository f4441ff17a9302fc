"""Settings are complete, frozen and silent about secrets, or they are refused with every reason at once."""

from pathlib import Path

import pytest
from pydantic import ValidationError, model_validator

from libs.runtime.errors import SettingsWrong
from libs.runtime.settings import ServiceSettings, read_settings

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service's environment with all that is required, and nothing of the machine's own."""
    for name in ServiceSettings.model_fields:
        monkeypatch.delenv(f"HEADGATE_{name.upper()}", raising=False)
    monkeypatch.setenv("HEADGATE_NATS_URL", f"nats://admission:{SECRET}@127.0.0.1:4222")
    monkeypatch.setenv("HEADGATE_REDIS_URL", f"redis://admission:{SECRET}@127.0.0.1:6379/0")


def test_what_is_not_set_has_a_default() -> None:
    settings = read_settings(ServiceSettings)

    assert (settings.shard, settings.http_host, settings.http_port, settings.log_level) == (
        "main",
        "127.0.0.1",
        0,
        "INFO",
    )
    assert settings.nats_url.get_secret_value() == f"nats://admission:{SECRET}@127.0.0.1:4222"


def test_key_sets_are_a_list_of_files_and_urls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "our keys.json"
    file.touch()
    monkeypatch.setenv("HEADGATE_JWKS", f"{file}, https://issuer.example/keys")

    assert read_settings(ServiceSettings).jwks == (str(file), "https://issuer.example/keys")


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_POLICY", "")

    assert read_settings(ServiceSettings).policy is None


def test_settings_cannot_be_changed() -> None:
    settings = read_settings(ServiceSettings)

    with pytest.raises(ValidationError):
        settings.shard = "other"


def test_secrets_are_never_shown() -> None:
    settings = read_settings(ServiceSettings)

    assert SECRET not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("NATS_URL", "", "is not set; set it to nats://"),
        ("NATS_URL", f"http://u:{SECRET}@host", "begins with nats:// or tls://"),
        ("NATS_URL", SECRET, "what is set is not a URL"),
        ("REDIS_URL", f"redis://u:{SECRET}@host:port", "begins with redis:// or rediss://"),
        ("HTTP_PORT", "65536", "'65536' cannot be used; set it to 0 to 65535"),
        ("HTTP_PORT", "http", "'http' cannot be used"),
        ("SHARD", "a.b", "'a.b' cannot be used; set it to 1 to 64 of A-Z a-z 0-9 _ -"),
        ("JWKS", "/no/such/file", "'/no/such/file' is neither a URL nor a file that exists"),
        ("JWKS", "ftp://host/keys", "begins with http:// or https://"),
        ("LOG_LEVEL", "loud", "'LOUD' cannot be used; set it to DEBUG, INFO, WARNING or ERROR"),
        ("OUTAGE_PATIENCE_S", "nan", "set it to seconds, more than 0"),
        ("OUTAGE_PATIENCE_S", "0", "set it to seconds, more than 0"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_change(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(f"HEADGATE_{variable}", value)

    with pytest.raises(SettingsWrong) as refused:
        read_settings(ServiceSettings)

    [line] = refused.value.problems
    assert line.startswith(f"HEADGATE_{variable}: ")
    assert said in line
    assert SECRET not in str(refused.value)


def test_all_that_is_wrong_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_HTTP_PORT", "-1")
    monkeypatch.setenv("HEADGATE_SHARD", "*")

    with pytest.raises(SettingsWrong) as refused:
        read_settings(ServiceSettings)

    assert len(refused.value.problems) == 2
    assert refused.value.__context__ is None or refused.value.__suppress_context__  # pydantic's text shows values


def test_a_service_adds_fields_and_checks_across_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class WorkerSettings(ServiceSettings):
        slots: int = 2
        most_slots: int = 4

        @model_validator(mode="after")
        def _slots_fit(self) -> "WorkerSettings":
            if self.slots > self.most_slots:
                raise ValueError("HEADGATE_SLOTS: more than HEADGATE_MOST_SLOTS; lower the first or raise the second")
            return self

    monkeypatch.setenv("HEADGATE_SLOTS", "5")

    with pytest.raises(SettingsWrong) as refused:
        read_settings(WorkerSettings)

    assert refused.value.problems == (
        "HEADGATE_SLOTS: more than HEADGATE_MOST_SLOTS; lower the first or raise the second",
    )
