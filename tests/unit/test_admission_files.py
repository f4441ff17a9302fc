"""What a result holds, file by file, and what nobody is shown of a hostile one."""

import io
import tarfile
from collections.abc import Mapping
from typing import Any

import pytest

from libs.runtime.errors import ArchiveRefused
from services.admission import files
from services.admission.files import content_of, listed
from tests.fixtures.admission_api import OPERATOR, AdmissionApi, refused
from tests.fixtures.memory_admission import MemoryAdmission

PAGE = b"<script>fetch('/v1/jobs')</script>"
HELD = {"README.md": b"# Shop", "src/shop/main.py": b"print(1)\n", "page.html": PAGE, "blob.bin": b"\x00\xff" * 4}


def packed(held: Mapping[str, bytes], *more: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, content in (*held.items(), *more):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def with_link(kind: bytes, target: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        entry = tarfile.TarInfo("a")
        entry.type, entry.linkname = kind, target
        archive.addfile(entry)
    return out.getvalue()


def test_files_are_listed_by_path_with_size_and_a_type_that_is_safe_to_show() -> None:
    told = {each.path: (each.size, each.type.partition(";")[0]) for each in listed(packed(HELD))}

    assert list(told) == sorted(HELD)
    assert told == {
        "README.md": (6, "text/markdown"),
        "blob.bin": (8, "application/octet-stream"),
        "page.html": (len(PAGE), "text/plain"),
        "src/shop/main.py": (9, "text/plain"),
    }


def test_text_whose_looked_at_part_ends_within_a_character_is_text() -> None:
    [told] = listed(packed({"story": b"a" * (files.LOOKED_AT - 1) + "é".encode()}))

    assert told.type == files.TEXT


def test_of_two_files_with_one_name_the_later_one_counts() -> None:
    archive = packed({"a": b"first"}, ("a", b"second"))

    assert content_of(archive, "a") == (b"second", files.TEXT)
    assert [each.size for each in listed(archive)] == [6]


@pytest.mark.parametrize(
    "archive",
    [
        packed({"../out": b""}),
        packed({"/etc/passwd": b""}),
        with_link(tarfile.SYMTYPE, "/etc/passwd"),
        with_link(tarfile.LNKTYPE, "README.md"),
        packed(HELD)[:-20],
        b"no archive",
    ],
    ids=["above", "absolute", "symlink", "hard link", "cut off", "no archive"],
)
def test_an_archive_with_anything_odd_in_it_is_not_opened(archive: bytes) -> None:
    with pytest.raises(ArchiveRefused):
        listed(archive)
    with pytest.raises(ArchiveRefused):
        content_of(archive, "README.md")


def test_a_bomb_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST", files.Most(size_bytes=1000, entries=10, levels=8))

    with pytest.raises(ArchiveRefused, match="more than 1000 bytes"):
        listed(packed({"zeros": bytes(2000)}))
    with pytest.raises(ArchiveRefused, match="more than 10 entries"):
        listed(packed({str(number): b"" for number in range(11)}))


# ── over HTTP ─────────────────────────────────────────────────────────────────


@pytest.fixture
async def job_id(admission: MemoryAdmission) -> str:
    """Of a job of ann's that is ready."""
    story = "dispatched started scaffold code deps checks ready"
    job = await admission.go_on(await admission.submitted(user="ann"), *story.split())
    assert job.result is not None
    await admission.results.put(job.result, packed(HELD))
    await admission.fold()
    return job.id


async def test_a_results_files_are_its_owners_and_operators_alone(admission: MemoryAdmission, job_id: str) -> None:
    api = AdmissionApi(admission)
    answers: list[Any] = []
    async with api.client("ann") as ann, api.client("bob") as bob, api.client("olga", scope=OPERATOR) as olga:
        for client in (ann, olga, bob):
            answers += [
                await client.get(f"/v1/jobs/{job_id}/files"),
                await client.get(f"/v1/jobs/{job_id}/files/README.md"),
            ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 404, 404]
    assert [each["path"] for each in answers[0].json()["files"]] == sorted(HELD)
    assert answers[0].json()["bytes"] == sum(map(len, HELD.values()))


async def test_a_file_runs_nowhere_and_is_taken_for_nothing_else(admission: MemoryAdmission, job_id: str) -> None:
    async with AdmissionApi(admission).client("ann") as ann:
        page = await ann.get(f"/v1/jobs/{job_id}/files/page.html")
        deep = await ann.get(f"/v1/jobs/{job_id}/files/src/shop/main.py")
        again = await ann.get(f"/v1/jobs/{job_id}/files/page.html", headers={"If-None-Match": page.headers["etag"]})

    assert (page.content, page.headers["content-type"]) == (PAGE, files.TEXT)
    assert page.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert page.headers.get_list("x-content-type-options") == ["nosniff"]
    assert page.headers["content-disposition"] == "attachment; filename*=UTF-8''page.html"
    assert deep.content == HELD["src/shop/main.py"]
    assert (again.status_code, again.content) == (304, b"")


async def test_what_cannot_be_opened_is_said_plainly(
    admission: MemoryAdmission, job_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await admission.submitted(user="ann")
    async with AdmissionApi(admission).client("ann") as ann:
        none = await ann.get(f"/v1/jobs/{job_id}/files/no/such.txt")
        early = await ann.get(f"/v1/jobs/{other.id}/files")
        monkeypatch.setattr("services.admission.api_files.PACKED_BYTES", 10)
        large = await ann.get(f"/v1/jobs/{job_id}/files")

    refused(none, 404, "not-found")
    refused(early, 409, "no-result")
    assert "more than 10" in refused(large, 409, "not-opened")["detail"]
