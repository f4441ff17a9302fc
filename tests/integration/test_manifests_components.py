"""What an overlay may take besides: each alone and all at once is what Kubernetes knows."""

from __future__ import annotations

import kubernetes_validate
import pytest

from tests.fixtures.kubectl import NEWEST, OLDEST
from tests.fixtures.manifests import BASE, COMPONENTS, Rendered, render, render_with
from tests.integration.test_manifests import VERSIONS

NAMES = tuple(sorted(folder.name for folder in COMPONENTS.iterdir()))
ALONE = [(name,) for name in NAMES]
FOREIGN = {"HTTPRoute", "PodMonitor"}  # kinds that no schema of Kubernetes has; test_manifests_network.py looks at them


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("taken", [*ALONE, NAMES], ids=" ".join)
def test_a_component_is_what_kubernetes_knows(taken: tuple[str, ...], version: str) -> None:
    for manifest in render_with(*taken).manifests:
        if manifest["kind"] not in FOREIGN:
            kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("taken", [*ALONE, NAMES], ids=" ".join)
def test_the_oldest_kubectl_renders_a_component_as_the_newest_does(taken: tuple[str, ...]) -> None:
    assert render_with(*taken, by=OLDEST) == render_with(*taken, by=NEWEST)


@pytest.mark.parametrize("name", NAMES)
def test_a_component_takes_nothing_away_that_the_base_has(name: str) -> None:
    def known(rendered: Rendered) -> set[tuple[str, str]]:
        return {(each["kind"], each["metadata"]["name"]) for each in rendered.manifests}

    assert known(render(BASE)) <= known(render_with(name))
