"""One line of JSON for each thing said, on stdout, joined to the trace and the job that it is about.

Owns the shape of a line. Refuses to print what looks like a credential, whoever put it into a message.
"""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from opentelemetry import trace

from libs.runtime.credentials import without_credentials

STANDARD: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"})
OURS: Final = ("libs", "services", "__main__")

_job_id: ContextVar[str | None] = ContextVar("job_id", default=None)


@contextmanager
def about_job(job_id: str) -> Generator[None]:
    """Lines written inside carry this job's id."""
    token = _job_id.set(job_id)
    try:
        yield
    finally:
        _job_id.reset(token)


class JsonFormatter(logging.Formatter):
    def __init__(self, *, service: str, instance: str) -> None:
        super().__init__()
        self._origin = {"service": service, "instance": instance}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _moment(record.created),
            "level": record.levelname,
            **self._origin,
            "message": record.getMessage(),
            **_trace_and_job(),
            **{key: value for key, value in vars(record).items() if key not in STANDARD},
            "logger": record.name,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_credentials(json.dumps(line, default=str))


class JsonLogs:
    """From `start` to `stop` all that is logged goes to the stream: ours from `level` on, others' from WARNING on."""

    def __init__(self, stream: TextIO, *, service: str, instance: str, level: str) -> None:
        self._handler = logging.StreamHandler(stream)
        self._handler.setFormatter(JsonFormatter(service=service, instance=instance))
        self._level = level

    def start(self) -> None:
        logging.getLogger().addHandler(self._handler)
        for name in OURS:
            logging.getLogger(name).setLevel(self._level)

    def stop(self) -> None:
        logging.getLogger().removeHandler(self._handler)
        for name in OURS:
            logging.getLogger(name).setLevel(logging.NOTSET)


def _moment(created_s: float) -> str:
    return datetime.fromtimestamp(created_s, UTC).isoformat(timespec="milliseconds")


def _trace_and_job() -> dict[str, str]:
    said: dict[str, str] = {}
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        said["trace_id"] = trace.format_trace_id(context.trace_id)
    if job_id := _job_id.get():
        said["job_id"] = job_id
    return said
