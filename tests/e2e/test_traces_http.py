"""The story of a traced job once more, over OTLP by HTTP, as short as can be: no model, no commands, short leases."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from headgate_contracts import Tier
from tests.e2e.test_traces_story import CALLER, RETRIER, goes_through_all, links_to_first, lived, retried
from tests.fixtures.installation import installed
from tests.fixtures.otlp import Receiver

POLICY: Final = """
[tiers.cto_scale]
cycles_per_batch = 1
hard_cap = 2

[leases]
job_s = 3
heartbeat_s = 0.5
leader_s = 2
leader_heartbeat_s = 0.4
"""
STAGES: Final = {"scaffold": 0.02, "code": 0.5, "deps": 0.02, "checks": 0.02}
INPUT: Final = {"stages": STAGES, "failing_cycles": 2, "provider": "ollama"}


async def test_one_trace_over_http_goes_through_a_lost_worker_a_question_and_a_retry(tmp_path: Path) -> None:
    with Receiver() as receiver:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "HEADGATE_INDEX": ""}
        async with (
            installed(tmp_path, policy=POLICY, workers=1, environ=environ) as there,
            there.client("ann", Tier.CTO_SCALE) as ann,
        ):

            async def is_at_work(job: str) -> bool:
                return (await ann.get(f"/jobs/{job}")).json()["status"] == "code"

            first = await lived(there, ann, {"pipeline": "rehearsal", "input": INPUT}, at_work=is_at_work)
            again = await retried(ann, first["id"])
        received = receiver.received()  # what was left was sent at the end

    traces = defaultdict[str, defaultdict[str, list[Span]]](lambda: defaultdict(list))
    for each in received:
        traces[each.span.trace_id.hex()][each.span.name].append(each.span)
    goes_through_all(traces[CALLER[0]], {each.service for each in received if each.span.trace_id.hex() == CALLER[0]})
    links_to_first(traces[RETRIER[0]], traces[CALLER[0]])
    assert (first["debug_id"], again["debug_id"]) == (CALLER[0], RETRIER[0])
