"""Commands for operators of a machine: sign a token, set up the log, read it as it grows."""

import asyncio
import base64
import os
import secrets
import sys
import time
from argparse import Namespace
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from nats.aio.client import Client

from headgate_contracts import Event, UnknownEvent
from headgate_contracts.tokens import ulid
from headgate_contracts.vocabulary import Tier
from libs.cli.calling import called
from libs.cli.errors import NotUp, Usage
from libs.cli.output import Output, local_time
from libs.cli.reporting import reported
from libs.cli.target import running_here
from libs.eventlog import JetStreamLog, LogSettings, LogUnavailable, Migrated, Record, connect, migrate
from libs.eventlog.api import state_of
from libs.eventlog.errors import SettingsDiffer
from libs.eventlog.streams import JOBS
from libs.eventlog.teams import settle_teams
from libs.local.provisions import OPERATOR_SCOPE, USER_SCOPE, operator_url, signed
from libs.local.state import state_here
from libs.local.teams import Team, consumers_of, read_teams
from libs.policy import load_policy
from libs.policy.sections import TokenRules
from libs.runtime.claims import claims_of
from libs.runtime.errors import Unauthorized
from libs.runtime.keys import PRIVATE_FILE
from libs.runtime.tls import authorities_in, trusting

NATS_URL: Final = "HEADGATE_NATS_URL"
AGAIN_AFTER_S: Final = 1.0
LONGEST_DAYS: Final = TokenRules().longest_days


def token(args: Namespace, out: Output) -> int:
    """With the key pair that `headgate up` has made."""
    if args.user is None:
        raise Usage(what=f"Say whose token it is to be: {called()} token --user NAME")
    state = state_here()
    if not (state.keys / PRIVATE_FILE).exists():
        raise NotUp(folder=state.root, instead="HEADGATE_STATE to the folder of one that did")
    scope, ttl_s = args.scope or USER_SCOPE, round(args.expires.total_seconds())
    _require_known(scope.split())
    made = signed(state.keys, user=args.user, tier=Tier(args.tier), scope=scope, ttl_s=ttl_s, projects=args.project)
    _require_taken(made.text)
    if args.expires > timedelta(days=LONGEST_DAYS):
        usual = f"{LONGEST_DAYS} days where it says nothing (tokens.longest_days)"
        sys.stderr.write(f"headgate: No service takes it where policy allows less: {usual}.\n")
    until = made.expires_at.isoformat()
    about = {"user": args.user, "tier": args.tier, "scope": scope, "jti": made.id, "expires_at": until}
    out.data({"token": made.text, **about})
    out.plain(made.text)
    if out.is_terminal:  # elsewhere a program reads the token, and nothing else
        out.say(f"Good until {local_time(until)}; {called()} token revoke {made.id} takes it back.", style="dim")
    return 0


def _require_known(scopes: Iterable[str]) -> None:
    known = OPERATOR_SCOPE.split()
    for scope in scopes:
        if scope not in known:
            raise Usage(what=f"There is no scope {scope}: there are {', '.join(known)}.")


def _require_taken(token: str) -> None:
    """By the services, which read its claims by the same rule."""
    payload = token.split(".")[1]
    try:
        claims_of(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except Unauthorized as refused:
        raise Usage(what=f"{refused.reason}: a user is 1 to 256 characters.") from refused


def migrate_log(args: Namespace, out: Output) -> int:
    """Make what is missing and bring in line what differs."""
    with reported():
        policy = load_policy(args.policy, environ=os.environ)
        settings = LogSettings(replicas=args.replicas, retention=policy.retention, pools=policy.pools.served)
        teams = None if args.teams is None else _teams_in(args.teams)
        done = asyncio.run(_migrated_within(args.wait.total_seconds() if args.wait else 0, settings, teams=teams))
    out.data({"made": done.made, "changed": done.changed, "removed": done.removed})
    for name in done.made:
        out.say(f"made     {name}")
    for change in done.changed:
        out.say(f"changed  {change}")
    for name in done.removed:
        out.say(f"removed  {name}")
    if not (done.made or done.changed or done.removed):
        out.say("Nothing to do: every stream, bucket and consumer is as it has to be.")
    return 0


def _teams_in(file: Path) -> Sequence[Team]:
    try:
        return read_teams(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise Usage(what=f"--teams: {file} cannot be read ({why}).") from error


def tail_log(args: Namespace, out: Output) -> int:
    """From some records back, and on until it is stopped."""
    with reported():
        asyncio.run(_tail(out, last=args.last, stay=not args.no_follow))
    return 0


async def _migrated_within(wait_s: float, settings: LogSettings, *, teams: Sequence[Team] | None) -> Migrated:
    """Again for so long where nobody answers: who is started with its servers finds them when they are there."""
    until = time.monotonic() + wait_s
    while True:
        try:
            return await _migrated(settings, teams=teams)
        except LogUnavailable:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(AGAIN_AFTER_S)


async def _migrated(settings: LogSettings, *, teams: Sequence[Team] | None) -> Migrated:
    url = os.environ.get(NATS_URL) or operator_url(running_here(instead=NATS_URL).nats_url, state_here())
    async with _connected(url, name="headgate migrate") as client:
        done = await migrate(client, settings, new_epoch=ulid(time.time_ns() // 1_000_000, secrets.token_bytes(10)))
        if teams is None:
            return done
        made, ended = await settle_teams(client, consumers_of(teams))
        return replace(done, made=(*done.made, *made), removed=tuple(ended))


async def _tail(out: Output, *, last: int, stay: bool) -> None:
    url = os.environ.get(NATS_URL) or running_here(instead=NATS_URL).nats_url
    async with _connected(url, name="headgate log") as client:
        state = await state_of(client, JOBS)
        if state.epoch is None:
            raise SettingsDiffer(differences=f"{JOBS}: it has no epoch")
        after = max(state.first_seq - 1, state.last_seq - last, 0)
        async with aclosing(JetStreamLog(client, epoch=state.epoch).follow(after=after)) as pages:
            async for page in pages:
                for record in page.records:
                    _print(record, out)
                if not stay and (not page.records or page.records[-1].seq >= state.last_seq):
                    return


@asynccontextmanager
async def _connected(url: str, *, name: str) -> AsyncGenerator[Client]:
    client = await connect(url, name=name, tls=trusting(authorities_in(os.environ)))
    try:
        yield client
    finally:
        await client.close()


def _print(record: Record, out: Output) -> None:
    match record.event:
        case Event() as event:
            data = event.data.model_dump(mode="json", by_alias=True, exclude_none=True)
            kind, subject = event.type, event.subject
        case UnknownEvent() as event:
            data, kind, subject = {"job_id": event.job_id}, event.type, ""
        case unreadable:
            data, kind, subject = {"reason": unreadable.reason}, "unreadable", unreadable.subject
    at = record.at.isoformat()
    out.line({"seq": record.seq, "at": at, "type": kind, "subject": subject, "data": data})
    about = " ".join(f"{name}={value}" for name, value in data.items() if name != "submission")
    short = kind.removeprefix("dev.headgate.").removesuffix(".v1")
    out.say(f"{record.seq:>7}  {local_time(at)}  {short:<26}  {about}")
