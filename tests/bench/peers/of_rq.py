"""RQ: `rq worker-pool`, a process for each job, and the client as a script."""

# pyright: reportMissingImports=false
from __future__ import annotations

import told
from redis import Redis
from rq import Queue


def nothing(number: int) -> None:
    told.started(number)


def main() -> None:
    queue = Queue(connection=Redis.from_url(told.URL))
    told.serve(lambda number: queue.enqueue("of_rq.nothing", number))


if __name__ == "__main__":
    main()
