"""What OpenTelemetry's own variables say of where traces, metrics and logs of a process go.

    OTEL_EXPORTER_OTLP_ENDPOINT       sends all three; …_TRACES_ENDPOINT and so on send one
    OTEL_EXPORTER_OTLP_PROTOCOL       http/protobuf (the default) or grpc, for one signal too
    OTEL_TRACES_EXPORTER and so on    none: this signal is not sent; otlp: it is, to localhost where no endpoint is set
    OTEL_SDK_DISABLED                 true: nothing is recorded at all

Whatever else there is (headers, time-outs, certificates, the sampler, the size of a batch) the SDK reads by itself.
Knows nothing of the SDK, which `headgate up` need not load.
"""

import os
from collections.abc import Mapping
from typing import Final, Literal

from libs.runtime.errors import SettingsWrong

Signal = Literal["traces", "metrics", "logs"]
SIGNALS: Final[tuple[Signal, ...]] = ("traces", "metrics", "logs")
PROTOCOLS: Final = ("http/protobuf", "grpc")


def is_sent(signal: Signal, environ: Mapping[str, str] = os.environ) -> bool:
    exporter = environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip()
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if exporter:
        return exporter == "otlp"
    return any(environ.get(f"OTEL_EXPORTER_OTLP_{of}ENDPOINT") for of in ("", f"{signal.upper()}_"))


def protocol_of(signal: Signal, environ: Mapping[str, str] = os.environ) -> str:
    names = f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    name, told = next(((each, environ[each]) for each in names if environ.get(each)), (names[1], PROTOCOLS[0]))
    if told not in PROTOCOLS:
        raise SettingsWrong([f"{name}: {told!r} cannot be used; set it to {' or '.join(PROTOCOLS)}"])
    return told
