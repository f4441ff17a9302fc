"""Unit tests reach nothing: no socket can be opened but the pair that asyncio wakes itself with."""

from collections.abc import AsyncIterator

import pytest
from pytest_socket import disable_socket

from tests.fixtures.desk import Desk
from tests.fixtures.hall import Hall, patient


def pytest_runtest_setup(item: pytest.Item) -> None:
    disable_socket(allow_unix_socket=True)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """Admission over an open view and an empty log."""
    desk = Desk()
    await desk.fold()
    yield desk
    await desk.index.close()


@pytest.fixture
def hall() -> Hall:
    """A notifier over an empty log, before a client that waits."""
    return Hall(patient())
