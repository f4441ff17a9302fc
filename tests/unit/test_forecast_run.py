"""The queue run forward: who starts when, and what a new job would meet."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

import pytest

from headgate_contracts.events import Estimate
from headgate_contracts.vocabulary import Priority
from libs.capacity.paces import Pace, Wait
from libs.capacity.projection import defaults_of
from libs.capacity.rows import ARRIVAL_STEP, Pause, Row, Seed, StandingOrders, score_of
from libs.capacity.turns import Turn, Turns
from libs.forecast.arrivals import Coming, Guest
from libs.forecast.durations import Observed, observed, share_of
from libs.forecast.lines import WaitingLine
from libs.forecast.machine import PoolSlots
from libs.forecast.making import Past, make_forecast
from libs.forecast.run import RunResult, Scene, run_forward
from libs.forecast.table import EstimateRequest, Forecast
from libs.policy import Policy

NOW_MS = 1_800_000_000_000
NORMAL = Priority.NORMAL.class_number
POLICY = Policy()


class Each:
    """Every job holds its slots for as long as it is told here, else for 100 s."""

    def __init__(self, **holds_s: float) -> None:
        self.holds_s = holds_s

    def hold_s(self, job: str, tier: str, *, age_s: float = 0.0) -> float:
        return self.holds_s.get(job, 100.0) - age_s


def row(name: str, number: int, **changes: object) -> Row:
    user = str(changes.pop("user", name))
    plain = Row(
        id=name,
        status="queued",
        seq=number,
        first_seq=number,
        attempt=0,
        user=user,
        project=user,
        workflow=None,
        pool="default",
        tier="bootstrapper",
        class_number=NORMAL,
        boost=0,
        arrival=number,
        place=number * ARRIVAL_STEP,
        entered_ms=NOW_MS - 60_000,
        groups=(f"user:{user}", f"project:{user}"),
    )
    return replace(plain, **changes)


def running(name: str, number: int, *, since_s: float = 0.0, **changes: object) -> Row:
    held = {"status": "code", "attempt": 1, "place": None, "holder": f"{name}:1", "worker": "w"}
    return row(name, number, started_ms=NOW_MS - round(since_s * 1000), **held, **changes)


def scene(*rows: Row, slots: int = 1, **changes: object) -> Scene:
    standing = StandingOrders(arrivals=100, defaults=defaults_of(POLICY))
    seeds = tuple(Seed(each, 0) for each in rows)
    plain = Scene(now_ms=NOW_MS, seeds=seeds, standing=standing, pools=(PoolSlots("default", slots),))
    return replace(plain, **changes)


def starts_s(course: RunResult) -> dict[str, float]:
    return {job: (start_ms - NOW_MS) / 1000 for job, start_ms in course.starts.items()}


def forecast_of(given: Scene, **past: object) -> Forecast:
    pace = Pace(100.0, 50, tuple([100.0] * 50))
    known = Past(paces={"bootstrapper": pace, "partner": pace, "cto_scale": pace}, **past)  # pyright: ignore[reportArgumentType]
    return make_forecast(given, known, POLICY, runs=2)


def wanted(number: int = 101, **changes: object) -> EstimateRequest:
    plain = EstimateRequest(
        pool="default",
        tier="bootstrapper",
        score=score_of(NORMAL, number * ARRIVAL_STEP),
        position=3,
        groups=("user:new", "project:new"),
    )
    return replace(plain, **changes)


def told_s(forecast: Forecast, asked: EstimateRequest) -> int | None:
    estimate = forecast.estimate_new(asked, now_ms=NOW_MS)
    return estimate and estimate.estimate_seconds


# ── a course ──────────────────────────────────────────────────────────────────


def test_queued_jobs_start_one_after_the_other_as_slots_come_free() -> None:
    course = run_forward(scene(running("a", 1, since_s=40), row("b", 2), row("c", 3)), Each(), POLICY)

    assert starts_s(course) == {"b": 60, "c": 160}


def test_a_free_slot_is_taken_at_once() -> None:
    course = run_forward(scene(running("a", 1), row("b", 2), row("c", 3), slots=3), Each(), POLICY)

    assert starts_s(course) == {"b": 0, "c": 0}


def test_a_user_whose_slots_are_taken_holds_nobody_else_up() -> None:
    mine = [running("a", 1, user="u"), running("b", 2, user="u", since_s=20), row("c", 3, user="u")]

    course = run_forward(scene(*mine, row("d", 4), slots=3), Each(), POLICY)

    assert starts_s(course) == {"d": 0, "c": 80}


def test_a_higher_class_goes_first_and_a_job_rises_while_it_waits() -> None:
    low = row("low", 2, class_number=Priority.LOW.class_number, timers={"age": NOW_MS + 50_000})
    fresh = [row(f"n{number}", number, timers={}) for number in (3, 4)]

    course = run_forward(scene(running("a", 1), low, *fresh), Each(), POLICY)

    assert starts_s(course) == {"low": 100, "n3": 200, "n4": 300}  # at 50 s it stands before them in their class


def test_a_class_that_starves_gets_the_start_it_is_owed() -> None:
    background = row("b", 2, class_number=Priority.BACKGROUND.class_number)
    number, every = background.class_number, POLICY.order.starved_every
    turns = Turns({number: Turn(NOW_MS - 10**8, every - 1), NORMAL: Turn(NOW_MS, 0)})
    turns.present.update({number: 1, NORMAL: 3})
    others = [row(f"n{each}", each) for each in (3, 4, 5)]

    course = run_forward(scene(running("a", 1), background, *others, turns=turns), Each(), POLICY)

    assert starts_s(course)["b"] == 100


def test_what_is_paused_or_has_no_worker_never_starts() -> None:
    paused = StandingOrders(defaults=defaults_of(POLICY), pauses=(Pause("user:b", "op", "", NOW_MS),))

    course = run_forward(scene(row("b", 2), row("c", 3), row("d", 4, pool="gpu"), standing=paused), Each(), POLICY)

    assert starts_s(course) == {"c": 0}


def test_a_job_that_waits_for_a_paused_provider_starts_when_it_opens() -> None:
    given = scene(row("b", 2, gates=("llm:ollama",)), row("c", 3), slots=2, shut={"llm:ollama": NOW_MS + 30_000})

    course = run_forward(given, Each(), POLICY)

    assert starts_s(course) == {"c": 0, "b": 30}


def test_guests_of_a_higher_class_are_waited_for() -> None:
    guests = [Guest(number, NOW_MS + number * 1000, "bootstrapper", "default", 20) for number in (1, 2)]

    course = run_forward(scene(running("a", 1), row("b", 2)), Each(), POLICY, guests=iter(guests))

    assert starts_s(course) == {"b": 300}


def test_the_same_scene_has_the_same_course() -> None:
    given = scene(*(row(f"j{number}", number, user=f"u{number % 7}") for number in range(1, 60)), slots=4)

    assert run_forward(given, Each(), POLICY) == run_forward(given, Each(), POLICY)


# ── what it deals ─────────────────────────────────────────────────────────────


def test_a_job_that_runs_already_is_one_of_those_that_ran_longer() -> None:
    seen = observed(100, [10, 20, 30, 40, 50, 60, 70, 500])

    assert {round(seen.draw(share / 10, age_s=65)) for share in range(10)} == {5, 435}
    assert [seen.draw(share, age_s=1000) for share in (0, 0.5)] == [500, 1000]


def test_without_a_past_durations_lie_around_the_first_guess() -> None:
    draws = [Observed(480, ()).draw(share / 100) for share in range(100)]

    assert (min(draws), round(sum(draws) / 100)) == (240, 478)


def test_a_job_is_dealt_by_its_id() -> None:
    assert share_of("a") == share_of("a") != share_of("b")
    assert all(0 <= share_of(str(number)) < 1 for number in range(100))


def test_guests_come_as_often_as_lately() -> None:
    coming = Coming({("partner", "default", NORMAL): 30, ("partner", "default", 20): 10}, 3_600_000)

    guests = list(islice(coming.deal(1, from_ms=0), 4000))

    assert abs(guests[-1].at_ms / 3_600_000 - 100) < 5
    assert 800 < sum(guest.class_number == 20 for guest in guests) < 1200
    assert guests == list(islice(coming.deal(1, from_ms=0), 4000))
    assert list(Coming().deal(1, from_ms=0)) == []


# ── the table ─────────────────────────────────────────────────────────────────


def test_a_queued_job_is_told_its_own_start() -> None:
    forecast = forecast_of(scene(running("a", 1), row("b", 2), row("c", 3)))

    estimate = forecast.estimate_of("c", wanted(3), now_ms=NOW_MS + 5000)

    assert estimate is not None
    assert estimate.estimate_seconds == 195


def test_a_new_job_is_told_the_end_of_its_class() -> None:
    forecast = forecast_of(scene(running("a", 1), row("b", 2), row("c", 3)))

    assert told_s(forecast, wanted()) == 300
    assert told_s(forecast, wanted(score=score_of(20, 1), position=1)) == 100


def test_a_boosted_job_starts_no_later_than_the_one_it_lands_before() -> None:
    forecast = forecast_of(scene(running("a", 1), row("b", 2), row("c", 3)))

    assert told_s(forecast, wanted(score=score_of(NORMAL, 2 * ARRIVAL_STEP + 1), position=2)) == 200


def test_a_new_job_of_a_full_user_waits_for_its_own() -> None:
    mine = [running("a", 1, user="u"), running("b", 2, user="u"), row("c", 3, user="u")]

    forecast = forecast_of(scene(*mine, slots=9))

    assert told_s(forecast, wanted(groups=("user:u", "project:u"), position=2)) == 100
    assert told_s(forecast, wanted(position=2)) == 1


def test_a_paused_scope_and_a_pool_without_workers_have_no_estimate() -> None:
    paused = StandingOrders(defaults=defaults_of(POLICY), pauses=(Pause("priority:normal", "op", "", NOW_MS),))
    forecast = forecast_of(scene(row("b", 2), standing=paused))

    assert told_s(forecast, wanted()) is None
    assert told_s(forecast, wanted(score=score_of(20, 1), position=1)) == 1
    assert told_s(forecast, wanted(score=score_of(20, 1), pool="gpu")) is None
    assert forecast.estimate_of("b", wanted(2), now_ms=NOW_MS) is None


def test_what_is_published_is_read_as_it_was() -> None:
    mine = [running("a", 1, user="u"), running("b", 2, user="u"), row("c", 3, user="u"), row("d", 4, pool="gpu")]
    pauses = (Pause("pool:gpu", "op", "", NOW_MS),)
    given = scene(*mine, slots=2, standing=StandingOrders(arrivals=4, defaults=defaults_of(POLICY), pauses=pauses))
    forecast = forecast_of(given)

    assert Forecast.load(forecast.dump(), POLICY) == forecast


@pytest.mark.parametrize("text", [None, "", '{"shape": 0}'])
def test_where_nothing_is_published_nothing_is_told(text: str | None) -> None:
    assert told_s(Forecast.load(text, POLICY), wanted()) is None


def test_no_number_is_told_before_any_job_has_ended() -> None:
    given = scene(running("a", 1), row("b", 2))
    guess = make_forecast(given, Past(paces={"partner": Pace(600.0)}), POLICY, runs=2)

    assert told_s(guess, wanted()) is None
    assert guess.estimate_of("b", wanted(2), now_ms=NOW_MS) is None


def test_no_number_is_told_where_every_slot_has_a_job_that_outlasted_all_that_were_seen() -> None:
    both = (running("a", 1, since_s=101), running("b", 2, since_s=900))
    one_is_like_others = (running("a", 1, since_s=99), running("b", 2, since_s=900))

    assert told_s(forecast_of(scene(*both, row("c", 3), slots=2)), wanted()) is None
    assert told_s(forecast_of(scene(*both, row("c", 3), slots=3)), wanted()) is not None
    assert told_s(forecast_of(scene(*one_is_like_others, row("c", 3), slots=2)), wanted()) is not None


def test_a_group_that_is_full_now_and_was_in_no_run_leaves_the_start_open() -> None:
    forecast = forecast_of(scene(slots=9))

    assert told_s(forecast, wanted(position=1)) == 1
    assert told_s(forecast, wanted(position=1, full=("user:new",))) is None


def test_those_ahead_who_are_held_by_limits_of_their_own_start_later() -> None:
    mine = [running("a", 1, user="u"), running("b", 2, user="u"), row("c", 3, user="u"), row("d", 4, user="u")]
    forecast = forecast_of(scene(*mine, row("e", 5), slots=3))

    assert forecast.sooner("e", wanted(5, position=3)) == 0
    assert forecast.sooner("d", wanted(4, position=2)) == 1
    assert forecast.sooner("new", wanted(9, position=7)) >= 3  # three came since: nobody knows what holds them


def test_a_crowd_that_came_since_and_may_be_held_leaves_the_lower_end_where_it_was() -> None:
    forecast = forecast_of(scene(running("a", 1, since_s=70), row("b", 2)))

    alone = forecast.estimate_new(wanted(position=2), now_ms=NOW_MS)
    behind = forecast.estimate_new(wanted(position=5), now_ms=NOW_MS)

    assert alone is not None
    assert behind is not None
    assert behind.lower_bound == alone.lower_bound
    assert behind.upper_bound > alone.upper_bound


def test_the_interval_is_made_from_past_errors() -> None:
    shown = Estimate(estimate_seconds=100, lower_bound=90, upper_bound=110, confidence="medium")
    waits = tuple(
        Wait(datetime.fromtimestamp(NOW_MS / 1000 - 90_000, UTC), "partner", "normal", "default", 150.0 + number, shown)
        for number in range(100)
    )
    forecast = forecast_of(scene(running("a", 1)), waits=waits)

    estimate = forecast.estimate_new(wanted(position=1), now_ms=NOW_MS)

    assert estimate is not None
    assert (estimate.estimate_seconds, estimate.lower_bound) == (100, 100)
    assert 235 <= estimate.upper_bound <= 250


def test_a_crowd_that_came_since_is_told_one_after_the_other() -> None:
    """Two slots, one of them free. The average job takes 100 s, so one of two slots comes free every 50 s."""
    forecast = forecast_of(scene(running("a", 1), slots=2))

    told = [told_s(forecast, wanted(100 + position, position=position)) for position in (1, 2, 3, 4)]

    assert told == [1, 50, 100, 150]


def test_a_crowd_behind_a_full_pool_waits_for_those_whom_the_runs_knew_and_then_for_each_other() -> None:
    forecast = forecast_of(scene(running("a", 1), row("b", 2)))

    told = [told_s(forecast, wanted(100 + position, position=position)) for position in (2, 3)]

    assert told == [200, 200 + 100]


def test_a_line_offers_nothing_that_nobody_knows() -> None:
    assert WaitingLine().offer(1) is None


def test_a_turn_that_a_lower_class_is_owed_is_offered_to_no_other() -> None:
    line = WaitingLine(((score_of(90, 1), 100),), {NORMAL: 500, 90: 200})

    assert (line.offer(score_of(NORMAL, 1)), line.offer(score_of(90, 0))) == (500, 100)
