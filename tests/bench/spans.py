"""What a job's spans cost a process that does nothing else, made, encoded and sent: prints milliseconds of CPU a job.

A process of its own, as its CPU is measured, all threads; the receiver is in the one that starts it.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from libs.runtime.spans import step
from libs.runtime.telemetry import Telemetry

JOBS, ROUNDS = 200, 7
ABOUT: Final = {"headgate.job.id": "j0123456789abcdef01234567", "headgate.stage": "code", "headgate.job.attempt": 1}
PARENT: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def main(spans: int) -> None:
    telemetry = Telemetry("bench", instance="bench", logs=None)
    costs = [cost_s(telemetry, spans) for _ in range(ROUNDS + 1)][1:]  # the first one loads and connects
    sys.stdout.write(f"{1000 * min(costs) / JOBS}\n")
    telemetry.tracer_provider.shutdown()


def cost_s(telemetry: Telemetry, spans: int) -> float:
    began_s = time.process_time()
    for _ in range(JOBS):
        with telemetry.message_span("process", "headgate.jobs", job_id=ABOUT["headgate.job.id"], parent=PARENT):
            for _ in range(spans - 1):
                with step("append stage", ABOUT):
                    pass
    telemetry.tracer_provider.force_flush()
    return time.process_time() - began_s


if __name__ == "__main__":
    main(int(sys.argv[1]))
