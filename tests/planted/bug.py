"""A planted bug: one function of the project, and its twin that does one thing wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bug:
    """Who plants it puts the twin wherever the sound function is bound: in its module or class, and in every module
    that has imported it by name."""

    name: str
    where: str  # "services.worker.domain:still_ours", for a method "services.worker.attempt.tenure:Tenure.is_ours"
    make: Callable[[Any], Any]  # is given the sound function and gives its faulty twin
    breaks: str  # the promise that it breaks, and what somebody would see
