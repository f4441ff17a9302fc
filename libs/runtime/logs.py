"""One line of JSON for each thing said, joined to the trace and the job that it is about. The same over OTLP.

Owns the shape of a line. Refuses to print or send what looks like a credential, however it came into a message.
"""

import json
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from opentelemetry import trace
from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import get_current

from libs.runtime.terminal import without_credentials

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
            **_extras(record),
            "logger": record.name,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_credentials(json.dumps(line, default=str))


class OtlpLogs(logging.Handler):
    """Hands the same on to OpenTelemetry, which sends it. Not what the SDK itself says: that a line could not be sent
    would be a line again."""

    def __init__(self, logger: Logger) -> None:
        super().__init__()
        self._logger = logger
        self.addFilter(lambda record: not record.name.startswith("opentelemetry"))

    def emit(self, record: logging.LogRecord) -> None:
        said = {**_trace_and_job(), **_extras(record), "logger": record.name}
        said.pop("trace_id", None)  # the record has it in a field of its own
        if record.exc_info:
            said["exception"] = (self.formatter or logging.Formatter()).formatException(record.exc_info)
        self._logger.emit(
            timestamp=int(record.created * 1e9),
            context=get_current(),
            severity_number=SeverityNumber(record.levelno // 10 * 4 + 1),  # 10, 20, … become DEBUG, INFO, …
            severity_text=record.levelname,
            body=without_credentials(record.getMessage()),
            attributes={name: _attribute(value) for name, value in said.items()},
        )


class Logs:
    """From `start` to `stop` all that is logged goes to the handlers: ours from `level` on, others' from WARNING on."""

    def __init__(self, handlers: Sequence[logging.Handler], *, level: str) -> None:
        self._handlers = handlers
        self._level = level

    def start(self) -> None:
        for handler in self._handlers:
            logging.getLogger().addHandler(handler)
        for name in OURS:
            logging.getLogger(name).setLevel(self._level)

    def stop(self) -> None:
        for handler in self._handlers:
            logging.getLogger().removeHandler(handler)
        for name in OURS:
            logging.getLogger(name).setLevel(logging.NOTSET)


def json_lines(stream: TextIO, *, service: str, instance: str) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(service=service, instance=instance))
    return handler


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    """What the caller said besides the message."""
    return {key: value for key, value in vars(record).items() if key not in STANDARD}


def _attribute(value: object) -> str | int | float | bool:
    return value if isinstance(value, bool | int | float) else without_credentials(str(value))


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
