"""What can be wrong with a policy, drawn as a tree.

    PolicyError     the policy cannot be used; its text has one line for each problem

Not worth a retry before the file or the environment has been changed.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing to put right."""

    key: str
    wrong: str
    instead: str

    def __str__(self) -> str:
        return f"{self.key}: {self.wrong}; {self.instead}"


class PolicyError(ValueError):
    """The policy cannot be used."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


def key_path(*parts: str | int) -> str:
    """The path of a key as it would be written in TOML: what is no bare key is quoted."""
    return ".".join(str(part) if re.fullmatch(r"[\w-]+", str(part), re.ASCII) else json.dumps(part) for part in parts)
