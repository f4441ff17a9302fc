"""The names by which slots are held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contracts import Holder

JOBS = st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True)
ATTEMPTS = st.integers(1, 999)


@given(job=JOBS, attempt=ATTEMPTS, number=st.integers(1, 999))
def test_every_name_leads_back_to_its_attempt(job: str, attempt: int, number: int) -> None:
    holder = Holder(job, attempt)

    assert Holder.parse(str(holder)) == holder
    assert Holder.of_lease(str(holder)) == holder
    assert Holder.of_lease(holder.stage_lease(number)) == holder


def test_an_attempt_is_named_by_its_job_and_its_number() -> None:
    holder = Holder("j-1", 2)

    assert (str(holder), holder.token, holder.stage_lease(3)) == ("j-1:2", "j-1-2", "j-1-2-3")


@pytest.mark.parametrize("lease", ["", "night-build", "j1:", "j1:x", "j1:01", "j1-01-1", ":1", "j1-2-", "j1:२"])
def test_a_lease_outside_any_job_has_no_holder(lease: str) -> None:
    assert Holder.of_lease(lease) is None


@pytest.mark.parametrize("name", ["", "j1", "j1:", "j1:x"])
def test_what_names_no_attempt_is_no_holder(name: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        Holder.parse(name)
