"""Keys by URL: read from a real server, kept while it is away, read again when it is back."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest

from libs.runtime.clock import ManualClock
from libs.runtime.errors import KeysAway
from libs.runtime.keys import KeyPair, jwks
from libs.runtime.keysets import LARGEST_SET, Keys, read_source

FIRST, SECOND = KeyPair.generate(), KeyPair.generate("ES256")


class Issuer:
    """A server of one key set that can go away and come back on its port."""

    def __init__(self) -> None:
        self.body = jwks(FIRST)
        self.status = 200
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/keys"

    def start(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(issuer.status)
                self.send_header("Content-Length", str(len(issuer.body)))
                self.end_headers()
                self.wfile.write(issuer.body)

            def log_message(self, *args: object, **_: object) -> None: ...

        self._server = HTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    made.start()
    yield made
    made.stop()


async def test_an_issuer_that_goes_away_and_comes_back_with_a_new_key(issuer: Issuer, clock: ManualClock) -> None:
    keys = Keys([issuer.url], clock=clock)
    await keys.load()

    issuer.stop()
    await clock.advance_ms(300_000)
    assert await keys.find(FIRST.kid) is not None  # asked for again, in vain
    with pytest.raises(KeysAway):
        await keys.find(SECOND.kid)

    issuer.body = jwks(SECOND)
    issuer.start()
    await clock.advance_ms(30_000)
    assert await keys.find(SECOND.kid) is not None
    assert await keys.find(FIRST.kid) is None


async def test_an_issuer_that_is_away_at_start_is_found_later(issuer: Issuer, clock: ManualClock) -> None:
    issuer.stop()
    keys = Keys([issuer.url], clock=clock)
    with pytest.raises(KeysAway):
        await keys.load()

    issuer.start()
    await clock.advance_ms(1_000)
    await keys.load()

    assert await keys.find(FIRST.kid) is not None


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, jwks(FIRST)), (404, b""), (200, b"<html>"), (200, b" " * (LARGEST_SET + 1))],
    ids=["a fault", "nothing there", "no key set", "more than anybody's keys"],
)
async def test_an_answer_that_is_no_key_set_counts_as_away(
    issuer: Issuer, clock: ManualClock, status: int, body: bytes
) -> None:
    issuer.status, issuer.body = status, body

    with pytest.raises(KeysAway):
        await Keys([issuer.url], clock=clock).load()


async def test_an_answer_that_is_a_fault_leaves_no_connection_open(issuer: Issuer) -> None:
    issuer.status = 500

    with pytest.raises(HTTPError) as raised:
        await read_source(issuer.url)

    assert raised.value.closed


async def test_a_file_is_read_again_when_a_key_is_unknown(tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(jwks(FIRST))
    keys = Keys([str(file)], clock=clock)
    assert await keys.find(FIRST.kid) is not None

    file.write_bytes(jwks(FIRST, SECOND))
    await clock.advance_ms(30_000)

    assert await keys.find(SECOND.kid) is not None
