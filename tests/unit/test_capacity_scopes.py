"""Which pauses hold a job."""

import pytest

from libs.capacity.scopes import owners_of, scopes_of, scopes_of_job, taking_aside
from tests.fixtures.lives import job_after, submission

MINE = ("all", "priority:low", "pool:gpu", "user:ann", "project:ann:shop", "workflow:w1")


@pytest.mark.parametrize(("workflow", "expected"), [("w1", MINE), (None, MINE[:-1])])
def test_a_job_is_held_by_each_scope_that_names_it(workflow: str | None, expected: tuple[str, ...]) -> None:
    phase = {"phase": 1, "phases": 2} if workflow else {}
    asked = submission(shared=False, pool="gpu", priority="low", workflow=workflow, **phase)

    job = job_after("queued", user_id="ann", project_id="shop", submission=asked)

    assert scopes_of_job(job) == expected


def test_a_pause_of_all_or_of_a_pool_leaves_its_jobs_in_line() -> None:
    owners = owners_of("ann", "ann:shop", "w1")

    assert set(scopes_of(70, "gpu", owners)) - set(taking_aside(70, owners)) == {"all", "pool:gpu"}
