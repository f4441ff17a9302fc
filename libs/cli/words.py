"""How a command is made: its name, what it says of itself, and what carries it out."""

from __future__ import annotations

import re
import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, NoReturn

from libs.cli.calling import as_called

Parsers = Any  # argparse's own type for these is private
COMMAND: Final = "COMMAND"
CHOICE: Final = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")
UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}
DURATION: Final = re.compile(r"([1-9][0-9]{0,4})([mhd])")  # at most 273 years


def later(module: str, function: str | None = None) -> Callable[[Any, Any], int]:
    """A command whose module is imported when it is carried out: a job's status must not wait for a server's code."""

    def run(args: Any, out: Any) -> int:
        return getattr(import_module(f"libs.cli.{module}"), function or module)(args, out)

    return run


@dataclass(frozen=True, slots=True)
class Verbs:
    """The commands below one word, as `pause` below `queue`. Each shows those of the examples that are its own."""

    parsers: Parsers
    examples: str

    def add(self, name: str, run: object, about: str) -> ArgumentParser:
        head, *lines = self.examples.splitlines()
        own = [line for line in lines if f" {name}" in line or not line.startswith("  headgate")]
        shows_one = any(f" {name}" in line for line in own)
        return add(self.parsers, name, run, about, "\n".join((head, *own)) if shows_one else None)


def verbs(commands: Parsers, name: str, about: str, examples: str) -> Verbs:
    parser = command_parser(
        commands.add_parser, name, help=about, description=f"{about.capitalize()}.", epilog=examples
    )
    return Verbs(parser.add_subparsers(title="commands", metavar=COMMAND, required=True), examples)


def positive(text: str) -> int:
    """A number that counts something."""
    if not text.removeprefix("-").isdecimal():
        raise ArgumentTypeError(f"{text!r} is no number: write 1 or more")
    if int(text) < 1:
        raise ArgumentTypeError(f"{text} is too few: write 1 or more")
    return int(text)


def duration(text: str) -> timedelta:
    """How long something is."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no time: write 90m, 12h or 7d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def moment(text: str) -> datetime:
    """A moment, or how long ago it was."""
    if DURATION.fullmatch(text):
        return datetime.now(UTC) - duration(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no moment: write 2030-01-31T06:00:00Z, or 90m, 24h, 7d") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


class CommandParser(ArgumentParser):
    """One that shows its help to whom no command comes to mind, and names the one that was meant."""

    def error(self, message: str) -> NoReturn:
        if message.endswith(f": {COMMAND}"):
            self.print_help(sys.stderr)
            self.exit(2)
        found = CHOICE.search(message)
        near = get_close_matches(found[1], re.findall(r"[\w-]+", found[2]), n=1) if found else ()
        super().error("\n".join((message, *(f"Did you mean {each}?" for each in near))))


class VersionFlag(Action):
    """Looked up when it is asked for: that takes longer than reading a command's words."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        print(f"headgate {import_module('importlib.metadata').version('headgate-server')}")
        parser.exit()


def add(commands: Parsers, name: str, run: object, about: str, epilog: str | None = None) -> ArgumentParser:
    command = command_parser(commands.add_parser, name, help=about, description=about.capitalize() + ".", epilog=epilog)
    command.add_argument("--json", action="store_true", help="for programs: JSON and nothing else on stdout")
    command.set_defaults(run=run)
    return command


def command_parser(make: Any, *names: str, epilog: str | None = None, **options: Any) -> ArgumentParser:
    told = epilog and as_called(epilog)
    parser: ArgumentParser = make(*names, formatter_class=RawDescriptionHelpFormatter, epilog=told, **options)
    return parser
