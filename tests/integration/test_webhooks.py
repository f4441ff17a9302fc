"""Webhooks over a real server and real HTTP: signed, told again with pauses, and only to hosts that policy lists, at
addresses that were looked at."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from nats.aio.client import Client

from headgate_contracts import JobEvent, advance
from libs.eventlog import JetStreamLog
from libs.eventlog.dispatches import EventDispatches, JetStreamDispatch
from libs.policy import Policy
from libs.runtime.clock import SystemClock
from libs.runtime.eventually import eventually
from libs.runtime.lifecycle import Loop
from services.notifier.calling import Caller, Resolve, client, resolved
from services.notifier.receivers import receivers_in
from services.notifier.webhooks import CONSUMER, EVENTS, SENDERS, Webhooks, pause_s
from tests.fixtures.lives import life_of, submission
from tests.fixtures.logs import connected, opened

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
ENDED = "queued cancelled"
ENDLESS = -1
ASKS = "queued dispatched started scaffold code deps checks awaiting_confirmation"


@dataclass
class Receiver:
    """Another team's server: answers with these statuses, then with 204."""

    statuses: list[int] = field(default_factory=list[int])
    calls: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, dict[str, str], bytes]])
    port: int = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.calls.append((first.split(" ")[1], headers, body))
        status = self.statuses.pop(0) if self.statuses else 204
        if status == ENDLESS:
            await self._trickle(writer)
            return
        extra = f"Location: http://{self.host}/elsewhere\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} x\r\n{extra}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async def _trickle(self, writer: asyncio.StreamWriter) -> None:
        """A header and then another, for ever."""
        with suppress(ConnectionError):
            writer.write(b"HTTP/1.1 200 x\r\n")
            while True:
                writer.write(b"X-More: y\r\n")
                await writer.drain()
                await asyncio.sleep(0.05)


@asynccontextmanager
async def receiving(*statuses: int) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(statuses))
    server = await asyncio.start_server(receiver.hear, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


@asynccontextmanager
async def calling(
    nc: Client,
    log: JetStreamLog,
    *,
    hosts: tuple[str, ...] = (),
    public: tuple[str, ...] = (),
    tries: int = 8,
    timeout_s: float = 2,
    resolve: Resolve = resolved,
    secrets: Mapping[str, list[str]] | None = None,
    trusting: ssl.SSLContext | None = None,
) -> AsyncIterator[list[str]]:
    """What became of each call. `hosts` are of our own network, as all are here; `public` are not meant to be."""
    outcomes: list[str] = []
    rules = {"hosts": public, "internal": hosts, "timeout_s": timeout_s, "tries": tries, "first_pause_s": 0.05}
    policy, clock = Policy.model_validate({"webhooks": rules}), SystemClock()
    receivers = receivers_in(json.dumps(secrets or {host: [SECRET] for host in (*hosts, *public)}))
    dispatches = EventDispatches(nc, name=CONSUMER, events=EVENTS, within_s=10, max_tries=tries, clock=clock)
    await dispatches.start()
    async with client(2, verify=trusting or True) as http:
        caller = Caller(http, policy.webhooks, resolve)
        webhooks = Webhooks(dispatches, log, caller, policy, clock, receivers, outcomes.append)
        running = Loop("webhooks", webhooks.run)
        await running.start()
        try:
            yield outcomes
        finally:
            await running.stop()
            await dispatches.stop()


async def write(log: JetStreamLog, job_id: str, story: str, *, url: str | None) -> list[JobEvent]:
    job, events = None, life_of(job_id, story, submission=submission(notify_url=url))
    for event in events:
        await log.append(event, after=job)
        job = advance(job, event, seq=(await log.mark()).seq)
    return events


async def test_a_job_that_asks_calls_its_url_signed(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving() as there,
        calling(nc, log, hosts=(there.host,)),
    ):
        events = await write(log, "job-1", ASKS, url=f"http://{there.host}/hooks?team=7")
        await eventually(lambda: len(there.calls) == 1)

    [(path, headers, body)] = there.calls
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(b"s" * 32, signed, hashlib.sha256)).decode()
    assert (path, headers["webhook-id"]) == ("/hooks?team=7", events[-1].id)
    assert headers["webhook-signature"] == f"v1,{expected}"
    told = json.loads(body)
    assert (told["type"], told["data"]["status"]) == (
        "dev.headgate.job.awaiting_confirmation.v1",
        "awaiting_confirmation",
    )


async def test_a_host_that_fails_is_called_again_with_the_same_id_until_it_takes_it(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving(500, 302, 429) as there,
        calling(nc, log, hosts=(there.host,)) as outcomes,
    ):
        await write(log, "job-1", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 4)
        await write(log, "job-2", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 5)

    ids = [headers["webhook-id"] for _, headers, _ in there.calls]
    assert (len(set(ids[:4])), ids[4] != ids[3]) == (1, True)
    assert outcomes[:4] == ["refused", "refused", "refused", "taken"]
    assert {path for path, _, _ in there.calls} == {"/hooks"}  # no redirect was followed


async def test_a_host_that_never_ends_its_answer_holds_up_nobody(nats_url: str) -> None:
    """As many at once as there are senders: each is let go in its time, and what comes after them is called."""
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving(*[ENDLESS] * SENDERS) as there,
        calling(nc, log, hosts=(there.host,), timeout_s=0.3),
    ):
        for number in range(SENDERS + 1):
            await write(log, f"job-{number}", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) >= 2 * SENDERS + 1)

    assert len({headers["webhook-id"] for _, headers, _ in there.calls}) == SENDERS + 1


async def test_after_so_many_tries_it_is_let_go(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving(500, 500, 500, 500) as there,
        calling(nc, log, hosts=(there.host,), tries=2) as outcomes,
    ):
        await write(log, "job-1", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 2)
        there.statuses.clear()
        await write(log, "job-2", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 3)

    ids = [headers["webhook-id"] for _, headers, _ in there.calls]
    assert [ids.count(each) for each in dict.fromkeys(ids)] == [2, 1]
    assert outcomes[:3] == ["refused", "refused", "let go"]


async def test_nobody_else_is_called(nats_url: str) -> None:
    """No job without a url, no host that policy does not list, no event that is neither a question nor an end."""
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving() as there,
        calling(nc, log, hosts=(there.host,)),
    ):
        await write(log, "job-1", ENDED, url=None)
        await write(log, "job-2", ENDED, url="http://169.254.169.254/latest")
        await write(log, "job-3", ENDED, url=f"http://user:word@{there.host}/hooks")
        await write(log, "job-4", "queued dispatched", url=f"http://{there.host}/hooks")
        await write(log, "job-5", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: bool(there.calls))

    assert [json.loads(body)["data"]["job_id"] for _, _, body in there.calls] == ["job-5"]


async def test_what_one_replica_leaves_another_calls(nats_url: str) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        connected(nats_url) as other,
        receiving() as there,
        calling(nc, log, hosts=(there.host,)),
    ):
        await write(log, "job-1", ENDED, url=f"http://{there.host}/hooks")
        await eventually(lambda: len(there.calls) == 1)
        await write(log, "job-2", ENDED, url=f"http://{there.host}/hooks")
        async with calling(other, log, hosts=(there.host,)):
            await eventually(lambda: len(there.calls) == 2)

    assert [json.loads(body)["data"]["job_id"] for _, _, body in there.calls] == ["job-1", "job-2"]


class Resolver:
    """Ours: gives these answers one after the other, the last one for ever."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer.split()


async def test_each_receiver_hears_its_own_secrets_and_nobody_elses(nats_url: str) -> None:
    secrets = {letter: "whsec_" + base64.b64encode(letter.encode() * 32).decode() for letter in "abc"}
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving() as one,
        receiving() as other,
        calling(
            nc,
            log,
            hosts=(one.host, other.host),
            secrets={one.host: [secrets["b"], secrets["a"]], other.host: [secrets["c"]]},
        ),
    ):
        await write(log, "job-1", ENDED, url=f"http://{one.host}/hooks")
        await write(log, "job-2", ENDED, url=f"http://{other.host}/hooks")
        await eventually(lambda: bool(one.calls and other.calls))

    assert signed_with(one) == ["b", "a"], "two while one takes the other's place, the new one first"
    assert signed_with(other) == ["c"]


def signed_with(there: Receiver) -> list[str]:
    [(_, headers, body)] = there.calls
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    made = {
        f"v1,{base64.b64encode(hmac.digest(letter.encode() * 32, signed, hashlib.sha256)).decode()}": letter
        for letter in "abc"
    }
    return [made.get(signature, "?") for signature in headers["webhook-signature"].split(" ")]


async def test_a_part_of_a_host_without_a_secret_is_not_called(nats_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        receiving() as there,
        calling(nc, log, hosts=(there.host,), secrets={f"{there.host}/ours": [SECRET]}),
    ):
        await write(log, "job-1", ENDED, url=f"http://{there.host}/theirs")
        await write(log, "job-2", ENDED, url=f"http://{there.host}/ours/x")
        await eventually(lambda: bool(there.calls))

    assert [path for path, _, _ in there.calls] == ["/ours/x"]
    assert "HEADGATE_WEBHOOK_SECRETS has none" in caplog.text


async def test_what_was_looked_at_is_what_is_called(nats_url: str) -> None:
    """A name whose second answer leads elsewhere: it is asked once for a call, and the call goes where that led."""
    resolve = Resolver("127.0.0.1", "127.0.0.2")
    async with opened(nats_url) as log, connected(nats_url) as nc, receiving() as there:
        elsewhere = Receiver()
        server = await asyncio.start_server(elsewhere.hear, "127.0.0.2", there.port)
        host = f"hooks.example.com:{there.port}"
        async with server, calling(nc, log, hosts=(host,), resolve=resolve):
            await write(log, "job-1", ENDED, url=f"http://{host}/hooks")
            await eventually(lambda: len(there.calls) + len(elsewhere.calls) == 1)
            assert (len(there.calls), resolve.asked) == (1, [("hooks.example.com", there.port)])
            await write(log, "job-2", ENDED, url=f"http://{host}/hooks")
            await eventually(lambda: len(there.calls) + len(elsewhere.calls) == 2)

    assert len(elsewhere.calls) == 1, "no connection of the first call was used again"
    assert {headers["host"] for _, headers, _ in (*there.calls, *elsewhere.calls)} == {host}


@pytest.mark.parametrize("answers", ["127.0.0.1", "8.8.8.8 127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", ""])
async def test_a_host_that_leads_to_us_is_not_called(
    nats_url: str, caplog: pytest.LogCaptureFixture, answers: str
) -> None:
    resolve = Resolver(answers)
    async with opened(nats_url) as log, connected(nats_url) as nc, receiving() as there:
        host = f"hooks.example.com:{there.port}"
        async with calling(nc, log, public=(host,), resolve=resolve, tries=2):
            await write(log, "job-1", ENDED, url=f"http://{host}/hooks")
            await eventually(lambda: "let go after 2 tries" in caplog.text)

    assert not there.calls
    assert len(resolve.asked) == 2, "it is looked up again at the next try"
    assert "hooks.example.com leads to " in caplog.text


async def test_a_name_that_nobody_knows_is_tried_again(nats_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def knows_none(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host}:{port}")

    async with (
        opened(nats_url) as log,
        connected(nats_url) as nc,
        calling(nc, log, public=("hooks.example.com",), resolve=knows_none, tries=2),
    ):
        await write(log, "job-1", ENDED, url="https://hooks.example.com/hooks")
        await eventually(lambda: "let go after 2 tries" in caplog.text)

    assert "a webhook was not answered by hooks.example.com: gaierror" in caplog.text


async def test_an_address_that_nobody_answers_at_is_not_the_last(nats_url: str) -> None:
    async with opened(nats_url) as log, connected(nats_url) as nc, receiving() as there:
        host = f"hooks.example.com:{there.port}"
        async with calling(nc, log, hosts=(host,), resolve=Resolver("127.0.0.3 127.0.0.1")):
            await write(log, "job-1", ENDED, url=f"http://{host}/hooks")
            await eventually(lambda: len(there.calls) == 1)


async def test_an_address_is_called_as_the_host_that_it_was_found_for(nats_url: str, tmp_path: Path) -> None:
    """Its certificate is that of the name, which is what the server is asked for."""
    ours, theirs = certified("hooks.example.com", tmp_path)
    asked: list[str | None] = []
    theirs.sni_callback = lambda _, name, __: asked.append(name)
    there = Receiver()
    async with opened(nats_url) as log, connected(nats_url) as nc:
        server = await asyncio.start_server(there.hear, "127.0.0.1", 0, ssl=theirs)
        there.port = server.sockets[0].getsockname()[1]
        hosts = tuple(f"{name}.example.com:{there.port}" for name in ("hooks", "other"))
        secrets = {hosts[0]: [SECRET], hosts[1]: ["whsec_" + base64.b64encode(b"o" * 32).decode()]}
        to = Resolver("127.0.0.1")
        async with server, calling(nc, log, hosts=hosts, secrets=secrets, resolve=to, trusting=ours, tries=1):
            await write(log, "job-1", ENDED, url=f"https://{hosts[1]}/hooks")
            await eventually(lambda: asked == ["other.example.com"])
            await write(log, "job-2", ENDED, url=f"https://{hosts[0]}/hooks")
            await eventually(lambda: len(there.calls) == 1)

    assert asked == ["other.example.com", "hooks.example.com"]
    assert json.loads(there.calls[0][2])["data"]["job_id"] == "job-2"


def certified(host: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A client that trusts a certificate of this host, and a server that has it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.load_cert_chain(file)
    return ssl.create_default_context(cafile=str(file)), theirs


class Deaf:
    """Keeps the first cancellation of each sender for itself, as a client may, and gives what is nobody's."""

    def __init__(self) -> None:
        self.asked = 0

    async def next(self) -> JetStreamDispatch:
        self.asked += 1
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return cast("JetStreamDispatch", self)

    record = SimpleNamespace(event=None)

    async def ack(self, *, sure: bool = True) -> None:
        """Nobody knows of it."""


async def test_senders_end_also_where_a_cancellation_is_kept() -> None:
    dispatches, policy, clock = Deaf(), Policy(), SystemClock()
    async with client(2) as http:
        caller = Caller(http, policy.webhooks)
        webhooks = Webhooks(dispatches, cast("JetStreamLog", None), caller, policy, clock, receivers_in(""), [].append)
        running = Loop("webhooks", webhooks.run)
        await running.start()
        await eventually(lambda: dispatches.asked == SENDERS)

        await running.stop()

    assert dispatches.asked == SENDERS, "one of them went on"


@pytest.mark.parametrize(("tries", "expected"), [(1, 10), (2, 20), (5, 160), (50, 3600)])
def test_pauses_double_up_to_an_hour(tries: int, expected: float) -> None:
    assert pause_s(tries, first_s=10) == expected
