"""What can go wrong with the log.

    LogError
    ├── LogUnavailable
    ├── OutcomeUnknown
    ├── LogFull
    ├── LogRefused
    ├── LogMissing
    ├── SettingsDiffer
    ├── EpochDiffers
    ├── WentBack
    └── RecordsMissing

An event of the wrong shape, or one that its job does not allow, is no fault of the log: those are the contracts'
errors, raised before anything is sent. That another writer was first is no fault either: it is the value
`Conflicted`.
"""


class LogError(Exception):
    """The log did not do what it was asked. The docstring of each kind is its message."""

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        text = " ".join((type(self).__doc__ or "").split())
        super().__init__(text.format(**facts))


class LogUnavailable(LogError):
    """The log cannot be reached: {reason}. Nothing was stored; try again with the same event in a moment."""


class OutcomeUnknown(LogError):
    """Whether {what} was stored is not known after {within_s:g} s: {reason}. Release nothing that was reserved
    for it, and try again with the same event until it is known."""


class LogFull(LogError):
    """The log takes no more: {reason}. Refuse new work, and try again when it was given more room."""


class LogRefused(LogError):
    """The log refuses this: {reason}. Do not try again: it would be refused again."""


class LogMissing(LogError):
    """There is no {what}. Run `headgate migrate`, then start again."""


class SettingsDiffer(LogError):
    """The log is not set up as it has to be: {differences}. Run `headgate migrate` for streams, change the
    configuration for servers, then start again."""


class EpochDiffers(LogError):
    """The log is another one: its epoch is {found}, the one seen before was {seen}. Do not go on from there: fold
    the new log from its beginning."""


class WentBack(LogError):
    """The log went back: it ends at {found}, but {seen} was seen. What was acknowledged is lost, so do not go on:
    bring back the newer store, or begin a new epoch."""


class RecordsMissing(LogError):
    """The log has a hole: {first} to {last} are missing, and not by age. Do not go on: bring back a whole store, or
    begin a new epoch."""
