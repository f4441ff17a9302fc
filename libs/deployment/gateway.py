"""The gateway as a process of its own, for compose: `python -m libs.deployment.gateway`.

Owns its command line and its life. What it does is in `libs.local.gateway`. It needs nothing but h11, and so does its
image.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence

from libs.local.gateway import Gateway, Routes, Upstream
from libs.runtime.lifecycle import Service


def main(words: Sequence[str] | None = None) -> int:
    """Copies until it is told to stop."""
    args = _parser().parse_args(words)
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    gateway = Gateway(Routes(args.admission, args.notifier), host=args.listen.host, port=args.listen.port)

    async def compose(service: Service) -> None:
        await service.start(gateway)

    return asyncio.run(Service("gateway").run(compose))


def address(text: str) -> Upstream:
    """`host:port`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise ArgumentTypeError(f"{text!r} is not host:port")
    return Upstream(host.strip("[]"), int(port))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m libs.deployment.gateway", description="One port in front of two services.")
    parser.add_argument("--listen", type=address, default="127.0.0.1:8080", metavar="HOST:PORT", help="(%(default)s)")
    parser.add_argument("--admission", type=address, required=True, metavar="HOST:PORT")
    parser.add_argument("--notifier", type=address, required=True, metavar="HOST:PORT")
    return parser


if __name__ == "__main__":
    sys.exit(main())
