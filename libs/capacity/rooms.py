"""How many bytes of inputs one user may hold: their share, and less of it the fuller the bucket is.

    all hold up to `crowded_at`     the share
    from there to the whole bucket  the share × (what is free ÷ what was free there)²

So who holds most is refused first, and who holds little still gets in: a bucket that greedy users fill approaches its
end and does not reach it. Pure. `shared/inputs.lua` has the same rule for the store, in the same order of operations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from libs.policy import Policy

NAMED_BYTES: Final = 128  # of an input beside its content: name, time and lengths, as the server keeps a message


def held_bytes(input_bytes: int) -> int:
    """What an input takes of the bucket."""
    return input_bytes + NAMED_BYTES


@dataclass(frozen=True, slots=True)
class Room:
    """What there is for inputs, in bytes."""

    share: int  # of one user, where there is room
    crowded_at: int
    bucket: int

    @classmethod
    def of(cls, policy: Policy) -> Room:
        bucket = policy.retention.inputs_bytes
        return cls(policy.submissions.user_input_bytes, math.floor(policy.submissions.crowded * bucket), bucket)

    def allowance(self, stored: int) -> int:
        """How much one user may hold while all together hold `stored`."""
        if stored <= self.crowded_at:
            return self.share
        free = max(0, self.bucket - stored) / (self.bucket - self.crowded_at)
        return math.floor(self.share * free * free)

    def takes(self, asked: int, *, held: int, stored: int) -> bool:
        """Whether a user who holds `held` may hold so much more."""
        return held + asked <= self.allowance(stored) and stored + asked <= self.bucket
