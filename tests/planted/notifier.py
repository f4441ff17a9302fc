"""In the notifier's streams. Only a proof that runs the notifier can find these."""

from __future__ import annotations

from typing import Any, Final

from headgate_contracts import Job
from services.notifier.domain import Opening, Resume
from services.notifier.fanout import StreamItem, Tap
from services.notifier.said import Said
from tests.planted.bug import Bug


def resumes_one_too_far(sound: Any) -> Any:
    def opening(last_event_id: str | None, *, epoch: str, job: Job, last_status_seq: int) -> Opening:
        begun = sound(last_event_id, epoch=epoch, job=job, last_status_seq=last_status_seq)
        return Resume(begun.after + 1) if isinstance(begun, Resume) else begun

    return opening


def sends_the_last_again(sound: Any) -> Any:
    def _is_new(told: StreamItem, seen: int, said: Said | None) -> bool:
        return sound(told, seen if told.seq != seen else seen - 1, said)

    return _is_new


def skips_who_is_slow(sound: Any) -> Any:
    def offer(self: Tap, told: StreamItem) -> None:
        if len(self._items) < self._depth and self._bytes + len(told.frames) <= self._most_bytes:
            sound(self, told)

    return offer


NOTIFIER: Final = (
    Bug(
        "stream-id-off-by-one",
        "services.notifier.domain:opening",
        resumes_one_too_far,
        "A client that comes back with its last id misses nothing (I6). The record right behind that id is left out.",
    ),
    Bug(
        "said-twice-at-the-joint",
        "services.notifier.streaming:_is_new",
        sends_the_last_again,
        "A client sees nothing twice (I6). Where the follower lags behind the log that the snapshot was read from, the "
        "last status of the snapshot comes once more.",
    ),
    Bug(
        "slow-reader-skipped",
        "services.notifier.fanout:Tap.offer",
        skips_who_is_slow,
        "A client that cannot keep up is disconnected, never silently skipped (I6). What does not fit is dropped, and "
        "its stream goes on with a gap.",
    ),
)
