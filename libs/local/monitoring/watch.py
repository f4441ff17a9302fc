"""Prometheus and Alertmanager beside `headgate up`, until Ctrl-C: `make watch`.

    up.json ──each second──► targets ──► Prometheus ──rules──► Alertmanager

Owns when what is scraped changes. It starts and stops nothing of Headgate; either of the two may be started first.
"""

import asyncio
import signal
import sys
from contextlib import suppress
from typing import Final

from libs.local.errors import LocalServerError
from libs.local.monitoring.rules import AlertRules
from libs.local.monitoring.servers import AlertmanagerServer, PrometheusServer
from libs.local.settings import UpSettings, read_up_settings
from libs.local.up_file import read_up_file

EVERY_S: Final = 5
LOOK_EVERY_S: Final = 1.0
PORT, ALERTMANAGER_PORT = 9090, 9093  # their own; where one is taken, another


def main() -> int:
    try:
        return asyncio.run(_watch(read_up_settings({})))
    except LocalServerError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1


async def _watch(settings: UpSettings) -> int:
    root = settings.state.absolute()
    alertmanager = AlertmanagerServer(root / "alertmanager", port=ALERTMANAGER_PORT)
    prometheus = PrometheusServer(
        root / "prometheus", rules=AlertRules(), alertmanager=alertmanager, every_s=EVERY_S, port=PORT
    )
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    try:
        await alertmanager.start()
        await prometheus.start()
        _say(await prometheus.pages(), alertmanager.url, settings)
        while not told.is_set():
            if up := read_up_file(root / "up.json"):
                prometheus.watch(up)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await told.wait()
    finally:
        await prometheus.stop()
        await alertmanager.stop()
    return 0


def _say(prometheus: str, alertmanager: str, settings: UpSettings) -> None:
    runs = read_up_file(settings.state / "up.json") is not None
    sys.stdout.write(
        f"What `make up` runs in {settings.state} is watched:\n\n"
        f"  {prometheus}/alerts   which alerts there are, and which fire\n"
        f"  {prometheus}/graph    any question: headgate_queue_length\n"
        f"  {prometheus}/targets  who is scraped\n"
        f"  amtool --alertmanager.url={alertmanager} alert   what fires now (Debian leaves its page out)\n\n"
        + ("" if runs else "Nothing runs there yet: it is watched once `make up` says that it is ready.\n")
        + "docs/operations.md says what each alert is about. Ctrl-C stops the watch and nothing else.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
