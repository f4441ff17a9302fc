"""Unit tests reach nothing: no socket can be opened but the pair that asyncio wakes itself with."""

from collections.abc import AsyncIterator

import pytest
from pytest_socket import disable_socket

from tests.fixtures.memory_admission import MemoryAdmission
from tests.fixtures.memory_notifier import MemoryNotifier, patient


def pytest_runtest_setup(item: pytest.Item) -> None:
    disable_socket(allow_unix_socket=True)


@pytest.fixture
async def admission() -> AsyncIterator[MemoryAdmission]:
    """Admission over an open view and an empty log."""
    admission = MemoryAdmission()
    await admission.fold()
    yield admission
    await admission.index.close()


@pytest.fixture
def notifier() -> MemoryNotifier:
    """A notifier over an empty log, before a client that waits."""
    return MemoryNotifier(patient())
