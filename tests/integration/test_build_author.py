"""A conversation with a provider that misbehaves over real HTTP: what becomes of the job's files, slots and time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate_contracts.vocabulary import Fault
from headgate_pipeline import StageFailed
from libs.runtime.eventually import eventually
from services.worker.build.asked import BuildInput, Names
from services.worker.build.author import MAX_COMPLAINTS, PAUSES_S, Draft, ModelAuthor
from services.worker.build.chat import CallBounds
from tests.fixtures.contexts import KeptLink, a_context
from tests.fixtures.providers import Deed, Provider, a_provider, drops, files, floods, is_silent, says, status

NAMES = Names("shop", "A shop")
GOOD = {"src/shop/cart.py": "TOTAL = 1\n", "tests/test_cart.py": "def test_it():\n    pass\n"}
PATIENT = CallBounds(connect_s=60, silence_s=60, total_s=60, max_bytes=100_000)
EMPTY = Draft({}, ())


class AuthorSetup:
    """An author with everything around it, and how long it slept."""

    def __init__(
        self,
        provider: Provider,
        folder: Path,
        *,
        model: str | None = None,
        failure: str = "",
        patience: CallBounds = PATIENT,
    ) -> None:
        self.link = KeptLink()
        self.slept: list[float] = []
        asked = BuildInput(prompt="a shop", model=model)
        ctx = a_context(folder, asked, link=self.link, failure=failure)
        self.author = ModelAuthor(
            ctx, "parrot", provider.endpoint, NAMES, can_fetch=False, patience=patience, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def written(
    folder: Path, *deeds: Deed, draft: Draft = EMPTY, **asked: Any
) -> tuple[Draft, AuthorSetup, Provider]:
    async with a_provider(*deeds) as provider:
        setup = AuthorSetup(provider, folder, **asked)
        return await setup.author.write(draft), setup, provider


async def failed(folder: Path, *deeds: Deed, **asked: Any) -> tuple[StageFailed, AuthorSetup, Provider]:
    async with a_provider(*deeds) as provider:
        setup = AuthorSetup(provider, folder, **asked)
        with pytest.raises(StageFailed) as raised:
            await setup.author.write(EMPTY)
        return raised.value, setup, provider


# ── the good way ──────────────────────────────────────────────────────────────


async def test_files_of_a_good_answer_are_taken_and_the_slot_is_given_back(tmp_path: Path) -> None:
    draft, setup, provider = await written(tmp_path, says(files(GOOD)))

    assert draft.files == GOOD
    assert len(provider.asked) == 1
    assert setup.link.acts == ["acquire parrot", "give up parrot"]


async def test_a_later_iteration_is_shown_the_failure_and_changes_only_what_it_names(tmp_path: Path) -> None:
    mended = {"src/shop/cart.py": "TOTAL = 2\n"}

    draft, _, provider = await written(
        tmp_path, says(files(mended)), draft=Draft(GOOD, ()), failure="E   assert 1 == 2"
    )

    assert draft.files == GOOD | mended
    assert "E   assert 1 == 2" in provider.asked[0].last
    assert "TOTAL = 1" in provider.asked[0].last


# ── cut off ───────────────────────────────────────────────────────────────────


async def test_an_answer_that_was_cut_off_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = files(GOOD)
    half = whole[: whole.index("def test_it")]

    draft, _, provider = await written(
        tmp_path,
        says(half, finish="length"),
        says(files({"tests/test_cart.py": GOOD["tests/test_cart.py"]})),
    )

    assert draft.files == GOOD
    assert "arrived: src/shop/cart.py" in provider.asked[1].last
    assert "tests/test_cart.py was cut off" in provider.asked[1].last
    assert provider.asked[1].messages[-2] == {"role": "assistant", "content": half}


async def test_a_model_that_never_gets_a_file_done_is_given_up(tmp_path: Path) -> None:
    endless = says("=== FILE src/shop/cart.py ===\nX = 1\n", finish="length")

    fault, _, provider = await failed(tmp_path, endless)

    assert fault.summary == "The model gave no answer that could be used."
    assert "split it" in fault.detail
    assert len(provider.asked) == MAX_COMPLAINTS + 1


# ── nonsense ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("nonsense", "complaint"),
    [
        (says("I would rather talk about the weather."), "no file below src/shop/"),
        (says(""), "no file below src/shop/"),
        (says(files({"src/shop/a.py": "A = 1\n"})), "no file below tests/"),
        (says(files(GOOD | {"../../etc/cron.d/evil.txt": "x\n"})), "no plain path below the project"),
        (says(files(GOOD | {"pyproject.toml": "[tool.ruff]\n"})), "written by the build itself"),
        (says(files({f"tests/test_{n}.py": "\n" for n in range(300)})), "300 files are more than"),
        (floods, "more than 100000 bytes"),
        (says(files(GOOD) + "=== NEEDS ===\nhttpx\n=== END ===\n"), "use the standard library alone"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_complained_about_and_the_next_one_taken(
    tmp_path: Path, nonsense: Deed, complaint: str
) -> None:
    good = says(files(GOOD) + "=== NEEDS ===\n=== END ===\n")

    draft, _, provider = await written(tmp_path, nonsense, good)

    assert complaint in provider.asked[1].last
    assert GOOD.items() <= draft.files.items()
    assert draft.needs == ()
    assert all(path.startswith(("src/shop/", "tests/")) for path in draft.files)


async def test_a_model_that_only_talks_is_given_up_and_the_user_is_told_what_was_wrong(tmp_path: Path) -> None:
    fault, _, provider = await failed(tmp_path, says("Hello!"))

    assert len(provider.asked) == MAX_COMPLAINTS + 1
    assert "no file below src/shop/" in fault.detail
    assert fault.fault is Fault.JOB


async def test_an_answer_in_a_later_iteration_that_changes_nothing_is_complained_about(tmp_path: Path) -> None:
    _, _, provider = await written(
        tmp_path, says("It looks fine to me."), says(files(GOOD)), draft=Draft(GOOD, ()), failure="E"
    )

    assert "There is no file in your answer" in provider.asked[1].last


async def test_a_call_that_is_broken_off_is_told_as_one_without_tokens(tmp_path: Path) -> None:
    async with a_provider(is_silent) as provider:
        setup = AuthorSetup(provider, tmp_path)
        writing = asyncio.create_task(setup.author.write(EMPTY))
        await eventually(lambda: len(provider.asked) == 1)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing

    [call] = setup.link.calls
    assert (call.outcome, call.input_tokens, call.output_tokens) == ("broken_off", None, None)
    assert setup.link.acts == ["acquire parrot", "give up parrot"]


# ── too many calls ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("headers", "for_s"), [({"Retry-After": "7"}, "7.0"), ({}, "None")])
async def test_a_provider_with_too_many_calls_is_shut_for_everybody_and_asked_again(
    tmp_path: Path, headers: dict[str, str], for_s: str
) -> None:
    draft, setup, provider = await written(tmp_path, status(429, headers=headers), says(files(GOOD)))

    assert draft.files == GOOD
    assert setup.link.acts == ["acquire parrot", f"shut parrot for {for_s}", "acquire parrot", "give up parrot"]
    assert setup.slept == []
    assert provider.asked[0].messages == provider.asked[1].messages


# ── away ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "trouble", [status(500), status(503), drops("=== FILE src/sh"), is_silent, says("a", finish=None)]
)
async def test_a_provider_that_is_away_is_asked_again_without_holding_its_slot_meanwhile(
    tmp_path: Path, trouble: Deed
) -> None:
    patience = replace(PATIENT, silence_s=2) if trouble is is_silent else PATIENT

    draft, setup, provider = await written(tmp_path, trouble, trouble, says(files(GOOD)), patience=patience)

    assert draft.files == GOOD
    assert setup.link.acts == ["acquire parrot", "give up parrot"] * 3
    assert provider.asked[0].messages == provider.asked[2].messages
    first, second = setup.slept
    assert 0.75 <= first <= 1.25
    assert 1.5 <= second <= 2.5


async def test_a_pause_that_a_broken_provider_asks_for_is_kept_up_to_a_minute(tmp_path: Path) -> None:
    _, setup, _ = await written(
        tmp_path,
        status(503, headers={"Retry-After": "20"}),
        status(503, headers={"Retry-After": "4000"}),
        says(files(GOOD)),
    )

    assert setup.slept == [20, 60]


async def test_a_provider_that_stays_away_is_not_the_users_fault(tmp_path: Path) -> None:
    fault, setup, provider = await failed(tmp_path, status(500))

    assert fault.summary == "parrot cannot be reached."
    assert fault.fault is Fault.SYSTEM
    assert len(provider.asked) == len(PAUSES_S) + 1
    assert 90 < sum(setup.slept) < 160


# ── no ────────────────────────────────────────────────────────────────────────


async def test_a_refusal_is_told_in_the_models_own_words(tmp_path: Path) -> None:
    fault, _, provider = await failed(tmp_path, says("I cannot help with that.", refusal=True))

    assert (fault.summary, fault.detail) == ("parrot refused to write this.", "I cannot help with that.")
    assert fault.fault is Fault.JOB
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("deed", "model", "whose"),
    [
        (status(401), None, Fault.SYSTEM),
        (status(429, error="insufficient_quota"), None, Fault.SYSTEM),
        (status(404), None, Fault.SYSTEM),
        (status(404), "the-users-own", Fault.JOB),
        (status(400), None, Fault.JOB),
    ],
)
async def test_a_call_that_is_not_taken_ends_the_job_by_whose_fault_it_is(
    tmp_path: Path, deed: Deed, model: str | None, whose: Fault
) -> None:
    fault, _, provider = await failed(tmp_path, deed, model=model)

    assert fault.summary == "parrot does not take the call."
    assert fault.fault is whose
    assert len(provider.asked) == 1
