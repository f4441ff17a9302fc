"""`Headgate.testing()` opens a Headgate in memory; of one that it has opened, `hg.testing` says what goes on there.

What is behind it comes with the server's wheel: the extra `testing`. It is loaded when it is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from headgate.testing import OpenSyncTesting, OpenTesting, SyncTesting, Testing

T = TypeVar("T")


class TestingDoor:
    """Of `Headgate`."""

    @overload
    def __get__(self, hg: None, kind: type[Any]) -> type[OpenTesting]: ...
    @overload
    def __get__(self, hg: object, kind: type[Any]) -> Testing: ...
    def __get__(self, hg: object | None, kind: type[Any]) -> type[OpenTesting] | Testing:
        from headgate.testing import OpenTesting, Testing  # noqa: PLC0415 - it needs Headgate itself

        return OpenTesting if hg is None else _behind(hg, Testing)


class SyncTestingDoor:
    """Of `SyncHeadgate`."""

    @overload
    def __get__(self, hg: None, kind: type[Any]) -> type[OpenSyncTesting]: ...
    @overload
    def __get__(self, hg: object, kind: type[Any]) -> SyncTesting: ...
    def __get__(self, hg: object | None, kind: type[Any]) -> type[OpenSyncTesting] | SyncTesting:
        from headgate.testing import OpenSyncTesting, SyncTesting  # noqa: PLC0415 - it needs SyncHeadgate itself

        return OpenSyncTesting if hg is None else _behind(hg, SyncTesting)


def _behind(hg: object, kind: type[T]) -> T:
    found = getattr(hg, "behind", None)
    if not isinstance(found, kind):
        raise TypeError("this Headgate is none of a test: begin with `Headgate.testing()`")
    return found
