"""The names by which slots are held: an attempt's own, and those of the leases inside it.

j1:2          the second attempt of job j1
j1-2          the same as a token, where it stands in a subject or a file's name
j1-2-3        the third lease that its stages ask for
"""

import re
from typing import Final, NamedTuple, Self

_LEASE: Final = re.compile(
    r"(?P<job>.+)(?::(?P<own>[1-9][0-9]*)|-(?P<attempt>[1-9][0-9]*)-[0-9]+)", re.ASCII | re.DOTALL
)


class Holder(NamedTuple):
    """One attempt of a job, under whose name its slots are held."""

    job: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.job}:{self.attempt}"

    @classmethod
    def parse(cls, name: str) -> Self:
        """Raises ValueError where it is no holder's name."""
        job, _, attempt = name.rpartition(":")
        return cls(job, int(attempt))

    @classmethod
    def of_lease(cls, lease: str) -> Self | None:
        """Whose lease it is, by its name: the attempt's own or one of its stages'. Null: a lease outside any job."""
        named = _LEASE.fullmatch(lease)
        return None if named is None else cls(named["job"], int(named["own"] or named["attempt"]))

    @property
    def token(self) -> str:
        """Where a colon cannot stand."""
        return f"{self.job}-{self.attempt}"

    def stage_lease(self, number: int) -> str:
        """The n-th lease that the attempt's stages ask for."""
        return f"{self.token}-{number}"
