"""Where the store meets the client and the names of its keys: nothing of that reaches a server."""

import asyncio
import gc
import inspect
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from redis import exceptions as client
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from libs.capacity.errors import ViewError, ViewLost, ViewMisused, ViewUnavailable
from libs.capacity.keys import KEYS, generation_of, lead_key, ticket_key, view_key
from libs.capacity.lua_files import access_rules
from libs.capacity.scripts import ScriptRunner
from libs.capacity.store_client import open_client
from libs.capacity.store_errors import TRANSLATIONS, translate, translated


def test_every_exception_of_the_client_is_decided_about() -> None:
    """A new version of the client may have a new one: say in store_errors whether its question may be asked again."""
    of_the_client = {kind for _, kind in inspect.getmembers(client, inspect.isclass) if not issubclass(kind, Enum)}

    assert set(TRANSLATIONS) == {kind for kind in of_the_client if kind.__module__ == client.__name__}


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (client.ConnectionError("refused"), ViewUnavailable),
        (client.TimeoutError("5 s"), ViewUnavailable),
        (client.ReadOnlyError("a replica"), ViewUnavailable),
        (client.OutOfMemoryError("used > maxmemory"), ViewUnavailable),
        (client.ResponseError("BUSY a script is running"), ViewUnavailable),
        (client.ResponseError("MISCONF errors writing to disk"), ViewUnavailable),
        (client.ResponseError("WRONGTYPE of a key"), ViewMisused),
        (client.NoPermissionError("this user has no permissions"), ViewMisused),
        (client.AuthenticationError("wrong password"), ViewMisused),
        (client.ResponseError("VIEW_LOST the view is missing"), ViewLost),
    ],
)
def test_each_fault_says_whether_to_ask_again(error: Exception, meaning: type[ViewError]) -> None:
    with pytest.raises(meaning) as raised, translated():
        raise error

    assert raised.value.__cause__ is error
    assert str(error).removeprefix("VIEW_LOST ") in str(raised.value)


def test_a_fault_that_is_not_the_clients_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), translated():
        raise ZeroDivisionError


def test_an_unknown_fault_of_a_known_kind_means_what_its_kind_means() -> None:
    class StaleReplicaError(client.ReadOnlyError):
        pass

    assert type(translate(StaleReplicaError("behind"))) is ViewUnavailable


def test_a_key_says_whose_it_is() -> None:
    assert view_key("main") == "{hg:main}:view"
    assert generation_of(view_key("main")) is None
    assert generation_of(lead_key("main")) is None
    assert generation_of(ticket_key("main", "0" * 64)) is None
    assert generation_of("{hg:main}:tickets:ann") is None
    assert generation_of("{hg:main}:01JB:queue") == "01JB"
    assert generation_of("{hg:main}:01JB:held:user:ann") == "01JB"


@pytest.mark.parametrize("shard", ["", "a b", "a*", "a}", "a:b", "x" * 65])
def test_a_shard_that_is_no_token_is_refused(shard: str) -> None:
    with pytest.raises(ViewMisused, match="shard"):
        view_key(shard)


def test_no_two_keys_are_called_alike() -> None:
    assert len({key.name for key in KEYS}) == len(KEYS)


def test_a_service_is_given_the_commands_of_the_scripts_alone() -> None:
    rules = access_rules("main").split()

    assert rules[:3] == ["~{hg:main}:*", "resetchannels", "-@all"]
    assert {"+evalsha", "+script|load", "+zadd"} <= set(rules)
    assert not {"+eval", "+keys", "+flushall", "+config", "+script|flush"} & set(rules)


async def test_the_client_waits_no_longer_than_it_must_and_asks_again() -> None:
    made = open_client("redis://127.0.0.1:1/0")

    options = made.connection_pool.connection_kwargs
    assert (options["socket_timeout"], options["decode_responses"], options["protocol"]) == (5, True, 2)
    assert options["retry"].get_retries() == 3
    await made.aclose()


async def test_a_fault_that_all_askers_were_cancelled_before_is_no_error(tmp_path: Path) -> None:
    said = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    nowhere = Redis(unix_socket_path=str(tmp_path / "nowhere"), retry=Retry(NoBackoff(), 0))
    asker = asyncio.create_task(ScriptRunner(nowhere, view="v").run("day_used_v1"))
    await asyncio.sleep(0)

    asker.cancel()

    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(left)
    del asker, left
    gc.collect()
    assert said == []
    await nowhere.aclose()
