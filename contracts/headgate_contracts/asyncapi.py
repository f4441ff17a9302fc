"""The AsyncAPI 3 document: what Headgate sends, on which subjects, and how a stranger reads it.

Owns the words about the channels. The messages are the models' own schemas, the facts about the stream those that
`migrate` sets. Everything is said once, here: no other document repeats it by hand.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from headgate_contracts.envelope import CONTENT_TYPE, DATA_BY_TYPE, MAX_EVENT_BYTES
from headgate_contracts.events import Data, JobData, SchedulerCommitted
from headgate_contracts.subjects import JOBS_PREFIX, LOG_SUBJECTS, OPS_PREFIX, SCHED_PREFIX
from headgate_contracts.vocabulary import EventName

Schema = dict[str, Any]

ABOUT: Final = """Everything that happens to a job in Headgate is one event in one log on NATS JetStream.

Read it with durable consumers of your own and the credentials of your team: `headgate teams add` makes both. Delivery
is at least once; `id` is an event's own for ever, and so is (`data.job_id`, `sequence`).
Ignore fields and types that you do not know: within v1 both are added, and nothing is changed or taken away.

Messages are CloudEvents 1.0 in structured mode: the body is the whole event as JSON. `sequence` is an extension
attribute, an Integer. A user or project id is a token: the id itself, or `x-` and 26 letters and digits that stand for
one which does not fit a subject, in subjects and in data alike."""

OWN_CONSUMERS: Final = ("worker-<pool>", "webhooks")
STREAM: Final = {
    "name": "JOBS",
    "subjects": list(LOG_SUBJECTS),
    "storage": "file",
    "retention": "limits",
    "discard": "new",
    "denyDelete": True,
    "denyPurge": True,
    "allowDirect": True,
    "maxAgeDays": 90,
    "epoch": "headgate.epoch",
    "notes": [
        "90 days are the default; an installation may keep events longer or shorter.",
        "A full stream refuses new events and forgets none.",
        "The stream's metadata name its epoch. Where that has changed it is another stream: its sequences begin anew.",
    ],
}
CONSUMER: Final = {
    "request": "$JS.API.CONSUMER.CREATE.JOBS.<durable_name>",
    "config": {
        "durable_name": "<your team>-<what for>",
        "filter_subjects": [
            f"{JOBS_PREFIX}.*.*.*.ready",
            f"{JOBS_PREFIX}.*.*.*.failed",
            f"{JOBS_PREFIX}.*.*.*.cancelled",
        ],
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": 30_000_000_000,
        "max_ack_pending": 1000,
    },
    "notes": [
        "A durable pull consumer: asked for again with the same settings it is the same one, and goes on where it was.",
        "`ack_wait` is in nanoseconds. What is not acknowledged by then is delivered again.",
        "A filter is a channel's address with `*` for each parameter; `headgate.jobs.v1.>` is all events of all jobs.",
        "`deliver_policy` `all` begins with the oldest event there is, `new` with the next one.",
        "Fetch with `$JS.API.CONSUMER.MSG.NEXT.JOBS.<durable_name>`; the clients of NATS do all of it for you.",
        f"The names {', '.join(OWN_CONSUMERS)} are Headgate's own and refused.",
        "A team's consumers are made for it, with these settings and its own filter.",
        "Where `headgate up` runs, the user of `nats_url` makes its own, by the request above.",
    ],
}
RIGHTS: Final = (
    "A NATS user of your team's own, `team-<name>`, in an account of its own. It may pull from your team's consumers,"
    " look at them and acknowledge, and nothing else: it makes no consumer, publishes no event, and reads what its"
    " consumers' filters let through. `headgate teams add <name>` gives it, `teams remove <name>` takes it back."
)
ORDERING: Final = (
    "The stream is one order. A job's events come in the order of their `sequence`, which counts from 1 without a gap."
)
_PARAMETERS: Final = {
    "job": "The job's id: 1 to 40 of A-Z a-z 0-9 _ -.",
    "user": "The user's token: the id itself, or x- and 26 letters and digits where it does not fit a token.",
    "project": "The project's token, likewise.",
    "pool": "The pool whose workers may claim the attempt.",
    "shard": "The scheduler's shard; `main` where there is one.",
}


def document(definitions: Mapping[str, Schema], *, version: str) -> dict[str, Any]:
    """The whole document. `definitions` are all schemas, by the names that references use."""
    return {
        "asyncapi": "3.0.0",
        "id": "urn:headgate:events",
        "info": _info(version),
        "defaultContentType": CONTENT_TYPE,
        "servers": {"nats": _server()},
        "channels": dict(_channels()),
        "operations": dict(_operations()),
        "components": {
            "messages": {name: _message(name) for name in DATA_BY_TYPE},
            "schemas": {name: _embedded(schema) for name, schema in sorted(definitions.items())},
            "securitySchemes": {
                "readOnly": {
                    "type": "userPassword",
                    "description": RIGHTS,
                }
            },
        },
    }


def _info(version: str) -> dict[str, Any]:
    return {
        "title": "Headgate events",
        "version": version,
        "description": ABOUT,
        "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        "x-jetstream": {"stream": STREAM, "consumer": CONSUMER, "ordering": ORDERING, "maxEventBytes": MAX_EVENT_BYTES},
    }


def _server() -> dict[str, Any]:
    return {
        "host": "{host}:{port}",
        "protocol": "nats",
        "description": "The NATS servers of an installation.",
        "variables": {"host": {"default": "127.0.0.1"}, "port": {"default": "4222"}},
        "security": [{"$ref": "#/components/securitySchemes/readOnly"}],
    }


def addresses() -> dict[str, str]:
    """Where each type of event is published, with a parameter for each token that varies."""
    return {name: _address(data) for name, data in DATA_BY_TYPE.items()}


def _channels() -> Iterator[tuple[str, dict[str, Any]]]:
    for data in DATA_BY_TYPE.values():
        yield _channel_name(data), _channel(_address(data), data)


def _address(data: type[Data]) -> str:
    if issubclass(data, SchedulerCommitted):
        return f"{SCHED_PREFIX}.{{shard}}"
    if not issubclass(data, JobData):
        return f"{OPS_PREFIX}.{data.ACT.value}"
    pool = ".{pool}" if data.EVENT is EventName.DISPATCHED else ""
    return f"{JOBS_PREFIX}.{{job}}.{{user}}.{{project}}.{data.EVENT.value}{pool}"


def _channel(address: str, data: Any) -> dict[str, Any]:
    named = {name: {"description": text} for name, text in _PARAMETERS.items() if f"{{{name}}}" in address}
    channel: dict[str, Any] = {"address": address, "description": data.__doc__.splitlines()[0]}
    if named:
        channel["parameters"] = named
    message = data.type_name()
    channel["messages"] = {_key(message): {"$ref": f"#/components/messages/{message}"}}
    channel["x-jetstream"] = {"stream": STREAM["name"]}
    return channel


def _operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for data in DATA_BY_TYPE.values():
        channel = _channel_name(data)
        messages = [{"$ref": f"#/channels/{channel}/messages/{_key(data.type_name())}"}]
        yield f"send_{channel}", {"action": "send", "channel": {"$ref": f"#/channels/{channel}"}, "messages": messages}


def _message(name: str) -> dict[str, Any]:
    data = DATA_BY_TYPE[name]
    return {
        "name": name,
        "title": data.__name__,
        "summary": (data.__doc__ or "").splitlines()[0],
        "contentType": CONTENT_TYPE,
        "headers": {
            "type": "object",
            "properties": {
                "Nats-Msg-Id": {"type": "string", "description": "The event's id."},
                "traceparent": {"type": "string", "description": "W3C trace context of the job, where it is traced."},
            },
        },
        "payload": {"$ref": f"#/components/schemas/{data.__name__}Event"},
    }


def _embedded(schema: Any) -> Any:
    """A schema as a part of the document: its references point to the document's own schemas."""
    match schema:
        case list():
            return [_embedded(each) for each in cast("list[Any]", schema)]
        case dict():
            return {word: _moved(word, value) for word, value in cast("Schema", schema).items()}
        case _:
            return schema


def _moved(word: str, value: Any) -> Any:
    return value.replace("#/$defs/", "#/components/schemas/") if word == "$ref" else _embedded(value)


def _channel_name(data: Any) -> str:
    return _key(data.type_name().removeprefix("dev.headgate.").removesuffix(".v1"))


def _key(name: str) -> str:
    return name.replace(".", "_")
