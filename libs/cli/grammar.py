"""How a command is declared: its name, what it says of itself, and what carries it out.

Click reads the words, writes the help, names the command that was meant, and completes words in shells. What is ours:
examples as they are written, verbs in the order in which they are declared, and imports when a command is carried out.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, add_completion_class, split_arg_string

from libs.cli.calling import as_called, called

HELP: Final = {"help_option_names": ["-h", "--help"]}
COMPLETING: Final = "_HEADGATE_COMPLETE"  # set by a shell that asks how a word may go on
UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}
DURATION: Final = re.compile(r"([1-9][0-9]{0,4})([mhd])")  # at most 273 years


class _Place(click.Path):
    """No name would be this folder, and a state put there is hard to take out again."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value or self.fail("it is empty: write a name", param, ctx), param, ctx)


FILE: Final = _Place(path_type=Path)

BASH: Final = """\
%(complete_func)s() {
    local line=${COMP_LINE:0:COMP_POINT} offer before=
    [[ $COMP_WORDBREAKS == *:* && ${line##* } == *:* ]] && before=${line##* } && before=${before%%"${before##*:}"}
    COMPREPLY=()
    while IFS= read -r offer; do
        case $offer in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            plain,*) offer=${offer#plain,} && COMPREPLY+=("${offer#"$before"}") ;;
        esac
    done < <(COMP_LINE=$line %(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

Run = Callable[[Any, Any], int]


class BashWords(BashComplete):
    """Bash takes a colon for the end of a word, and names of groups and scopes have some: so the line is read as it
    stands, and what is before the last colon, which bash leaves there, is not offered again."""

    source_template = BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)[1:]
        return (words[:-1], words[-1]) if words and not line[-1].isspace() else (words, "")


class FishWords(FishComplete):
    """What a word stands for may have commas, and click's script would end it at the first."""

    source_template = FishComplete.source_template.replace('split ","', 'split --max 1 ","')


class CommandGroup(click.Group):
    """Commands below one word, as `pause` below `queue`. Without one of them it shows its help."""

    def __init__(self, name: str, about: str, examples: str, **more: Any) -> None:
        super().__init__(name, help=about, epilog=examples, context_settings=HELP, **more)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_as_it_is(formatter, self.epilog)

    def below(self, name: str, about: str, examples: str) -> CommandGroup:
        group = CommandGroup(name, sentence(about), examples, short_help=about)
        self.add_command(group)
        return group

    def verb(
        self, name: str, run: str, about: str, *given: click.Parameter, examples: str = "", one_of: tuple[str, ...] = ()
    ) -> None:
        """A command that `run` carries out, `module.function` of this package; of `one_of` exactly one is to be given.
        Without examples of its own it shows those of its group that are about it."""
        self.add_command(Verb(name, run, about, *given, examples=examples or self._examples_of(name), one_of=one_of))

    def _examples_of(self, name: str) -> str:
        head, *lines = (self.epilog or "").splitlines()
        own = [line for line in lines if f" {name}" in line or not line.startswith("  headgate")]
        return "\n".join((head, *own)) if any(f" {name}" in line for line in own) else ""


class Verb(click.Command):
    """One that does something. Its words become what its function is given, with `json`, which each takes."""

    def __init__(
        self, name: str, run: str, about: str, *given: click.Parameter, examples: str, one_of: tuple[str, ...]
    ) -> None:
        def read(**values: Any) -> Namespace:
            named = [word for word in one_of if values[word] is not None]
            if one_of and len(named) != 1:
                raise click.UsageError(f"Give one of {', '.join(f'--{word}' for word in one_of)}.")
            return Namespace(run=later(run), **values)

        super().__init__(
            name,
            callback=read,
            params=[*given, as_json()],
            help=sentence(about),
            short_help=about,
            epilog=examples,
            context_settings=HELP,
        )
        self.run = run

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_as_it_is(formatter, self.epilog)


def read_words(root: click.Group, words: list[str] | None) -> Any:
    """What was asked for. Wrong usage ends the process with 2, as everywhere; help and version end it with 0."""
    add_completion_class(BashWords)
    try:
        asked = root.main(words, prog_name=called(), complete_var=COMPLETING, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    if not isinstance(asked, Namespace):
        sys.exit(asked)
    return asked


def later(run: str) -> Run:
    """A function whose module is imported when it is called: a job's status must not wait for a server's code."""
    module, _, function = run.partition(".")

    def carry_out(args: Any, out: Any) -> int:
        return getattr(import_module(f"libs.cli.{module}"), function)(args, out)

    return carry_out


def sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def _write_as_it_is(formatter: click.HelpFormatter, examples: str | None) -> None:
    if examples:
        formatter.write(f"\n{as_called(examples)}\n")


# ── what a command is given ───────────────────────────────────────────────────


def option(*names: str, help: str, **more: Any) -> click.Option:  # noqa: A002 - click's own word
    return click.Option(names, help=help, **more)


def flag(name: str, help: str) -> click.Option:  # noqa: A002
    return click.Option((name,), help=help, is_flag=True)


def repeated(name: str, help: str, **more: Any) -> click.Option:  # noqa: A002
    return click.Option((name,), help=f"{help}; may be given many times", multiple=True, **more)


def argument(name: str, help: str = "", **more: Any) -> click.Argument:  # noqa: A002
    return click.Argument((name,), help=help or None, **more)


def completed_by(name: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """A function of `completing`, which is imported when a shell asks."""

    def complete(_: click.Context, __: click.Parameter, beginning: str) -> list[CompletionItem]:
        return getattr(import_module("libs.cli.completing"), name)(beginning)

    return complete


def as_json() -> click.Option:
    return flag("--json", "for programs: JSON and nothing else on stdout")


def version_flag() -> click.Option:
    """Looked up when it is asked for: that takes longer than reading a command's words."""

    def tell(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - as click calls it
        if wanted:
            click.echo(f"headgate {import_module('importlib.metadata').version('headgate-server')}")
            ctx.exit()

    names, about = ("--version",), "which version this is"
    return click.Option(names, help=about, is_flag=True, is_eager=True, expose_value=False, callback=tell)


def positive(given: str | int) -> int:
    """A number that counts something. A default comes by here too, as the number that it is."""
    text = str(given)
    if not text.removeprefix("-").isdecimal():
        raise click.BadParameter(f"{text!r} is not a number: write 1 or more")
    if int(text) < 1:
        raise click.BadParameter(f"{text} is too small: write 1 or more")
    return int(text)


def duration(text: str) -> timedelta:
    """How long something is."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration: write 90m, 12h or 7d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def moment(text: str) -> datetime:
    """A moment, or how long ago it was."""
    if DURATION.fullmatch(text):
        return datetime.now(UTC) - duration(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a time: write 2030-01-31T06:00:00Z, or 90m, 24h, 7d") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
