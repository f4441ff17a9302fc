"""What the Redis client raises, in the view's own words: the one place that translates.

A test compares the table with the client's own list of exceptions, so that a new one is decided about.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from redis import exceptions as client

from libs.capacity.errors import ViewError, ViewLost, ViewMisused, ViewUnavailable

LOST: Final = "VIEW_LOST"  # the first word of a script's refusal

# Errors that redis-py has no class for, by the server's first word: the server cannot take the question now.
UNAVAILABLE_WORDS: Final = frozenset({"BUSY", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS", "UNBLOCKED"})

TRANSLATIONS: Final[Mapping[type[Exception], type[ViewError]]] = MappingProxyType(
    {
        # the server does not answer, or not now, or not this one
        client.AskError: ViewUnavailable,
        client.BusyLoadingError: ViewUnavailable,
        client.ClusterDownError: ViewUnavailable,
        client.ClusterError: ViewUnavailable,
        client.ConnectionError: ViewUnavailable,
        client.InvalidResponse: ViewUnavailable,
        client.MasterDownError: ViewUnavailable,
        client.MaxConnectionsError: ViewUnavailable,
        client.MovedError: ViewUnavailable,
        client.NoScriptError: ViewUnavailable,  # given twice and forgotten twice: somebody flushes scripts in a loop
        client.OutOfMemoryError: ViewUnavailable,
        client.ReadOnlyError: ViewUnavailable,  # a replica, after a failover
        client.SlotNotCoveredError: ViewUnavailable,
        client.TimeoutError: ViewUnavailable,
        client.TryAgainError: ViewUnavailable,
        # the question is wrong, or it is not ours to ask
        client.AuthenticationError: ViewMisused,
        client.AuthenticationWrongNumberOfArgsError: ViewMisused,
        client.AuthorizationError: ViewMisused,
        client.ChildDeadlockedError: ViewMisused,
        client.ClusterCrossSlotError: ViewMisused,
        client.CrossSlotTransactionError: ViewMisused,
        client.DataError: ViewMisused,
        client.ExecAbortError: ViewMisused,
        client.ExternalAuthProviderError: ViewMisused,
        client.IncorrectPolicyType: ViewMisused,
        client.InvalidPipelineStack: ViewMisused,
        client.LockError: ViewMisused,
        client.LockNotOwnedError: ViewMisused,
        client.ModuleError: ViewMisused,
        client.NoPermissionError: ViewMisused,
        client.NoSuchFieldsetError: ViewMisused,
        client.PubSubError: ViewMisused,
        client.RedisClusterException: ViewMisused,
        client.RedisError: ViewMisused,
        client.ResponseError: ViewMisused,
        client.WatchError: ViewMisused,
    }
)


@contextmanager
def translated() -> Generator[None]:
    """Around every word that is said to the server."""
    try:
        yield
    except tuple(TRANSLATIONS) as error:
        raise translate(error) from error


def translate(error: Exception) -> ViewError:
    word = str(error).partition(" ")[0]
    if word == LOST:
        return ViewLost(str(error).removeprefix(LOST).strip())
    if type(error) is client.ResponseError and word in UNAVAILABLE_WORDS:
        return ViewUnavailable(str(error))
    known = (TRANSLATIONS[kind] for kind in type(error).__mro__ if kind in TRANSLATIONS)
    return next(known, ViewMisused)(f"{type(error).__name__}: {error}")
