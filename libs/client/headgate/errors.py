"""What may come of asking Headgate, beside what was asked for. One tree: catch `HeadgateError`, or what you can mend.

HeadgateError
├── NotConfigured     it is not said where Headgate is, or who asks, or not in a form that can be sent
├── Unreachable       no answer came, however often it was asked
├── NotHeadgate       something else answers there; `elsewhere` is where that sends us to
├── NotInTime         the job has not ended, or is not seen to have; a TimeoutError too
├── ServerFault       Headgate failed: ask with `debug_id`
├── TryLater          `retry_after` says when, in seconds; it is longer away than the client was to wait
│   ├── Busy          the queue is full
│   ├── TooFast       more requests than one user may send
│   ├── NoSlot        every slot of the group is taken
│   ├── OverShare     the user holds as much as one user may: some of it has to end first
│   └── Unavailable   a server is away for a moment
├── Rejected          the same again is refused again
│   ├── Invalid       `fields` says what is wrong, by field
│   ├── NotSignedIn   no token, or one that is not good
│   ├── NotAllowed    the token does not let its user do that
│   ├── NotFound      there is none, or it is somebody else's
│   ├── Gone          it was there, and is no longer kept
│   └── Conflict      not as things stand: the job has ended, has changed, asks nothing
├── SlotLost          a slot is not held any more, in the middle of what it was held for
├── NotAsPromised     what was fetched has another checksum than Headgate says
├── NotStored         the disk here does not take what was fetched: it is full, the folder is not ours
└── UnsafeArchive     a result that would be unpacked elsewhere than below the folder, or without bounds
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from headgate.exchange import Answer, NoAnswer


class HeadgateError(Exception):
    """The root of the tree."""


class NotConfigured(HeadgateError):
    """Neither an argument nor the environment says it, or what they say can be in no request."""


class NotHeadgate(HeadgateError):
    """Something else answers. `elsewhere` is the URL that it names in its place."""

    def __init__(self, elsewhere: str | None = None) -> None:
        super().__init__(
            f"something else than Headgate answers there: set HEADGATE_URL to {elsewhere or 'where it runs'}"
        )
        self.elsewhere = elsewhere


class NotInTime(HeadgateError, TimeoutError):
    """A job was waited for as long as it was to be."""


class NotAsPromised(HeadgateError):
    """Another checksum."""


class SlotLost(HeadgateError):
    """It ended, or was freed by an operator, before the block that it was held for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the slot of {name} was lost")


class NotStored(HeadgateError):
    """What was fetched has no place on this machine. Its cause is the system's own error."""


class UnsafeArchive(HeadgateError):
    """Nothing of it was unpacked."""


class Unreachable(HeadgateError):
    """No answer."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no answer ({reason})")
        self.reason = reason


class Problem(HeadgateError):
    """An answer that is no success (RFC 9457). `slug` is the last word of its type."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.slug = str(problem.get("type", "")).rpartition("/")[2]
        self.detail = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
        self.debug_id = str(problem.get("debug_id") or "unknown")
        self.retry_after = retry_after
        self.problem = problem
        super().__init__(self.detail)


class ServerFault(Problem):
    """Headgate failed. Where it is the gateway that got no answer, what was asked may have been done."""

    @property
    def is_silence(self) -> bool:
        """Nobody behind the gateway answered."""
        return self.status in {502, 503, 504}


class TryLater(Problem):
    """Not now. Nothing was changed."""


class Busy(TryLater):
    """The queue is full."""


class TooFast(TryLater):
    """Too many requests."""


class OverShare(TryLater):
    """The user's share is full."""


class NoSlot(TryLater):
    """Every slot is taken."""


class Unavailable(TryLater):
    """A server is away."""


class Rejected(Problem):
    """The same again is refused again."""


class Invalid(Rejected):
    """The request is wrong. `fields`: what is wrong with each of them."""

    @property
    def fields(self) -> Mapping[str, str]:
        errors = self.problem.get("errors")
        if not isinstance(errors, list):
            return {}
        wrong = [cast("Mapping[str, object]", each) for each in cast("list[object]", errors) if isinstance(each, dict)]
        return {str(each.get("field", "")): str(each.get("message", "")) for each in wrong}


class NotSignedIn(Rejected):
    """Who asks is not known."""


class NotAllowed(Rejected):
    """Who asks may not do that."""


class NotFound(Rejected):
    """There is none of that name, or it is somebody else's."""


class Gone(Rejected):
    """It is no longer kept."""


class Conflict(Rejected):
    """It cannot be done as things stand."""


BY_SLUG: Final[Mapping[str, type[Problem]]] = {
    "busy": Busy,
    "no-slot": NoSlot,
    "share": OverShare,
    "input-share": OverShare,
    "lease-share": OverShare,
    "horizon": OverShare,
}
BY_STATUS: Final[Mapping[int, type[Problem]]] = {
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: Conflict,
    429: TooFast,
}


def fault_of(outcome: Answer | NoAnswer) -> HeadgateError | None:
    """Nothing where it is a success."""
    if isinstance(outcome, NoAnswer):
        return Unreachable(outcome.reason)
    if outcome.status < 300:
        return None
    if outcome.status < 400:
        return NotHeadgate(_elsewhere(outcome.headers.get("location", "")))
    return problem_of(outcome.status, outcome.problem, outcome.retry_after_s)


def problem_of(status: int, problem: Mapping[str, Any], retry_after_s: float | None) -> Problem:
    """By its slug where that says more than the status."""
    fault = Problem(status, problem, retry_after_s)
    kind = BY_SLUG.get(fault.slug) or BY_STATUS.get(status) or _by_class(status, retry_after_s)
    return kind(status, problem, retry_after_s)


def _elsewhere(location: str) -> str | None:
    """The URL under which the API would be there."""
    url = location.partition("/v1/")[0]
    return url if url.isprintable() and url.startswith(("http://", "https://")) else None


def _by_class(status: int, retry_after_s: float | None) -> type[Problem]:
    if status == 503 and retry_after_s is not None:
        return Unavailable
    return ServerFault if status >= 500 else Invalid
