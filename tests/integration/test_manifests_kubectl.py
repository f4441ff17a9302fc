"""Operators apply the manifests by a kubectl of their own: what is promised of it, and that nothing else is."""

from __future__ import annotations

import re

import pytest

from tests.fixtures.kubectl import NEWEST, OLDEST
from tests.fixtures.manifests import FOLDERS, ROOT, render
from tests.integration.test_manifests import VERSIONS


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_oldest_kubectl_renders_what_the_newest_does(folder: str) -> None:
    assert render(FOLDERS[folder], by=OLDEST) == render(FOLDERS[folder], by=NEWEST)


def test_the_guide_promises_what_is_run_and_nothing_else() -> None:
    text = (ROOT / "docs" / "run.md").read_text()

    assert re.findall(r"kubectl (1\.\d+) to (1\.\d+)", text) == [(OLDEST, NEWEST)]
    assert re.findall(r"Kubernetes (1\.\d+) to (1\.\d+)", text) == [(VERSIONS[0], VERSIONS[-1])]
