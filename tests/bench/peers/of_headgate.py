"""A client of Headgate: HTTP on one connection for each user, as `told.py` says. When a job began the log tells."""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection
from urllib.parse import urlsplit

import told

INSTANT = {"stages": {"scaffold": 0, "code": 0, "deps": 0, "checks": 0}}
HOST = urlsplit(told.URL)


class User:
    """One, and the connection that is kept."""

    def __init__(self, name: str, token: str) -> None:
        self.name = name
        self._connection = HTTPConnection(HOST.hostname or "", HOST.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def submit(self, number: int) -> None:
        asked = {"project_id": self.name, "pipeline": "rehearsal", "input": INSTANT, "labels": {"n": str(number)}}
        self._connection.request("POST", f"{HOST.path}/v1/jobs", json.dumps(asked), self._headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 202:
            raise RuntimeError(f"not taken: {answer.status} {said!r}")


def main() -> None:
    tokens: dict[str, str] = json.loads(os.environ["BENCH_TOKENS"])
    users = [User(name, token) for name, token in tokens.items()]
    told.serve(lambda number: users[number % len(users)].submit(number))


if __name__ == "__main__":
    main()
