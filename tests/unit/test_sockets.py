"""The suite's own promise: a unit test reaches nothing."""

import socket

import pytest
from pytest_socket import SocketBlockedError


def test_a_unit_test_cannot_open_a_connection() -> None:
    with pytest.warns(UserWarning, match="tried to use socket"), pytest.raises(SocketBlockedError):
        socket.create_connection(("127.0.0.1", 1))
