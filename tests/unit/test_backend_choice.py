"""Which servers a run gets, and that nobody can be mistaken about it."""

import pytest

from tests.fixtures.backend import Backend, choose, missing


@pytest.mark.parametrize(
    ("asked", "with_images", "without_images"),
    [
        ("auto", Backend.DOCKER, Backend.EMBEDDED),
        ("embedded", Backend.EMBEDDED, Backend.EMBEDDED),
        ("docker", Backend.DOCKER, Backend.DOCKER),
        ("external", Backend.EXTERNAL, Backend.EXTERNAL),
    ],
)
def test_only_auto_looks_for_what_there_is(asked: str, with_images: Backend, without_images: Backend) -> None:
    assert choose(asked, images_ready=True) is with_images
    assert choose(asked, images_ready=False) is without_images


def test_a_backend_nobody_knows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(pytest.UsageError, match="TEST_BACKEND=podman is none of auto, docker, embedded, external"):
        choose("podman")


def test_a_missing_server_skips_on_a_laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match="no engine"):
        missing("no engine")


def test_a_missing_server_fails_where_ci_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="no engine"):
        missing("no engine")
