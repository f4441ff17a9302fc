"""What admission needs from outside, and nothing more."""

from typing import Protocol

from headgate_contracts.commands import AcquireLease, GiveUpLease, LeaseReply


class Schedulers(Protocol):
    """The schedulers' replicas, asked over NATS. Null: none has answered."""

    async def acquire(self, wanted: AcquireLease, /) -> LeaseReply | None: ...
    async def give_up(self, lease: GiveUpLease, /) -> LeaseReply | None: ...


class Ids(Protocol):
    def event_id(self) -> str: ...
    def job_id(self) -> str: ...
    def workflow_id(self) -> str: ...
