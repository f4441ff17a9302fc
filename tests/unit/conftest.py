"""Unit tests reach nothing: no socket can be opened but the pair that asyncio wakes itself with."""

import pytest
from pytest_socket import disable_socket


def pytest_runtest_setup(item: pytest.Item) -> None:
    disable_socket(allow_unix_socket=True)
