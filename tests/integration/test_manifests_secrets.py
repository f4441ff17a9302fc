"""The Secrets that `make secrets` brings, as an overlay takes them."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

from libs.deployment.secrets import KUBERNETES_FILE, write_secrets
from libs.local.state import StateFolder
from tests.fixtures.manifests import Rendered, render_with


def test_an_overlay_has_the_secrets_that_could_be_applied_by_hand(tmp_path: Path) -> None:
    folder = write_secrets(StateFolder(tmp_path / "state"))
    items = json.loads((folder / KUBERNETES_FILE).read_text())["items"]

    by_hand = {each["metadata"]["name"]: each["stringData"] for each in items if each["kind"] == "Secret"}
    assert _secrets(render_with(folder)) == by_hand


def test_a_changed_secret_is_a_new_pod_for_whoever_reads_it_and_for_nobody_else(tmp_path: Path) -> None:
    folder = write_secrets(StateFolder(tmp_path / "state"))
    before = render_with(folder).pods()
    (folder / "admission.env").write_text("HEADGATE_NATS_URL=nats://admission:other@nats:4222\n")
    render_with.cache_clear()

    after = render_with(folder).pods()

    assert {name for name in before if before[name] != after[name]} == {"admission"}


def _secrets(rendered: Rendered) -> dict[str, dict[str, str]]:
    return {
        secret["metadata"]["name"].rpartition("-")[0]: {
            key: b64decode(value).decode() for key, value in secret["data"].items()
        }
        for secret in rendered.of_kind("Secret")
    }
