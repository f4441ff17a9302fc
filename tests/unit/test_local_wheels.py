"""What builds are made of, where set-up has brought none of it: which files of the list."""

from __future__ import annotations

import sys
from pathlib import Path

from packaging.tags import sys_tags

from libs.local.wheels import LockedWheel, chosen, wheels_at_hand, wheels_of_this_machine

LOCK = """
[[package]]
name = "project"
source = { editable = "." }
[package.dev-dependencies]
dev = [{ name = "runner" }]

[[package]]
name = "runner"
source = { registry = "https://pypi.org/simple" }
dependencies = [{ name = "colours", marker = "sys_platform == 'win32'" }, { name = "plain" }]
wheels = [
    { url = "https://there/runner-1-py3-none-any.whl", hash = "sha256:any" },
    { url = "https://there/runner-1-py3-none-FITS.whl", hash = "sha256:fits" },
    { url = "https://there/runner-1-py3-none-win_amd64.whl", hash = "sha256:windows" },
]

[[package]]
name = "plain"
source = { registry = "https://pypi.org/simple" }
dependencies = [{ name = "runner" }]
wheels = [{ url = "https://there/plain-2%2B1-py3-none-any.whl", hash = "sha256:plain" }]

[[package]]
name = "colours"
source = { registry = "https://pypi.org/simple" }
wheels = [{ url = "https://there/colours-1-py3-none-any.whl", hash = "sha256:colours" }]
"""


def test_of_each_package_that_is_needed_here_the_wheel_that_fits_best_is_chosen() -> None:
    tags = list(sys_tags())
    ours = next(tag.platform for tag in tags if tag.platform != "any")

    found = chosen(LOCK.replace("FITS", ours), tags)

    assert {(wheel.name, wheel.sha256) for wheel in found} == {
        (f"runner-1-py3-none-{ours}.whl", "fits"),
        ("plain-2+1-py3-none-any.whl", "plain"),
    }


def test_they_are_those_that_set_up_brings() -> None:
    assert {wheel.name for wheel in wheels_of_this_machine()} == {
        path.name for path in Path(sys.prefix, "wheels").iterdir()
    }


def test_a_folder_of_the_users_comes_first_and_that_of_set_up_before_ours(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()

    assert wheels_at_hand({"HEADGATE_WHEELS": "/mine"}, prefix=str(tmp_path)) == Path("/mine")
    assert wheels_at_hand({"HEADGATE_WHEELS": ""}, prefix=str(tmp_path)) == tmp_path / "wheels"
    assert wheels_at_hand({}, prefix=str(tmp_path / "wheels")) is None


def test_a_wheel_is_named_as_its_url_names_it() -> None:
    assert LockedWheel("https://there/a%20b/c-1-py3-none-any.whl?x=y", "").name == "c-1-py3-none-any.whl"
