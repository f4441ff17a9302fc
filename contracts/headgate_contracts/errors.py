"""What can be wrong with an event, drawn as a tree. Each error names the field; nothing was sent.

    ContractError
    ├── InvalidToken        a name that cannot be part of a subject
    ├── InvalidEvent        data of the wrong shape
    ├── EventTooLarge       an event that nobody would want to read
    └── IllegalTransition   an event that the job's state does not allow

None of them is worth a retry with the same event.
"""


class ContractError(ValueError):
    """An event breaks the contract."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidToken(ContractError):
    """A name is not 1 to 64 letters, digits, `_` or `-`, so it cannot be part of a subject."""


class InvalidEvent(ContractError):
    """An event, or a field of its data, has the wrong shape."""


class EventTooLarge(ContractError):
    """An event is larger than the contract allows."""


class IllegalTransition(ContractError):
    """An event does not follow from the job's state, or its writer may not write it there."""
