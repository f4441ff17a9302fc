"""A company's proxy: it opens whatever passes through, and signs it with an authority that only its machines trust.

async with company(folder) as proxy:
    proxy.port, proxy.authority      what a machine of the company is told
    proxy.opened                     the hosts that were asked through it
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

A_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Proxy:
    port: int
    authority: Path
    opened: list[str] = field(default_factory=list)


@asynccontextmanager
async def company(folder: Path) -> AsyncIterator[Proxy]:
    key = ec.generate_private_key(ec.SECP256R1())
    authority = folder / "company.crt"
    authority.write_bytes(_certificate("a company", key, signed_by=key).public_bytes(Encoding.PEM))
    opened: list[str] = []

    def as_host(host: str) -> ssl.SSLContext:
        opened.append(host)
        own = ec.generate_private_key(ec.SECP256R1())
        pair = folder / f"{host}.pem"
        pair.write_bytes(
            own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + _certificate(host, own, signed_by=key).public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        return context

    server = await asyncio.start_server(partial(_opens, as_host), "127.0.0.1", 0)
    async with server:
        yield Proxy(server.sockets[0].getsockname()[1], authority, opened)


async def _opens(
    as_host: Callable[[str], ssl.SSLContext], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):  # a caller that leaves
        asked = await reader.readuntil(b"\r\n\r\n")
        host, _, port = asked.split()[1].decode().rpartition(":")
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.start_tls(as_host(host))
        from_there, to_there = await asyncio.open_connection(host, int(port), ssl=True)
        await asyncio.gather(_passed_on(reader, to_there), _passed_on(from_there, writer))


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(65_536):
            writer.write(some)
            await writer.drain()
    finally:
        writer.close()


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, *, signed_by: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named("a company"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - A_DAY)
        .not_valid_after(now + A_DAY)
        .add_extension(x509.BasicConstraints(ca=key is signed_by, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signed_by.public_key()), critical=False)
    )
    if key is not signed_by:
        built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return built.sign(signed_by, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
