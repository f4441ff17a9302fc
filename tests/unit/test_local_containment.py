"""When a machine's jobs are trusted, and by whose word."""

from __future__ import annotations

import pytest

from libs.local.environments import sandbox_here
from libs.local.errors import NothingContains

MODEL = {"HEADGATE_PROVIDERS": "ollama"}
ASKED = {"HEADGATE_SANDBOX": "trusted"}


@pytest.mark.parametrize(
    ("platform", "environ", "told"),
    [
        ("linux", {}, "auto"),
        ("linux", MODEL, "auto"),
        ("linux", ASKED | MODEL, "trusted"),
        ("linux", {"HEADGATE_SANDBOX": "plain"}, "plain"),
        ("darwin", {}, "trusted"),
        ("darwin", {"HEADGATE_SANDBOX": "", "HEADGATE_PROVIDERS": " "}, "trusted"),
        ("darwin", {"HEADGATE_SANDBOX": "auto"}, "trusted"),
        ("darwin", ASKED | MODEL, "trusted"),
    ],
)
def test_what_the_workers_of_a_machine_are_told(platform: str, environ: dict[str, str], told: str) -> None:
    assert sandbox_here(environ, platform=platform) == told


@pytest.mark.parametrize(
    ("environ", "why"),
    [(MODEL, "HEADGATE_PROVIDERS=ollama"), ({"HEADGATE_SANDBOX": "plain"}, "HEADGATE_SANDBOX=plain asks for it")],
)
def test_nobody_who_could_be_a_stranger_is_trusted_unasked(environ: dict[str, str], why: str) -> None:
    with pytest.raises(NothingContains) as refused:
        sandbox_here(environ, platform="darwin")

    said = str(refused.value)
    assert why in said
    assert "docker compose up --build" in said
    assert "HEADGATE_SANDBOX=trusted" in said
