"""Celery: `celery -A of_celery worker`, and the client as a script. Synced, a job is acknowledged when it has ended."""

# pyright: reportMissingImports=false, reportFunctionMemberAccess=false
from __future__ import annotations

import told
from celery import Celery

app = Celery("of_celery", broker=told.URL)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)
if told.SYNCED:
    app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1)


@app.task(name="nothing")
def nothing(number: int) -> None:
    told.started(number)


if __name__ == "__main__":
    told.serve(nothing.delay)
