"""What an author of a pipeline meets: its parts, its slots, its result, and the rehearsal as an example."""

import asyncio
import io
import os
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate_pipeline import ChecksFailed, Context, NoSlot, Pipeline, PipelineBroken, SlotLost, StageFailed, stage
from headgate_pipeline.loading import load_pipelines
from services.worker.child.messages import MAX_MESSAGE_BYTES, OutputLine, read_by_parent
from services.worker.child.packing import ResultTooLarge, pack
from services.worker.rehearsal import RehearsalInput, pipeline
from tests.fixtures.contexts import KeptLink, a_context


def context(link: KeptLink, workspace: Path, content: Any = None, **details: Any) -> Context:
    return a_context(workspace, content or RehearsalInput(), link=link, **details)


# ── a pipeline ────────────────────────────────────────────────────────────────


def test_a_pipeline_has_1_to_20_stages_each_under_its_own_name() -> None:
    run = pipeline.steps[0].run
    with pytest.raises(PipelineBroken, match="it has 0 stages, and may have 1 to 20"):
        Pipeline("none", ())
    with pytest.raises(PipelineBroken, match="it has 21 stages"):
        Pipeline("many", tuple(stage(f"s{number}")(run) for number in range(21)))
    with pytest.raises(PipelineBroken, match="two of its stages have one name"):
        Pipeline("double", (*pipeline.steps, pipeline.steps[0]))


def test_an_iteration_begins_again_at_a_stage_that_there_is() -> None:
    assert Pipeline("mine", pipeline.steps, again_at="code").stages.again_at == "code"
    with pytest.raises(PipelineBroken, match="it begins again at deploy, which is none of its stages"):
        Pipeline("mine", pipeline.steps, again_at="deploy")


def test_a_stage_has_a_title_for_people() -> None:
    run = pipeline.steps[0].run
    steps = (stage("pull_request")(run), stage("train", title="Training on 8 cards")(run))

    assert [each.title for each in Pipeline("mine", steps).stages.titles] == ["Pull request", "Training on 8 cards"]


@pytest.mark.parametrize("name", ["", "two words", "x" * 49, "a.b"])
def test_a_stage_whose_name_cannot_be_part_of_another_is_refused_when_it_is_written_down(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a stage: use 1 to 48 of"):
        stage(name)


@pytest.mark.parametrize("name", ["", "two words", "x" * 49, "a.b", "ünter"])
def test_a_pipeline_whose_name_cannot_be_part_of_another_is_refused(name: str) -> None:
    with pytest.raises(PipelineBroken, match="a name is 1 to 48 of"):
        Pipeline(name, pipeline.steps)


def test_a_stage_for_no_job_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="max_concurrent of code is 0: use 1 or more"):
        stage("code", max_concurrent=0)


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("services.worker.nothing", "No module named"),
        ("services.worker.domain", "it has no `pipeline"),
        ("services.worker.rehearsal", "named rehearsal too"),
        ("of_an_author", "ZeroDivisionError: division by zero"),
        ("that_ends", "SystemExit: 3"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_refused_by_name_and_the_others_run(
    module: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_an_author.py").write_text("1 / 0")
    (tmp_path / "that_ends.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)

    loaded = load_pipelines(["services.worker.rehearsal", module, "services.worker.build"])

    [reason] = loaded.refused
    assert set(loaded.found) == {"rehearsal", "build"}
    assert reason.startswith(f"{module} is no pipeline: ")
    assert why in reason
    assert "HEADGATE_PIPELINES" in reason


# ── slots ─────────────────────────────────────────────────────────────────────


async def test_slots_are_held_for_the_length_of_the_block(tmp_path: Path) -> None:
    link = KeptLink()
    ctx = context(link, tmp_path)

    async with ctx.slots(providers=("ollama",), groups=("db",)):
        ctx.extend()

    assert link.acts == ["acquire ollama, db", "extend", "give up ollama, db"]


async def test_without_a_slot_the_block_is_not_entered(tmp_path: Path) -> None:
    with pytest.raises(NoSlot, match="no slot of db within 0 s"):
        async with context(KeptLink(grants=False), tmp_path).group("db", wait_s=0):
            raise AssertionError("entered")


async def test_a_lost_slot_breaks_the_block_off(tmp_path: Path) -> None:
    link = KeptLink()
    slots = context(link, tmp_path).group("db")

    async def needs_it() -> None:
        async with slots:
            await asyncio.sleep(60)

    needing = asyncio.create_task(needs_it())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    slots.lose()
    slots.lose()

    with pytest.raises(SlotLost):
        await needing
    assert link.acts[-1] == "give up db"


async def test_a_provider_that_had_enough_is_shut_and_its_slot_asked_for_again(tmp_path: Path) -> None:
    link = KeptLink()

    async with context(link, tmp_path).provider("openai") as slot:
        await slot.shut("openai", for_s=7)

    assert link.acts == ["acquire openai", "shut openai for 7", "acquire openai", "give up openai"]


async def test_only_a_provider_of_the_slot_can_be_shut(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no slot of gemini here, there is one of openai"):
        async with context(KeptLink(), tmp_path).provider("openai") as slot:
            await slot.shut("gemini")


async def test_a_stage_that_is_cancelled_inside_a_block_is_cancelled_and_not_merely_robbed(tmp_path: Path) -> None:
    slots = context(KeptLink(), tmp_path).group("db")

    async def needs_it() -> None:
        async with slots:
            await asyncio.sleep(60)

    needing = asyncio.create_task(needs_it())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    slots.lose()
    needing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await needing


# ── commands ──────────────────────────────────────────────────────────────────


async def test_a_command_has_no_network_and_no_environment_unless_told(tmp_path: Path) -> None:
    link = KeptLink()

    await context(link, tmp_path).run("python", tmp_path / "x.py")

    command = link.commands[0]
    assert command.argv == ("python", str(tmp_path / "x.py"))
    assert (command.network, dict(command.environ), command.cwd) == (False, {}, ".")
    assert command.timeout_s == 900


# ── the rehearsal ─────────────────────────────────────────────────────────────


def test_an_input_may_say_nothing_and_may_say_more_than_the_rehearsal_knows() -> None:
    assert pipeline.read_input("{}") == pipeline.read_input('{"topic": "a URL shortener"}') == RehearsalInput()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"stages": {"deploy": 1}}', "stages.deploy"),
        ('{"stages": {"code": -1}}', "stages.code"),
        ('{"stages": {"code": 1e999}}', "stages.code"),
        ('{"fail_at": "nowhere"}', "fail_at"),
        ('{"failing_cycles": "many"}', "failing_cycles"),
        ('{"log_lines": 10000000}', "log_lines"),
        ('{"provider": "a b"}', "provider"),
        ("[]", "input"),
        ("nonsense", "input"),
    ],
)
def test_a_wrong_input_is_refused_by_the_name_of_its_field(text: str, field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field}"):
        pipeline.read_input(text)


async def test_the_rehearsal_says_as_much_as_it_is_asked_for_while_it_holds_its_provider(tmp_path: Path) -> None:
    link = KeptLink()
    asked = RehearsalInput(stages={"code": 0.0}, log_lines=2, provider="ollama")

    await pipeline.step("code").run(context(link, tmp_path, content=asked))

    assert link.lines == ["line 1 of 2 of iteration 1", "line 2 of 2 of iteration 1"]
    assert link.acts == ["acquire ollama", "give up ollama"]
    assert link.told == [(0.5, "1 of 2 lines"), (1.0, "2 of 2 lines")]


@pytest.mark.parametrize(("iteration", "passes"), [(1, False), (2, False), (3, True)])
async def test_the_first_iterations_fail_and_then_it_passes(tmp_path: Path, iteration: int, *, passes: bool) -> None:
    asked = RehearsalInput(stages={"checks": 0.0}, failing_cycles=2)
    ctx = context(KeptLink(), tmp_path, asked, at="checks", iteration=iteration)

    if passes:
        await pipeline.step("checks").run(ctx)
        assert (ctx.result / "rehearsal.json").is_file()
    else:
        with pytest.raises(ChecksFailed):
            await pipeline.step("checks").run(ctx)


async def test_it_breaks_where_it_is_asked_to_and_nowhere_else(tmp_path: Path) -> None:
    asked = RehearsalInput(stages={"scaffold": 0.0, "deps": 0.0}, fail_at="deps")

    await pipeline.step("scaffold").run(context(KeptLink(), tmp_path, asked, at="scaffold"))
    with pytest.raises(StageFailed):
        await pipeline.step("deps").run(context(KeptLink(), tmp_path, asked, at="deps"))


# ── results ───────────────────────────────────────────────────────────────────


def test_a_result_holds_plain_files_and_folders_and_nothing_of_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "run").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "bin" / "run").chmod(0o700)
    (folder / "read.me").write_text("hello", encoding="utf-8")
    (folder / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")

    size = pack(folder, tmp_path / "out.tar.gz", max_bytes=100_000)

    content = (tmp_path / "out.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        seen = {member.name: (member.isfile(), member.mode, member.uid, member.mtime) for member in archive}
    assert size == len(content)
    assert seen == {
        "bin": (False, 0o755, 0, 0),
        "bin/run": (True, 0o755, 0, 0),
        "read.me": (True, 0o644, 0, 0),
    }


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("a", encoding="utf-8")
        pack(tmp_path / name, tmp_path / f"{name}.tar.gz", max_bytes=100_000)

    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_a_job_that_made_nothing_has_no_result(tmp_path: Path) -> None:
    assert pack(tmp_path / "result", tmp_path / "out.tar.gz", max_bytes=1000) is None


def test_a_result_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    (tmp_path / "result" / "noise").write_bytes(os.urandom(5000))

    with pytest.raises(ResultTooLarge, match="1000 bytes"):
        pack(tmp_path / "result", tmp_path / "out.tar.gz", max_bytes=1000)


# ── what a process may say ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"{}",
        b'{"kind": "begin"}',
        b'{"kind": "line", "line": 7}',
        b'{"kind": "line", "line": "x", "job_id": "another"}',
        b'{"kind": "acquire", "lease": 0, "groups": ["db"]}',
        b'{"kind": "acquire", "lease": 1, "groups": ["llm:ollama"]}',
        b'{"kind": "acquire", "lease": 1, "groups": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]}',
        b'{"kind": "ended", "outcome": {"kind": "failed", "summary": "x", "fault": "limit"}}',
        b'{"kind": "ended", "outcome": {"kind": "failed", "summary": "x", "job_id": "another"}}',
        b'{"kind": "ended", "outcome": {"kind": "failed", "summary": "%s"}}' % (b"x" * 501),
        b'{"kind": "ended", "outcome": {"kind": "failed", "summary": "x", "again_after_s": -1}}',
        b'{"kind": "ended", "outcome": {"kind": "asks", "question": "Why?"}}',
        b'{"kind": "packed", "size": -1}',
    ],
)
def test_what_is_none_of_the_words_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="validation error"):
        read_by_parent(line)


def test_the_longest_log_line_fits_into_a_message() -> None:
    assert len(OutputLine(line="\x00" * 8192).encoded()) < MAX_MESSAGE_BYTES


def test_a_context_is_what_its_attempt_is(tmp_path: Path) -> None:
    ctx = context(KeptLink(), tmp_path, content=SimpleNamespace(x=1))

    ctx.log("one\ntwo")
    ctx.log("")

    assert ctx.result == tmp_path / "result"
    assert ctx.input.x == 1
    assert ctx._link.lines == ["one", "two", ""]  # type: ignore[attr-defined]
