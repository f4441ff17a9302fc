"""Debian's Prometheus and Alertmanager beside a running Headgate, as processes of this machine.

Own their folders, their configuration and the list of what is scraped. Neither is brought by a wheel: where one is not
installed, a fault says how to. They listen on the loopback address alone.
"""

import json
import shutil
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx2

from libs.local.errors import ProgramMissing
from libs.local.monitoring.rules import AlertRules
from libs.local.ports import free_ports, is_free
from libs.local.process import ServerProcess
from libs.local.service import HOST
from libs.local.up_file import UpFile

JOB: Final = "headgate"
KEPT_FOR: Final = "15d"


class MonitoringServer(ServerProcess):
    """One of the two. `port` is taken where it is free, else another."""

    programs: tuple[str, ...]  # its names: Debian's is not its authors' own

    def __init__(self, folder: Path, *, name: str, port: int | None = None) -> None:
        super().__init__(name=name, folder=folder)
        self.program = found(*self.programs)
        self.port = port if port and is_free(port) else free_ports(1)[0]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def choose_ports(self) -> None:
        self.port = free_ports(1)[0]

    def write(self, name: str, content: object) -> Path:
        """As JSON, which is YAML too; a reader sees the old one or the new one, and no half of either."""
        return self.write_text(name, json.dumps(content, indent=2) + "\n")

    def write_text(self, name: str, text: str) -> Path:
        path = self.folder / name
        new = path.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        return new.replace(path)


class AlertmanagerServer(MonitoringServer):
    """Shows what fires on its page, and tells nobody."""

    ready_line = "Listening"
    programs = ("prometheus-alertmanager", "alertmanager")

    def __init__(self, folder: Path, *, port: int | None = None) -> None:
        super().__init__(folder, name="alertmanager", port=port)

    def prepare(self) -> list[str]:
        quiet = {"route": {"receiver": "page", "group_by": ["alertname"]}, "receivers": [{"name": "page"}]}
        return [
            self.program,
            f"--config.file={self.write('alertmanager.yml', quiet)}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address={HOST}:{self.port}",
            "--cluster.listen-address=",  # it is alone
        ]


class PrometheusServer(MonitoringServer):
    """Scrapes what `watch` was told last, each `every_s`, and looks at the rules as often."""

    ready_line = "Server is ready to receive web requests"
    programs = ("prometheus",)

    def __init__(
        self,
        folder: Path,
        *,
        rules: AlertRules,
        alertmanager: AlertmanagerServer,
        every_s: int,
        port: int | None = None,
    ) -> None:
        super().__init__(folder, name="prometheus", port=port)
        self._rules = rules
        self._alertmanager = alertmanager
        self._every_s = every_s
        self._told: list[Mapping[str, Any]] = []

    async def pages(self) -> str:
        """Where its pages are: Debian's has the classic ones alone, below another path."""
        async with httpx2.AsyncClient() as http:
            there = await http.get(f"{self.url}/alerts")
        return f"{self.url}/classic" if there.status_code == HTTPStatus.NOT_FOUND else self.url

    def watch(self, up: UpFile) -> None:
        """These services from now on."""
        told = [_target(service.name, service.url) for service in up.services]
        if told != self._told:
            self._told = told
            self.folder.mkdir(parents=True, exist_ok=True)
            self.write("targets.json", told)

    def prepare(self) -> list[str]:
        self.write("targets.json", self._told)
        return [
            self.program,
            f"--config.file={self.write('prometheus.yml', self._configuration())}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--storage.tsdb.retention.time={KEPT_FOR}",
            f"--web.listen-address={HOST}:{self.port}",
        ]

    def _configuration(self) -> Mapping[str, Any]:
        every = f"{self._every_s}s"
        rules = self.write_text("rules.yaml", self._rules.render())
        found = {"files": [str(self.folder / "targets.json")], "refresh_interval": every}
        return {
            "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": JOB, "file_sd_configs": [found]}],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"{HOST}:{self._alertmanager.port}"]}]}]},
        }


def found(*names: str) -> str:
    """The first of these programs that is installed."""
    for name in names:
        if path := shutil.which(name):
            return path
    raise ProgramMissing(name=names[-1])


def _target(name: str, url: str) -> Mapping[str, Any]:
    """`worker-2` is the second process of the service `worker`."""
    labels = {"service": name.partition("-")[0], "instance": name}
    return {"targets": [url.removeprefix("http://")], "labels": labels}
