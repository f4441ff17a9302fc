"""What is kept beside the log, and its end: buckets and the lines of jobs, in memory and on JetStream."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from nats.aio.client import Client

from headgate_contracts import InvalidToken
from headgate_contracts.commands import JobProgress, LogLine, logs_subject
from libs.eventlog import LogFull, LogRefused, migrate
from libs.eventlog.api import subjects_of
from libs.eventlog.buckets import SMALL_BYTES, JetStreamInputs, JetStreamObjects, MemoryBucket
from libs.eventlog.lines import JetStreamLines, Line, MemoryLines
from libs.eventlog.pipelines import AnnouncedPipeline, JetStreamPipelines, MemoryPipelines
from libs.eventlog.progress import JetStreamProgress, MemoryProgress
from libs.eventlog.streams import INPUTS, RESULTS
from libs.eventlog.titles import JetStreamTitles, MemoryTitles
from libs.runtime.eventually import eventually
from tests.fixtures.logs import connected, new_epoch, settings

LARGE = bytes(range(256)) * 2_000  # four chunks
STREAMS = {RESULTS: f"OBJ_{RESULTS}", INPUTS: f"KV_{INPUTS}"}


@pytest_asyncio.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    async with connected(nats_url) as client:
        await migrate(client, settings(), new_epoch=new_epoch())
        yield client


@pytest.fixture(params=["memory", "one"])
def objects(request: pytest.FixtureRequest) -> JetStreamObjects | MemoryBucket:
    return MemoryBucket() if request.param == "memory" else JetStreamObjects(request.getfixturevalue("nc"), RESULTS)


@pytest.fixture(params=["memory", "one"])
def inputs(request: pytest.FixtureRequest) -> JetStreamInputs | MemoryBucket:
    return MemoryBucket() if request.param == "memory" else JetStreamInputs(request.getfixturevalue("nc"))


@pytest.fixture(params=["memory", "one"])
def titles(request: pytest.FixtureRequest) -> JetStreamTitles | MemoryTitles:
    return MemoryTitles() if request.param == "memory" else JetStreamTitles(request.getfixturevalue("nc"))


@pytest.fixture(params=["memory", "one"])
def progress(request: pytest.FixtureRequest) -> JetStreamProgress | MemoryProgress:
    return MemoryProgress() if request.param == "memory" else JetStreamProgress(request.getfixturevalue("nc"))


@pytest.fixture(params=["memory", "one"])
def pipelines(request: pytest.FixtureRequest) -> JetStreamPipelines | MemoryPipelines:
    return MemoryPipelines() if request.param == "memory" else JetStreamPipelines(request.getfixturevalue("nc"))


async def streamed(objects: JetStreamObjects | MemoryBucket, name: str, start: int, end: int | None) -> bytes:
    found = await objects.find(name)
    assert found is not None
    return b"".join([chunk async for chunk in objects.stream(found, start=start, end=end)])


@pytest.mark.parametrize("content", [b"", b"a result", bytes(SMALL_BYTES), bytes(SMALL_BYTES + 1), LARGE], ids=len)
async def test_an_object_is_found_with_its_size_and_digest(
    objects: JetStreamObjects | MemoryBucket, content: bytes
) -> None:
    await objects.put("job-1", content)

    found = await objects.find("job-1")

    assert found is not None
    assert (found.name, found.size, found.digest) == ("job-1", len(content), hashlib.sha256(content).hexdigest())
    assert await objects.get("job-1") == content


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, None), (0, 1), (131_071, 131_073), (131_072, 262_144), (500_000, None), (511_999, 512_000), (0, 512_000)],
)
async def test_a_part_of_an_object_is_streamed(
    objects: JetStreamObjects | MemoryBucket, start: int, end: int | None
) -> None:
    await objects.put("job-1", LARGE)

    assert await streamed(objects, "job-1", start, end) == LARGE[start:end]


async def test_what_was_deleted_is_gone_and_may_be_deleted_again(objects: JetStreamObjects | MemoryBucket) -> None:
    await objects.put("job-1", LARGE)
    await objects.put("job-2", b"stays")

    await objects.delete("job-1")
    await objects.delete("job-1")

    assert (await objects.find("job-1"), await objects.get("job-1")) == (None, None)
    assert await objects.get("job-2") == b"stays"
    assert await objects.names() == ["job-2"]


async def test_a_name_can_be_used_again(objects: JetStreamObjects | MemoryBucket) -> None:
    await objects.put("job-1", b"before")
    await objects.delete("job-1")
    await objects.put("job-1", b"after")

    assert await objects.get("job-1") == b"after"


async def test_names_are_told_by_their_beginning(objects: JetStreamObjects | MemoryBucket) -> None:
    for name in ("job-1-1-2", "job-1-1-1", "job-10-1-1", "other"):
        await objects.put(name, b"")

    assert await objects.names("job-1-") == ["job-1-1-1", "job-1-1-2"]
    assert await objects.names() == ["job-1-1-1", "job-1-1-2", "job-10-1-1", "other"]
    assert await objects.names("nobody") == []


async def test_an_object_that_is_deleted_while_it_is_read_does_not_end_as_if_it_were_whole(
    objects: JetStreamObjects | MemoryBucket,
) -> None:
    await objects.put("job-1", LARGE)
    found = await objects.find("job-1")
    assert found is not None
    await objects.delete("job-1")

    with pytest.raises(LogRefused):
        _ = [chunk async for chunk in objects.stream(found)]


async def test_nothing_of_a_deleted_object_stays_in_the_stream(nc: Client) -> None:
    objects = JetStreamObjects(nc, RESULTS)
    await objects.put("job-1", LARGE)

    await objects.delete("job-1")

    assert await subjects_of(nc, STREAMS[RESULTS], ">") == []


async def test_a_small_object_is_one_message(nc: Client) -> None:
    objects = JetStreamObjects(nc, RESULTS)

    await objects.put("job-1", bytes(SMALL_BYTES))

    assert len(await subjects_of(nc, STREAMS[RESULTS], ">")) == 1


@pytest.mark.parametrize("later", [LARGE[1:], b"small"], ids=["large", "small"])
async def test_nothing_stays_of_what_another_took_the_place_of(nc: Client, later: bytes) -> None:
    objects = JetStreamObjects(nc, RESULTS)
    await objects.put("job-1", LARGE)

    await objects.put("job-1", later, before=await objects.find("job-1"))

    assert await objects.get("job-1") == later
    assert len(await subjects_of(nc, STREAMS[RESULTS], ">")) == (1 if later == b"small" else 2)


async def test_an_object_whose_chunks_find_no_room_leaves_none(nc: Client) -> None:
    full = settings(results_max_bytes=256 * 1024)
    await migrate(nc, full, new_epoch=new_epoch())
    objects = JetStreamObjects(nc, RESULTS)

    with pytest.raises(LogFull):
        await objects.put("job-1", LARGE)

    assert await subjects_of(nc, STREAMS[RESULTS], ">") == []


async def test_a_name_that_nobody_could_have_given_hides_no_other(nc: Client) -> None:
    """A user that may write in a bucket may write anything there, and others list it."""
    objects = JetStreamObjects(nc, RESULTS)
    await objects.put("job-1", b"a result")
    no_token = base64.urlsafe_b64encode(b"a b-1-1").decode()
    for strange in ("%%%", "_w==", no_token):
        await nc.jetstream().publish(f"$O.{RESULTS}.M.{strange}", b"{}")

    assert await objects.names() == ["job-1"]


async def test_inputs_are_listed_and_purged_without_a_marker(inputs: JetStreamInputs | MemoryBucket) -> None:
    for name in ("job-1-abc", "job-2-abc"):
        await inputs.put(name, b"{}")

    for _ in range(2):
        await inputs.purge("job-1-abc")

    assert (await inputs.names(), await inputs.get("job-1-abc")) == (["job-2-abc"], None)


async def test_an_input_that_is_put_anew_stays_where_the_one_before_is_purged(
    inputs: JetStreamInputs | MemoryBucket,
) -> None:
    await inputs.put("job-1-abc", b"{}")
    seen = await inputs.revision()
    await inputs.put("job-1-abc", b"{}")
    anew = await inputs.revision()

    await inputs.purge("job-1-abc", through=seen)
    left = await inputs.get("job-1-abc")
    await inputs.purge("job-1-abc", through=anew)

    assert (seen < anew, left, await inputs.names()) == (True, b"{}", [])


async def test_an_input_is_erased(inputs: JetStreamInputs | MemoryBucket) -> None:
    await inputs.put("job-1-abc", b"{}")
    await inputs.put("job-2-abc", b"{}")

    for _ in range(2):
        await inputs.delete("job-1-abc")

    assert (await inputs.get("job-1-abc"), await inputs.get("job-2-abc")) == (None, b"{}")


@pytest.mark.parametrize("name", ["", "a.b", "a*", "a>", "a b"])
async def test_no_name_reaches_beyond_its_bucket(objects: JetStreamObjects | MemoryBucket, name: str) -> None:
    with pytest.raises(InvalidToken):
        await objects.delete(name)


# ── lines ─────────────────────────────────────────────────────────────────────


def line(job_id: str, text: str) -> LogLine:
    return LogLine(job_id=job_id, attempt=1, stage="code", line=text, ts=datetime(2026, 1, 1, tzinfo=UTC))


async def written(nc: Client, job_id: str, count: int) -> None:
    for number in range(1, count + 1):
        headers = {"Nats-Msg-Id": f"{job_id}:1:{number}"}
        body = line(job_id, f"line {number}").model_dump_json().encode()
        await nc.request(logs_subject(job_id), body, headers=headers, timeout=30)


async def lines_of(lines: JetStreamLines | MemoryLines, job_id: str) -> list[Line]:
    return [each async for page in lines.of(job_id) for each in page.lines]


@pytest.fixture(params=["memory", "one"])
def server(request: pytest.FixtureRequest) -> Client | None:
    return None if request.param == "memory" else request.getfixturevalue("nc")


@pytest_asyncio.fixture
async def lines(server: Client | None) -> JetStreamLines | MemoryLines:
    """Three of each of two jobs."""
    if server is not None:
        for job_id in ("job-1", "job-2"):
            await written(server, job_id, 3)
        return JetStreamLines(server)
    memory = MemoryLines()
    for job_id in ("job-1", "job-2"):
        for number in range(1, 4):
            memory.add(line(job_id, f"line {number}"), number=number)
    return memory


async def test_the_lines_of_a_job_are_read_in_order(lines: JetStreamLines | MemoryLines) -> None:
    found = await lines_of(lines, "job-1")

    assert [(each.number, each.line.line) for each in found] == [(1, "line 1"), (2, "line 2"), (3, "line 3")]
    assert await lines_of(lines, "nobody") == []


async def test_a_job_is_read_on_from_a_line(lines: JetStreamLines | MemoryLines) -> None:
    first, *rest = await lines_of(lines, "job-2")

    pages = [page async for page in lines.of("job-2", after=first.seq)]

    assert [each for page in pages for each in page.lines] == rest
    assert pages[-1].seq == await lines.last("job-2") == rest[-1].seq
    assert [page async for page in lines.of("job-2", after=rest[-1].seq)] == []
    assert await lines.last("nobody") == 0


async def test_the_lines_of_one_job_are_erased(lines: JetStreamLines | MemoryLines) -> None:
    for _ in range(2):
        await lines.erase("job-1")

    assert await lines_of(lines, "job-1") == []
    assert len(await lines_of(lines, "job-2")) == 3


async def test_what_is_no_line_is_passed_over(nc: Client) -> None:
    await nc.request(logs_subject("job-1"), b"{}", timeout=30)
    await nc.request(logs_subject("job-1"), line("job-1", "a line").model_dump_json().encode(), timeout=30)

    [page] = [page async for page in JetStreamLines(nc).of("job-1")]

    [found] = page.lines
    assert (found.seq, found.number, found.line.line) == (2, None, "a line")


async def test_a_page_reaches_past_what_cannot_be_read(nc: Client) -> None:
    """Or a reader up to the newest line would look for it for ever."""
    await nc.request(logs_subject("job-1"), b"{}", timeout=30)
    lines = JetStreamLines(nc)

    [page] = [page async for page in lines.of("job-1")]

    assert (page.lines, page.seq) == ((), await lines.last("job-1"))


async def test_titles_are_told_one_by_one_and_many_at_once(titles: JetStreamTitles | MemoryTitles) -> None:
    for number in range(3):
        await titles.write(f"job-{number}", f"Titel № {number}")
    await titles.write("job-1", "another")
    await titles.delete("job-2")

    assert await titles.of(["job-0"]) == {"job-0": "Titel № 0"}
    assert await titles.of(["job-2"]) == await titles.of(["nobodys"]) == await titles.of([]) == {}
    assert await titles.of(["nobodys", "job-2"]) == {}
    many = await titles.of([f"job-{number}" for number in range(1200)])
    assert many == {"job-0": "Titel № 0", "job-1": "another"}


async def test_a_pipeline_is_announced_once_for_each_pool_until_it_is_removed(
    pipelines: JetStreamPipelines | MemoryPipelines,
) -> None:
    first = AnnouncedPipeline(name="greeting", pool="default", input_schema={"type": "object"})
    other = AnnouncedPipeline(name="greeting", pool="a-pool", version="2")
    assert [await pipelines.announce(each) for each in (first, other, first)] == [True, True, False]
    revision = await pipelines.revision()

    assert await pipelines.all() == (other, first)
    assert await pipelines.remove("default", "greeting")
    assert not await pipelines.remove("default", "greeting")

    assert await pipelines.revision() > revision
    assert await pipelines.all() == (other,)
    assert await pipelines.announce(first)
    assert await pipelines.all() == (other, first)


def how_far(job_id: str, fraction: float) -> JobProgress:
    return JobProgress(job_id=job_id, user_id="ann", attempt=1, stage="code", fraction=fraction, message="on its way")


async def test_the_last_word_of_a_job_about_its_progress_is_kept_until_it_is_erased(
    progress: JetStreamProgress | MemoryProgress,
) -> None:
    for said in (how_far("job-1", 0.1), how_far("job-1", 0.2), how_far("job-2", 0.3), how_far("job-3", 0.4)):
        await progress.report(said)

    async def all_there() -> bool:
        return len(await progress.of(["job-1", "job-2", "job-3", "job-4"])) == 3

    await eventually(all_there)
    many, one = await progress.of(["job-1", "job-2", "job-4"]), await progress.of(["job-3"])
    await progress.delete("job-1")

    assert {job_id: said.fraction for job_id, said in (many | one).items()} == {
        "job-1": 0.2,
        "job-2": 0.3,
        "job-3": 0.4,
    }
    assert await progress.of(["job-1"]) == {}
    assert await progress.of([]) == {}
