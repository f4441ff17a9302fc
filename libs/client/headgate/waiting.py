"""Until a job has ended, and how long that may take."""

import math
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from headgate.errors import NotInTime
from headgate.exchange import Effect, Give, NoAnswer, Open, Pause, Script, Take, terms
from headgate.happenings import End
from headgate.values import JobState
from headgate.verbs import events, job

SEEN_WITHIN_S: Final = 10.0  # what a stream has told already
SEEN_EVERY_S: Final = 0.1
WORD_EVERY_S: Final = 16.0  # an open stream says something each 15 s
LATE_S: Final = 0.5  # what a wait may last longer than it says: less is not worth a connection
LEAST_S: Final = 0.001  # httpx and a clock take no less


def wait(job_id: str, *, timeout_s: float | None = None) -> Script[JobState]:
    """Until it has ended, however it did. NotInTime where that is not in time: no pause and no connection is begun for
    longer than what is left, and the last ones before its end are silent for no longer than that."""
    known = yield from terms()
    ends_s = math.inf if timeout_s is None else known.now_s() + timeout_s
    last = LastWords()
    reply = None
    with closing(events(job_id)) as stream:
        while True:
            try:
                effect = stream.send(reply)
            except StopIteration:
                break
            left_s = ends_s - known.now_s()
            if last.skips(effect, left_s):
                reply = last.reply
                continue
            reply = None if isinstance(effect, Give) else (yield _within(effect, left_s))
            if known.now_s() >= ends_s and not _is_end(effect):
                raise NotInTime(f"job {job_id} has not ended within {timeout_s:g} s")
    return (yield from _once_ended(job_id, ends_s))


@dataclass(slots=True)
class LastWords:
    """The last seconds of a wait. A connection says every 15 s that it lives, and each piece of it is waited for as
    long as was left when it was opened: so once it was read for a while, it is opened anew, for what is left then. What
    comes first on a connection is always read, or a slow one would be opened again and again and nothing be heard."""

    reply: NoAnswer | None = None
    _begun_s: float | None = None  # what was left when the connection was first read

    def skips(self, effect: object, left_s: float) -> bool:
        """Whether the effect is not carried out, and `reply` stands in for what comes of it."""
        match effect:
            case Open():
                self._begun_s = self.reply = None
            case Take():
                self._begun_s = left_s if self._begun_s is None else self._begun_s
                if left_s < min(WORD_EVERY_S, self._begun_s - LATE_S):
                    self.reply = NoAnswer("little time is left")
                    return True
            case Pause() if self.reply is not None:  # nothing was wrong
                self.reply = None
                return True
            case _:
                pass
        return False


def _once_ended(job_id: str, ends_s: float) -> Script[JobState]:
    """Who heard of a job's end may be a moment ahead of who is asked for the job."""
    known = yield from terms()
    ends_s = min(ends_s, known.now_s() + SEEN_WITHIN_S)
    while not (state := (yield from job(job_id))).has_ended:
        if known.now_s() >= ends_s:
            raise NotInTime(f"the stream of job {job_id} has ended, and the job is still {state.status}")
        yield Pause(SEEN_EVERY_S)
    return state


def _within(effect: Effect, left_s: float) -> Effect:
    """The same, and no longer than that."""
    most_s = max(left_s, LEAST_S)
    match effect:
        case Pause(seconds):
            return Pause(min(seconds, most_s))
        case Open(request):
            return Open(replace(request, within_s=min(request.within_s, most_s)))
        case _:
            return effect


def _is_end(effect: object) -> bool:
    return isinstance(effect, Give) and isinstance(effect.value, End)  # pyright: ignore[reportUnknownMemberType] - of any stream
