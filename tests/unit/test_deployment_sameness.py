"""Two builds of an image are compared by what they hold, not by when it was written."""

import io
import tarfile
from typing import Any

from libs.deployment.sameness import contents_of, differences


def held(*, mtime: int = 1, mode: int = 0o644, body: bytes = b"one", link: str = "there") -> Any:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        file, other = tarfile.TarInfo("code/a.py"), tarfile.TarInfo("bin/python")
        file.size, file.mtime, file.mode = len(body), mtime, mode
        other.type, other.linkname = tarfile.SYMTYPE, link
        tar.addfile(file, io.BytesIO(body))
        tar.addfile(other)
    packed.seek(0)
    return contents_of(packed)


def test_what_was_only_written_at_another_time_is_the_same() -> None:
    assert differences(held(), held(mtime=2)) == []


def test_other_bytes_another_mode_another_link_and_a_file_too_many_are_differences() -> None:
    assert differences(held(), held(body=b"two")) == ["code/a.py"]
    assert differences(held(), held(mode=0o600)) == ["code/a.py"]
    assert differences(held(), held(link="elsewhere")) == ["bin/python"]
    assert differences(held(), {}) == ["bin/python", "code/a.py"]
