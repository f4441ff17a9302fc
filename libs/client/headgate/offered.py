"""Which verbs both clients offer: a line each. A method waits for its answer where the program has no loop, and is a
coroutine where it has one.

Owns that list. What a verb asks and reads is its script; the few that answer with a job or a result in hand stand in
`synchronous` and `asynchronous`, as these differ there.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from headgate import fetching, following, leasing, operating, verbs
from headgate.async_driver import AsyncSpeaker, awaited, streamed
from headgate.exchange import Script, Stream
from headgate.sync_driver import SyncSpeaker, at_once, one_by_one

P = ParamSpec("P")
T = TypeVar("T")


class ScriptMethod(Generic[P, T]):
    """A script as a method of either client."""

    def __init__(self, script: Callable[P, Script[T]]) -> None:
        self._awaited, self._at_once = awaited(script), at_once(script)

    @overload
    def __get__(self, it: AsyncSpeaker, kind: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, it: SyncSpeaker, kind: type[Any]) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, it: None, kind: type[AsyncSpeaker]
    ) -> Callable[Concatenate[AsyncSpeaker, P], Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, it: None, kind: type[SyncSpeaker]) -> Callable[Concatenate[SyncSpeaker, P], T]: ...
    def __get__(self, it: object, kind: type[Any]) -> Any:
        method = self._awaited if issubclass(kind, AsyncSpeaker) else self._at_once
        return method if it is None else method.__get__(it, kind)


class StreamMethod(Generic[P, T]):
    """A script that gives many values, as a method of either client."""

    def __init__(self, script: Callable[P, Stream[T]]) -> None:
        self._streamed, self._one_by_one = streamed(script), one_by_one(script)

    @overload
    def __get__(self, it: AsyncSpeaker, kind: type[Any]) -> Callable[P, AsyncGenerator[T]]: ...
    @overload
    def __get__(self, it: SyncSpeaker, kind: type[Any]) -> Callable[P, Generator[T]]: ...
    @overload
    def __get__(
        self, it: None, kind: type[AsyncSpeaker]
    ) -> Callable[Concatenate[AsyncSpeaker, P], AsyncGenerator[T]]: ...
    @overload
    def __get__(self, it: None, kind: type[SyncSpeaker]) -> Callable[Concatenate[SyncSpeaker, P], Generator[T]]: ...
    def __get__(self, it: object, kind: type[Any]) -> Any:
        method = self._streamed if issubclass(kind, AsyncSpeaker) else self._one_by_one
        return method if it is None else method.__get__(it, kind)


class OperatorVerbs:
    """What only operators may ask."""

    pause = ScriptMethod(operating.pause)
    resume = ScriptMethod(operating.resume)
    move = ScriptMethod(operating.move)
    analytics = ScriptMethod(operating.analytics)
    stats = ScriptMethod(operating.stats)
    attempts = ScriptMethod(operating.attempts)
    groups = ScriptMethod(operating.groups)
    group = ScriptMethod(operating.group)
    set_limit = ScriptMethod(operating.set_limit)
    unset_limit = ScriptMethod(operating.unset_limit)
    release = ScriptMethod(operating.release)
    workers = ScriptMethod(operating.workers)
    remove_pipeline = ScriptMethod(operating.remove_pipeline)
    audit = StreamMethod(operating.audit)
    revoke = ScriptMethod(operating.revoke)
    policy = ScriptMethod(operating.policy)
    reload_policy = ScriptMethod(operating.reload_policy)
    erase = ScriptMethod(operating.erase)


class UserVerbs:
    """What each user may ask about their own."""

    dry_run = ScriptMethod(verbs.dry_run)
    jobs = StreamMethod(verbs.jobs)
    events = StreamMethod(verbs.events)
    all_events = StreamMethod(verbs.all_events)
    lines = StreamMethod(following.lines)
    log = ScriptMethod(verbs.log)
    counts = ScriptMethod(verbs.counts)
    history = ScriptMethod(verbs.history)
    input = ScriptMethod(verbs.job_input)
    explain = ScriptMethod(verbs.explain)
    waits = ScriptMethod(verbs.waits)
    retry_starts = ScriptMethod(verbs.retry_starts)
    files = ScriptMethod(verbs.files)
    file = ScriptMethod(verbs.file)
    content = ScriptMethod(fetching.content)
    save = ScriptMethod(fetching.save)
    extract = ScriptMethod(fetching.extract)
    submit_workflow = ScriptMethod(verbs.submit_workflow)
    workflow = ScriptMethod(verbs.workflow_state)
    cancel_workflow = ScriptMethod(verbs.cancel_workflow)
    take_slot = ScriptMethod(leasing.take_slot)
    extend_slot = ScriptMethod(leasing.extend_slot)
    give_slot_back = ScriptMethod(leasing.give_slot_back)
    usage = ScriptMethod(verbs.usage)
    queue = ScriptMethod(verbs.queue)
    pipelines = ScriptMethod(verbs.pipelines)
