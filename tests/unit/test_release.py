"""What a release is made of: one version everywhere, its section of the changelog, and the text of its tag."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests import release
from tests.release import NotReady

CHANGES = """# Changelog

## Unreleased

### Added

- Something that is still to come.

## 0.2.0 (2026-11-20)

### Added

- A client, which waits
  as it is told to.

### Fixed

- A fault.

## 0.1.0 (2026-10-01)

- The first.
"""


def test_the_section_of_a_version_is_what_stands_below_its_heading() -> None:
    section = release.section_of(CHANGES, "0.2.0")

    assert section.date == date(2026, 11, 20)
    assert section.text.startswith("### Added")
    assert section.text.endswith("- A fault.")


@pytest.mark.parametrize("version", ["0.3.0", "0.2"])
def test_a_version_without_a_section_is_no_release(version: str) -> None:
    with pytest.raises(NotReady, match=r"CHANGELOG\.md has no section"):
        release.section_of(CHANGES, version)


def test_a_section_that_says_nothing_is_no_release() -> None:
    with pytest.raises(NotReady, match="says nothing"):
        release.section_of("# Changelog\n\n## 0.2.0 (2026-11-20)\n\n## 0.1.0 (2026-10-01)\n\n- The first.\n", "0.2.0")


def test_what_is_still_unreleased_has_to_be_in_the_section() -> None:
    with pytest.raises(NotReady, match="Unreleased"):
        release.require_nothing_unreleased(CHANGES)
    release.require_nothing_unreleased(CHANGES.replace("### Added\n\n- Something that is still to come.\n\n", ""))


def test_the_tag_tells_what_is_released_by_its_own_text() -> None:
    text = release.tag_text("0.2.0", release.section_of(CHANGES, "0.2.0"), contracts="1.0.0", wheels=["a.whl", "b.whl"])

    assert text.splitlines()[:2] == ["Headgate 0.2.0", ""]
    assert "1.0.0" in text
    assert all(f"  {name}" in text.splitlines() for name in ("a.whl", "b.whl"))
    assert "- A client, which waits\n  as it is told to." in text
    assert not any(line.startswith("#") for line in text.splitlines()), "git takes these for comments"


def test_one_version_stands_everywhere_in_this_tree() -> None:
    assert release.wrong_versions(release.ROOT, release.version_of(release.ROOT)) == []


def test_a_place_that_was_forgotten_is_named(tmp_path: Path) -> None:
    for place in release.PLACES_OF_VERSIONS:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text((release.ROOT / place).read_text())
    forgotten = tmp_path / "docker-compose.yml"
    was = release.version_of(release.ROOT)
    forgotten.write_text(forgotten.read_text().replace(f"headgate-worker:{was}", "headgate-worker:0.0.9"))

    assert release.wrong_versions(tmp_path, was) == ["docker-compose.yml: headgate-worker:0.0.9"]


def test_a_cut_changes_the_version_everywhere_and_dates_the_changes(tmp_path: Path) -> None:
    for place in (*release.PLACES_OF_VERSIONS, "CHANGELOG.md", release.CHANGES_OF_CONTRACTS):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text((release.ROOT / place).read_text())
    (tmp_path / "CHANGELOG.md").write_text(CHANGES.replace("0.2.0 (2026-11-20)", "0.1.5 (2026-10-20)"))

    release.cut(tmp_path, "9.8.7", day=date(2026, 11, 20))

    assert (release.version_of(tmp_path), release.wrong_versions(tmp_path, "9.8.7")) == ("9.8.7", [])
    changes = (tmp_path / "CHANGELOG.md").read_text()
    assert release.section_of(changes, "9.8.7").text == "### Added\n\n- Something that is still to come."
    release.require_nothing_unreleased(changes)
    assert release.NOT_YET not in (tmp_path / release.CHANGES_OF_CONTRACTS).read_text()


def test_a_version_that_was_cut_before_takes_what_came_since_under_its_headings() -> None:
    came = "- A word.\n\n### Fixed\n\n- Another fault.\n"
    changes = CHANGES.replace("### Added\n\n- Something that is still to come.\n", came, 1)

    told = release.cut_changes(changes, "0.2.0", day=date(2026, 11, 21))

    release.require_nothing_unreleased(told)
    section = release.section_of(told, "0.2.0")
    assert section.date == date(2026, 11, 21)
    assert section.text.endswith("### Fixed\n\n- Another fault.\n- A fault.\n\n### Changed\n\n- A word.")
    assert told.count("## 0.2.0 (") == 1
    assert "## 0.1.0 (2026-10-01)\n\n- The first." in told


def test_contracts_that_are_not_frozen_are_no_release(tmp_path: Path) -> None:
    (tmp_path / "contracts" / "released").mkdir(parents=True)
    (tmp_path / "contracts" / "pyproject.toml").write_text((release.ROOT / "contracts" / "pyproject.toml").read_text())

    with pytest.raises(NotReady, match=r"contracts 1\.0 are not frozen"):
        release.require_frozen(tmp_path)
