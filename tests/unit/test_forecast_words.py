"""An estimate in words, and its numbers."""

from __future__ import annotations

import pytest

from headgate_contracts.events import Estimate
from headgate_contracts.shown import QueuePart
from libs.forecast.place import duration_text, estimate_fields, estimate_message
from libs.forecast.plain import average_over, confidence_at, first_averages
from libs.policy import Policy


def estimate(seconds: int, lower: int, upper: int) -> Estimate:
    return Estimate(estimate_seconds=seconds, lower_bound=lower, upper_bound=upper, confidence="medium")


@pytest.mark.parametrize(
    ("seconds", "lower", "upper", "message"),
    [
        (45, 32, 59, "45 seconds"),
        (1, 0, 1, "1 second"),
        (50, 35, 65, "50 seconds"),
        (50, 10, 600, "10 seconds-10 minutes"),
        (60, 42, 78, "42 seconds-1 minute"),
        (1500, 1050, 1950, "17 minutes-32 minutes"),
        (100, 90, 110, "1 minute"),
        (4000, 3540, 4300, "59 minutes-1h 11m"),
        (5800, 3900, 7800, "1h 5m-2h 10m"),
        (7200, 7200, 7200, "2h 0m"),
        (100_000, 93_600, 180_000, "26h 0m-50h 0m"),
    ],
)
def test_an_estimate_is_told_in_the_units_of_its_ends(seconds: int, lower: int, upper: int, message: str) -> None:
    assert estimate_message(estimate(seconds, lower, upper)) == message


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 seconds"), (59, "59 seconds"), (60, "1 minute"), (3599, "59 minutes")]
)
def test_a_duration_is_rounded_down_to_its_unit(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


def test_the_fields_are_those_of_a_place_in_the_queue() -> None:
    shown = QueuePart(
        position=4,
        position_original=4,
        position_message="You are #4 in queue",
        passed_by=0,
        **estimate_fields(estimate(1500, 1050, 1950)),
    )

    assert (shown.estimate_seconds, shown.message, shown.confidence) == (1500, "17 minutes-32 minutes", "medium")
    assert estimate_fields(None) == {"message": "no estimate yet"}
    assert estimate_fields(None, starts=False) == {}


def test_the_confidence_is_policy() -> None:
    policy = Policy.model_validate({"forecast": {"medium_below": 3}})

    assert [confidence_at(position, policy) for position in (2, 3)] == ["medium", "low"]
    assert [confidence_at(position, Policy()) for position in (9, 10)] == ["medium", "low"]


def test_an_average_goes_by_the_tiers_of_the_queued_jobs() -> None:
    averages = first_averages(Policy())

    assert average_over(averages, {"bootstrapper": 1, "cto_scale": 3}, tier="partner") == (480 + 3 * 900) / 4
    assert average_over(averages, {}, tier="partner") == 600
