"""The index against a plain scan of the log: whatever is looked for, and whatever becomes of the file meanwhile."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from headgate_contracts import Event, Job, Priority, Status, Writer
from headgate_contracts.envelope import utc
from headgate_contracts.events import ContentErased, JobDispatched
from libs.eventlog import Record
from libs.eventlog.decoding import job_in
from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Health
from services.admission import indexing
from services.admission.events import Actor
from services.admission.figures import ChartSpan, stats_of
from services.admission.finding import Facet, JobFilter, Sort
from services.admission.indexing import Indexing, index_file
from services.admission.outcomes import Accepted
from tests.fixtures.memory_admission import EPOCH, MemoryAdmission

WORDS = ("shop", "shortener", "blog", "list", "rate", "limiter", "éclair", "OR", "AND", "NEAR", "title:", '"', "*")
SECRET = "xqzvwkjhy"


@pytest.fixture
async def admission() -> AsyncIterator[MemoryAdmission]:
    admission = MemoryAdmission(submissions={"per_minute": 100_000}, queue={"cap": 100_000, "user_share": 100_000})
    await admission.fold()
    yield admission
    await admission.index.close()


async def filled(admission: MemoryAdmission, dice: random.Random, *, jobs: int) -> None:
    """So many jobs of three users, some of which went on or ended."""
    for number in range(jobs):
        job = await admission.submitted(
            user=dice.choice(("u1", "u2", "u3")),
            project_id=dice.choice(("shop", "blog")),
            title=" ".join(dice.choices(WORDS, k=3)),
            priority=dice.choice([Priority.NORMAL, Priority.LOW]).value,
            labels={"team": dice.choice("ab")},
        )
        await admission.clock.advance_ms(1000)
        if number % 3 == 0:
            await admission.go_on(job, *dice.choice([("cancelled",), ("dispatched", "started"), ("dispatched",)]))


async def scanned(admission: MemoryAdmission) -> list[Job]:
    """Every job, as the log says."""
    ids = {str(record.event.data.job_id) for record in admission.server.records([">"], after=0) if _of_job(record)}  # type: ignore[union-attr]
    found = [job_in(await admission.log.read(job_id)) for job_id in ids]
    return [job for job in found if job is not None]


def _of_job(record: object) -> bool:
    return hasattr(getattr(getattr(record, "event", None), "data", None), "job_id")


async def expected(admission: MemoryAdmission, wanted: JobFilter, sort: Sort) -> list[Job]:
    titles = await admission.titles.of(sorted(job.id for job in await scanned(admission)))
    jobs = [job for job in await scanned(admission) if _takes(wanted, job, titles.get(job.id, ""))]
    keys: dict[Sort, Callable[[Job], tuple[int, int]]] = {
        Sort.NEWEST: lambda job: (0, -job.first_seq),
        Sort.OLDEST: lambda job: (0, job.first_seq),
        Sort.UPDATED: lambda job: (-round(job.updated_at.timestamp() * 1000), -job.first_seq),
        Sort.PRIORITY: lambda job: (job.priority.class_number, job.first_seq),
    }
    return sorted(jobs, key=keys[sort])


def _takes(wanted: JobFilter, job: Job, title: str) -> bool:
    asked = job.submission
    labels = {f"{name}={value}" for name, value in asked.labels.items()}
    return (
        wanted.user in (None, job.user_id)
        and (not wanted.ids or job.id in wanted.ids)
        and (not wanted.statuses or job.status in wanted.statuses)
        and wanted.project in (None, job.project_id)
        and wanted.pipeline in (None, asked.pipeline)
        and wanted.pool in (None, asked.pool)
        and (wanted.label is None or wanted.label in labels)
        and (wanted.since is None or job.created_at >= wanted.since)
        and (wanted.until is None or job.created_at < wanted.until)
        and all(_has(word, [title, job.id, *labels]) for word in wanted.text.split() if _tokens(word))
    )


def _tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("é", "e"))


def _has(word: str, texts: list[str]) -> bool:
    """The word's parts one after another in a text, the last one perhaps unfinished."""
    *whole, last = _tokens(word)
    runs = (tokens[at : at + len(whole) + 1] for tokens in map(_tokens, texts) for at in range(len(tokens)))
    return any(len(run) == len(whole) + 1 and run[:-1] == whole and run[-1].startswith(last) for run in runs)


def filters(dice: random.Random, jobs: list[Job]) -> Iterator[tuple[JobFilter, Sort]]:
    moments = [job.created_at for job in jobs]
    texts = ("", "", "", "sho", "shop lim", "ECLAIR", '"', "OR", "title:x", "team=a", "NEAR(", "* -", jobs[0].id)
    while True:
        yield (
            JobFilter(
                user=dice.choice((None, "u1", "u2", "nobody")),
                ids=frozenset(dice.choice(((), (), (*(job.id for job in dice.sample(jobs, k=9)), "nobody")))),
                text=dice.choice(texts),
                statuses=frozenset(dice.sample(list(Status), k=dice.choice((0, 0, 2, 5)))),
                project=dice.choice((None, None, "shop")),
                pipeline=dice.choice((None, None, "build", "other")),
                pool=dice.choice((None, None, "default")),
                label=dice.choice((None, None, "team=a", "team=x")),
                since=dice.choice((None, None, dice.choice(moments))),
                until=dice.choice((None, None, dice.choice(moments) + timedelta(milliseconds=1))),
            ),
            dice.choice(list(Sort)),
        )


async def listed(admission: MemoryAdmission, wanted: JobFilter, sort: Sort, *, count: int) -> list[Job]:
    """Every page."""
    found, before = list[Job](), None
    while True:
        page = await admission.listing.page(wanted, sort, before=before, count=count)
        assert page is not None
        assert page.progress.is_whole
        found += page.jobs
        before = page.before
        if before is None:
            return found


@pytest.mark.parametrize("seed", range(4))
async def test_a_list_is_what_a_scan_of_the_log_finds(admission: MemoryAdmission, seed: int) -> None:
    dice = random.Random(seed)
    await filled(admission, dice, jobs=40)
    asked = filters(dice, await scanned(admission))

    for _ in range(40):
        wanted, sort = next(asked)
        if wanted.text.strip() and not _tokens(wanted.text):
            continue  # what has no word finds nothing
        found = await listed(admission, wanted, sort, count=dice.choice((1, 7, 50)))
        assert found == await expected(admission, wanted, sort), (wanted, sort)


NAMES: dict[Facet, Callable[[Job], list[str]]] = {
    Facet.STATUS: lambda job: [job.status.value],
    Facet.PROJECT: lambda job: [job.submission.project_name or job.project_id],
    Facet.PIPELINE: lambda job: [job.submission.pipeline],
    Facet.POOL: lambda job: [job.submission.pool],
    Facet.LABEL: lambda job: [f"{name}={value}" for name, value in job.submission.labels.items()],
    Facet.USER: lambda job: [job.user_id],
}


async def test_jobs_are_counted_as_a_scan_of_the_log_counts_them(admission: MemoryAdmission) -> None:
    dice = random.Random(3)
    await filled(admission, dice, jobs=60)
    await admission.submitted(user="u1", project_id="a project with spaces")
    wanted = filters(dice, await scanned(admission))

    for _ in range(60):
        asked, _sort = next(wanted)
        if asked.text.strip() and not _tokens(asked.text):
            continue  # what has no word finds nothing
        counted = await admission.listing.counts(asked, list(Facet))
        found = await expected(admission, asked, Sort.NEWEST)

        assert counted is not None
        assert counted[1] == {facet: Counter(name for job in found for name in NAMES[facet](job)) for facet in Facet}


async def test_charts_are_what_a_scan_of_the_log_says(admission: MemoryAdmission) -> None:
    began = utc(admission.clock.now_ms())
    await filled(admission, random.Random(5), jobs=80)
    span = ChartSpan.between(began, utc(admission.clock.now_ms()), step_s=60)

    counted = await admission.listing.ask(lambda reader: reader.counted(span))
    assert counted is not None
    lines = {
        (line.name, line.of): line.values
        for line in stats_of(span, counted[1], {}, now_ms=admission.clock.now_ms()).lines
    }

    histories = [await admission.log.read(job.id) for job in await scanned(admission)]
    for n, began_at in enumerate(span.times()):
        until = began_at + timedelta(minutes=span.step)
        then = [job for records in histories if (job := _as_of(records, until)) is not None]
        earlier = [job for records in histories if (job := _as_of(records, began_at)) is not None]
        assert lines["queued", "default"][n] == sum(job.status is Status.QUEUED for job in then)
        assert lines["running", "default"][n] == sum(job.status.is_running for job in then)
        assert lines["started", "default"][n] == sum(bool(job.attempt) for job in then) - sum(
            bool(job.attempt) for job in earlier
        )
        ended = [sum(job.status is Status.CANCELLED for job in jobs) for jobs in (earlier, then)]
        assert lines["cancelled", "default"][n] == ended[1] - ended[0]
    waits = sorted(_waited(records) for records in histories if any(_starts(record) for record in records))
    whole = ChartSpan(span.start, 10_000, 1)
    counted = await admission.listing.ask(lambda reader: reader.counted(whole))
    assert counted is not None
    assert [ms for _, ms in counted[1].waits] == waits


def _as_of(records: list[Record], until: datetime) -> Job | None:
    past = [record for record in records if record.at < until]
    return job_in(past) if past else None


def _starts(record: Record) -> bool:
    return isinstance(record.event, Event) and isinstance(record.event.data, JobDispatched)


def _waited(records: list[Record]) -> int:
    start = next(record for record in records if _starts(record))
    return round((start.at - records[0].at).total_seconds() * 1000)


@pytest.mark.parametrize("text", ['"', "* -", "()", "%_", "'; DROP TABLE jobs; --", "a" * 200, "title : x", "^a + b"])
async def test_no_text_becomes_syntax(admission: MemoryAdmission, text: str) -> None:
    job = await admission.submitted(title="a shop")

    await listed(admission, JobFilter(user="u1", text=text), Sort.NEWEST, count=5)

    assert [each.id for each in await listed(admission, JobFilter(user="u1", text="shop"), Sort.NEWEST, count=5)] == [
        job.id
    ]


# ── the file ──────────────────────────────────────────────────────────────────


def _deleted(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def _copied_back(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copyfile(path, copy)
    copy.replace(path)


def _torn(path: Path) -> None:
    _deleted(path)
    path.write_bytes(b"no database at all" * 1000)


def _of_another_log(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value='01JB00000000000000000000XX' WHERE name='epoch'")
    db.close()


@pytest.mark.parametrize("harm", [_deleted, _copied_back, _torn, _of_another_log], ids=lambda harm: harm.__name__)
async def test_a_strange_file_is_made_anew(
    admission: MemoryAdmission, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = tmp_path / "jobs.sqlite3"
    await filled(admission, random.Random(1), jobs=9)
    first = _indexing(admission, path)
    await first.open()
    await _folded(admission, first)
    await first.close()

    harm(path)
    second = _indexing(admission, path)
    assert await second.open() == 0
    await _folded(admission, second)

    page = await second.page(JobFilter(user=None), Sort.NEWEST, before=None, count=50, head=0)
    assert page is not None
    assert list(page.jobs) == await expected(admission, JobFilter(user=None), Sort.NEWEST)
    await second.close()


async def test_a_sound_file_is_gone_on_from(admission: MemoryAdmission, tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite3"
    await filled(admission, random.Random(1), jobs=9)
    first = _indexing(admission, path)
    await first.open()
    await _folded(admission, first)
    await first.close()

    second = _indexing(admission, path)

    assert await second.open() == first.progress.applied
    await second.close()


async def test_under_load_a_file_that_is_taken_away_or_put_back_comes_right(
    admission: MemoryAdmission, tmp_path: Path
) -> None:
    path, dice = tmp_path / "jobs.sqlite3", random.Random(7)
    index = _indexing(admission, path)
    running = asyncio.create_task(index.run(asyncio.Event()))
    for harm in (_deleted, _copied_back, _torn, _deleted):
        await filled(admission, dice, jobs=6)
        with suppress(FileNotFoundError):
            harm(path)
        await index.page(JobFilter(user=None), Sort.NEWEST, before=None, count=1, head=0)
        await admission.clock.advance_ms(2000)
    head, whole = (await admission.log.mark()).seq, await expected(admission, JobFilter(user=None), Sort.NEWEST)

    async def right() -> bool:
        await admission.clock.advance_ms(2000)
        page = await index.page(JobFilter(user=None), Sort.NEWEST, before=None, count=100, head=head)
        return page is not None and list(page.jobs) == whole

    await eventually(right)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await index.close()


async def test_an_erased_user_leaves_no_byte_in_any_replicas_file(admission: MemoryAdmission, tmp_path: Path) -> None:
    replicas = [_indexing(admission, tmp_path / f"jobs-{number}.sqlite3") for number in range(2)]
    for replica in replicas:
        await replica.open()
    for number in range(300):  # so many that the words are in several pieces
        await admission.submitted(user="u1", title=f"{SECRET}{number % 7} the merger")
        await admission.submitted(user="u2", title="a shop")
        if number % 50 == 0:
            for replica in replicas:
                await _folded(admission, replica)
    for replica in replicas:
        await _folded(admission, replica)
    assert all(SECRET.encode() in _bytes(tmp_path, number) for number in range(2))

    act = ContentErased(by="olga", reason="", user_id="u1")
    await admission.log.append(
        Event(admission.ids.event_id(), Writer.ADMISSION, utc(admission.clock.now_ms()), act), after=None
    )
    for replica in replicas:
        await _folded(admission, replica)

    for number, replica in enumerate(replicas):
        left = _bytes(tmp_path, number)
        assert SECRET.encode() not in left
        assert SECRET[1:].encode() not in left
        assert b"merger" not in left
        page = await replica.page(JobFilter(user=None, text="shop"), Sort.NEWEST, before=None, count=1, head=0)
        assert page is not None
        assert page.jobs
        await replica.close()


async def test_a_file_whose_writer_died_in_an_erasure_is_tidied_when_it_is_opened(
    admission: MemoryAdmission, tmp_path: Path
) -> None:
    path = tmp_path / "jobs-0.sqlite3"
    index = _indexing(admission, path)
    await admission.submitted(user="u1", title=SECRET)
    await index.open()
    await _folded(admission, index)
    await index.close()
    with sqlite3.connect(path) as db:  # as one is left that was killed before the bytes were gone
        db.execute("UPDATE words SET title=''")
        db.execute("INSERT INTO meta VALUES('untidy', '1')")
    db.close()

    again = _indexing(admission, path)
    assert await again.open() > 0
    await again.close()

    assert SECRET.encode() not in _bytes(tmp_path, 0)


async def test_what_was_just_submitted_is_in_the_next_list(admission: MemoryAdmission) -> None:
    for _ in range(3):
        job = await admission.submitted(title="now")
        assert (await listed(admission, JobFilter(user="u1"), Sort.NEWEST, count=1))[0].id == job.id


async def test_who_asks_ends_the_rest_between_two_transactions(
    admission: MemoryAdmission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "REST_MS", 600_000)
    monkeypatch.setattr(indexing, "LISTED_WITHIN_MS", 600_000)
    index = _indexing(admission, tmp_path / "jobs.sqlite3")
    running = asyncio.create_task(index.run(asyncio.Event()))

    for _ in range(3):
        job = await admission.submitted()
        head = (await admission.log.mark()).seq
        page = await index.page(JobFilter(user="u1"), Sort.NEWEST, before=None, count=1, head=head)
        assert page is not None
        assert [each.id for each in page.jobs] == [job.id]

    running.cancel()
    await asyncio.wait([running])
    await index.close()


async def test_two_replicas_of_a_machine_have_a_file_each(tmp_path: Path) -> None:
    first, release_first = index_file(tmp_path, Health())
    second, release_second = index_file(tmp_path, Health())
    await release_first()
    third, release_third = index_file(tmp_path, Health())

    assert first != second
    assert third == first
    await release_second()
    await release_third()


async def test_a_folder_that_cannot_be_used_gives_way_to_a_passing_one(tmp_path: Path) -> None:
    health, folder = Health(), tmp_path / "index"
    folder.write_text("no folder")

    file, release = index_file(folder, health)

    assert file.parent.is_dir()
    assert file.parent != folder
    assert "File exists" in health.notes[0]
    await release()
    assert not file.parent.exists()


async def test_jobs_that_the_log_has_forgotten_are_forgotten(admission: MemoryAdmission) -> None:
    old = await admission.submitted()
    cancelled = await admission.changing.cancel(old, act=Actor("u1"))
    assert isinstance(cancelled, Accepted)
    young = await admission.submitted()
    await listed(admission, JobFilter(user="u1"), Sort.NEWEST, count=5)

    await admission.index.forget_before(young.first_seq)

    assert [job.id for job in await listed(admission, JobFilter(user="u1"), Sort.NEWEST, count=5)] == [young.id]


def _indexing(admission: MemoryAdmission, path: Path) -> Indexing:
    return Indexing(path, admission.log, admission.titles, epoch=EPOCH, clock=admission.clock)


async def _folded(admission: MemoryAdmission, index: Indexing) -> None:
    records = admission.server.records([">"], after=index.progress.applied)
    if records:
        await index.take(records, last=records[-1].seq)


def _bytes(folder: Path, number: int) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob(f"jobs-{number}.sqlite3*"))
