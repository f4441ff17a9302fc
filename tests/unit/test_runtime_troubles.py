"""What goes wrong with a job leaves one line, with its user, its attempt and the words by which one searches."""

import logging

import pytest

from headgate_contracts.events import JobData, JobFailed, JobGivenBack, JobReady
from headgate_contracts.examples import examples
from headgate_contracts.vocabulary import GivenBackReason
from libs.runtime.troubles import say_trouble

EXAMPLES = {type(each.data): each.data for each in examples()}


def given_back(reason: GivenBackReason) -> JobData:
    data = EXAMPLES[JobGivenBack]
    assert isinstance(data, JobGivenBack)
    return data.model_copy(update={"reason": reason})


def failed() -> JobData:
    data = EXAMPLES[JobFailed]
    assert isinstance(data, JobFailed)
    return data.model_copy(update={"summary": "no such licence"})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (failed(), "the job failed: no such licence"),
        (given_back(GivenBackReason.LOST), "the job's worker was lost"),
        (given_back(GivenBackReason.FORCED), "the job's slot was forced free"),
    ],
    ids=["failed", "lost", "forced"],
)
def test_a_trouble_is_one_line_with_whose_it_is(data: JobData, words: str, caplog: pytest.LogCaptureFixture) -> None:
    say_trouble(data)

    [line] = caplog.records
    assert (line.getMessage(), line.levelno) == (words, logging.WARNING)
    assert vars(line)["user_id"] == data.user_id
    assert vars(line)["attempt"] == getattr(data, "attempt", None)


@pytest.mark.parametrize(
    "data", [EXAMPLES[JobReady], given_back(GivenBackReason.DRAINED)], ids=["ready", "given back by a drain"]
)
def test_what_goes_well_leaves_none(data: JobData, caplog: pytest.LogCaptureFixture) -> None:
    say_trouble(data)

    assert not caplog.records
