"""What can go wrong around a service, drawn as a tree.

RuntimeFault
├── SettingsWrong       before anything was started
├── PortTaken           nobody can be served here
├── HeaderTwice         400
├── BodyCut             400
├── BodyTooSlow         408
├── BodyTooLarge        413
├── BodyTooDeep         422
├── HalfCharacter       422
├── Unauthorized        401
├── Forbidden           403
├── KeysAway            503: a token that cannot be judged at the moment
└── ArchiveRefused      nothing of it was unpacked
"""

from collections.abc import Sequence


class RuntimeFault(Exception):
    """Something around a service is not as it must be."""

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        super().__init__((type(self).__doc__ or "").format(**facts))


class SettingsWrong(RuntimeFault):
    """The settings cannot be used. Start again after this was changed:
    {lines}"""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(lines="\n    ".join(problems))


class PortTaken(RuntimeFault):
    """{host}:{port} is in use or not this machine's. Set HEADGATE_HTTP_PORT to a free port, or to 0 for any."""


class HeaderTwice(RuntimeFault):
    """The header {name} was sent twice. Send it once; the same again is refused again."""


class BodyCut(RuntimeFault):
    """The connection ended before the body did."""  # nobody is left to read it


class BodyTooSlow(RuntimeFault):
    """The body was not there within {within_s} s. Send it again, and all of it at once."""


class BodyTooLarge(RuntimeFault):
    """The body is larger than {limit_bytes} bytes. Send less; the same again is refused again."""


class BodyTooDeep(RuntimeFault):
    """The body nests objects and lists more than {levels} deep. Send it flatter; the same again is refused again."""


class HalfCharacter(RuntimeFault):
    """A text in the body holds one half of a surrogate pair, which is no character. Send the pair or leave it out."""


class Unauthorized(RuntimeFault):
    """{reason}. Send a valid token as `Authorization: Bearer …`; the same request is refused again."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        self.reason = reason
        self.missing = missing  # nothing was sent: the answer then names no error (RFC 6750, 3.1)
        super().__init__(reason=reason)


class Forbidden(RuntimeFault):
    """The token lacks the scope {scope}. Send one that has it; the same one is refused again."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__(scope=scope)


class KeysAway(RuntimeFault):
    """The keys that tokens are checked with cannot be read at the moment. Try again in {retry_after_s} s."""

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(retry_after_s=retry_after_s)


class ArchiveRefused(RuntimeFault):
    """The archive cannot be unpacked: {why}. The same one is refused again."""

    def __init__(self, why: str) -> None:
        super().__init__(why=why)
