"""What can go wrong in a worker beside the log and the scheduler.

WorkerError
├── PipelinesNotLoaded    at start: correct it, then start again
├── PremisesUnusable      at start: the same
├── SpawnerDied           the worker ends; its supervisor starts it again
└── ChildSpokeNonsense    ends one attempt
"""


class WorkerError(Exception):
    """The worker cannot do this."""

    def __init__(self, **facts: object) -> None:
        text = " ".join((type(self).__doc__ or "").split())
        super().__init__(text.format(**facts))


class PipelinesNotLoaded(WorkerError):
    """The pipelines cannot be loaded: {why}. Correct HEADGATE_PIPELINES or the modules it names, then start again."""


class PremisesUnusable(WorkerError):
    """Attempts cannot have their folders in {folder}: {why}. Set HEADGATE_WORKSPACES to a folder that this user may
    write to, and HEADGATE_INSTANCE to a name that no other worker has, then start again."""


class SpawnerDied(WorkerError):
    """The process that attempts are forked from has died, and every attempt with it. Start the worker again."""


class ChildSpokeNonsense(WorkerError):
    """The process of {name} said what it has no business to say. Its attempt fails, and another may do the same."""
