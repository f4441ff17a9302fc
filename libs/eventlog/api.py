"""The questions that Headgate asks JetStream, each by its own subject. Refuses direct get: a replica may be behind.

nats-py has methods for most of them, but drops settings that it does not know and reads times as floats.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic_core import from_json, to_json

from libs.eventlog.edge import NO_MESSAGE, fault_in, translated
from libs.eventlog.errors import EpochDiffers, WentBack
from libs.eventlog.values import Mark

ANSWER_WITHIN_S = 2.0
EPOCH_KEY = "headgate.epoch"  # in the metadata of JOBS


@dataclass(frozen=True, slots=True)
class StreamState:
    """What a stream's leader says of it."""

    config: Mapping[str, Any]
    first_seq: int
    last_seq: int
    held_bytes: int
    leader: str | None
    peers: frozenset[str]  # the servers that keep it, by name; one that has been away for some 10 s is left out

    @property
    def epoch(self) -> str | None:
        return self.config.get("metadata", {}).get(EPOCH_KEY)


def require_same_log(jobs: StreamState, seen: Mark) -> None:
    """The log may have grown since it was seen. It may not be another one, and it may not be shorter."""
    if jobs.epoch != seen.epoch:
        raise EpochDiffers(found=jobs.epoch, seen=seen.epoch)
    if jobs.last_seq < seen.seq:
        raise WentBack(found=jobs.last_seq, seen=seen.seq)


async def ask(nc: Client, verb: str, *, stream: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the stream's leader, or of the cluster's leader for changes; its error is raised as ours."""
    with translated(stream):
        reply = await nc.request(f"$JS.API.{verb}.{stream}", to_json(question), timeout=ANSWER_WITHIN_S)
    answer: dict[str, Any] = from_json(reply.data)
    if "error" in answer:
        raise fault_in(answer["error"], about=stream)
    return answer


async def message_in(nc: Client, stream: str, question: Mapping[str, Any]) -> dict[str, Any] | None:
    """One message, from the leader; null where there is none."""
    with translated(stream):
        reply = await nc.request(f"$JS.API.STREAM.MSG.GET.{stream}", to_json(question), timeout=ANSWER_WITHIN_S)
    answer: dict[str, Any] = from_json(reply.data)
    error: dict[str, Any] | None = answer.get("error")
    if error is None:
        return answer["message"]
    if error["err_code"] == NO_MESSAGE:
        return None
    raise fault_in(error, about=stream)


async def subjects_of(nc: Client, stream: str, subject_filter: str) -> list[str]:
    """Every subject of the stream that has a message now. The leader tells them by the 100,000."""
    found = list[str]()
    while True:
        question = {"subjects_filter": subject_filter, "offset": len(found)}
        answer = await ask(nc, "STREAM.INFO", stream=stream, question=question)
        page: dict[str, int] = answer["state"].get("subjects") or {}
        found += page
        if not page or len(found) >= answer.get("total", 0):
            return found


async def state_of(nc: Client, stream: str) -> StreamState:
    """Settings, both ends and whereabouts of a stream."""
    answer = await ask(nc, "STREAM.INFO", stream=stream, question={})
    state, cluster = answer["state"], answer.get("cluster", {})
    leader: str | None = cluster.get("leader")
    replicas: list[dict[str, Any]] = cluster.get("replicas") or []
    peers = {replica["name"] for replica in replicas if replica["current"]}
    return StreamState(
        config=answer["config"],
        first_seq=state["first_seq"],
        last_seq=state["last_seq"],
        held_bytes=state["bytes"],
        leader=leader,
        peers=frozenset(peers | {leader} if leader else peers),
    )


async def listen(nc: Client, subject: str, *, hear: Callable[[Msg], Awaitable[None]]) -> Subscription:
    """Hear what is sent there. Nothing is dropped: who asks must know how much may come."""
    with translated(subject):
        return await nc.subscribe(subject, cb=hear, pending_msgs_limit=0, pending_bytes_limit=0)  # pyright: ignore[reportUnknownMemberType] - one parameter is a Future of nobody knows what
