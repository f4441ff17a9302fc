"""The pipeline `build`: from a prompt to a package whose checks pass.

    scaffold ─► code ─────────────► deps ─► checks ─► result
    the frame   model or offline    uv      ruff, pytest in the sandbox
       ▲                                       │ failed
       └────────── next iteration ◄────────────┘  with what the checks said

    <workspace>/project   the package         <workspace>/env   its environment, made again where it is missing
    <workspace>/result    what is downloaded: the package as it was when it passed

Each stage reads the project as a value and writes it as a whole, so one that is run again begins where it began. The
configuration is rendered anew in every iteration: neither a model nor a command of the job can switch the checks off.
"""

import os
from collections.abc import Mapping
from typing import Final

from headgate_contracts.vocabulary import Fault
from headgate_pipeline import ChecksFailed, Context, Pipeline, StageFailed, input_as, stage
from services.worker.build.asked import BuildInput, Names, name_package
from services.worker.build.checks import detail_of, find_faults, shortened, summary_of, tidy
from services.worker.build.deps import ENVIRONMENT, PROJECT, NeedsNotMet, Sources, install
from services.worker.build.offline import choose, write_package
from services.worker.build.template import is_configuration, needs_of, render_frame
from services.worker.build.tree import Tree, TreeRefused, checked_path, read_tree, write_tree
from services.worker.sandbox.remains import clear

UNMET: Final = "unmet.txt"  # what uv said against the author's needs, from `deps` to `checks`


@stage("scaffold", title="Setting up the project")
async def scaffold(ctx: Context) -> None:
    names = _names(ctx)
    tree = read_tree(ctx.workspace / PROJECT) if ctx.iteration > 1 else {}
    frame = render_frame(names, needs=needs_of(tree))
    write_tree(ctx.workspace / PROJECT, frame | _authored(tree, names))
    ctx.log(f"package {names.package}: {len(frame)} files of the frame")


@stage("code", title="Writing code")
async def code(ctx: Context) -> None:
    names = _names(ctx)
    tree = read_tree(ctx.workspace / PROJECT)
    authored, needs = _authored(tree, names), needs_of(tree)
    provider = _provider(ctx)
    if provider is None:
        authored |= write_package(ctx.input.prompt, names)
        ctx.log(f"written without a model: {choose(ctx.input.prompt).name}")
    else:
        # Half a second and 15 MB, which a worker without providers never needs.
        from services.worker.build.author import Draft, ModelAuthor  # noqa: PLC0415

        author = ModelAuthor(ctx, provider, ctx.providers[provider], names, can_fetch=bool(_sources().index))
        draft = await author.write(Draft(authored, needs))
        authored, needs = dict(draft.files), draft.needs
    frame = {path: text for path, text in render_frame(names, needs=needs).items() if is_configuration(path)}
    write_tree(ctx.workspace / PROJECT, authored | frame)


@stage("deps", title="Installing dependencies")
async def deps(ctx: Context) -> None:
    clear(ctx.workspace / UNMET)
    try:
        await install(ctx, _sources())
    except NeedsNotMet as unmet:
        if not needs_of(read_tree(ctx.workspace / PROJECT)):
            detail = "The wheels of this worker may be incomplete."
            raise StageFailed("The environment cannot be made.", detail, fault=Fault.SYSTEM) from unmet
        clear(ctx.workspace / ENVIRONMENT)
        (ctx.workspace / UNMET).write_text(str(unmet), encoding="utf-8")


@stage("checks", title="Checking")
async def checks(ctx: Context) -> None:
    if not (ctx.workspace / ENVIRONMENT).is_dir() and not (ctx.workspace / UNMET).exists():
        await deps.run(ctx)  # the attempt goes on from a checkpoint, which has no environment
    if (ctx.workspace / UNMET).exists():
        said = (ctx.workspace / UNMET).read_text(encoding="utf-8")
        raise ChecksFailed("The packages that it needs cannot be installed.", shortened(said))
    await tidy(ctx)
    tree = read_tree(ctx.workspace / PROJECT)
    if findings := await find_faults(ctx):
        raise ChecksFailed(summary_of(findings), detail_of(findings))
    clear(ctx.result)
    ctx.result.mkdir()
    write_tree(ctx.result / _names(ctx).distribution, tree)


def _names(ctx: Context) -> Names:
    asked: BuildInput = ctx.input
    return name_package(asked.prompt, project=ctx.project_id)


def _authored(tree: Tree, names: Names) -> dict[str, str]:
    """What an author may have written. Whatever else a command has left there is not carried on."""
    return {path: text for path, text in tree.items() if _may_be_authored(path, names)}


def _may_be_authored(path: str, names: Names) -> bool:
    try:
        checked_path(path, package=names.package)
    except TreeRefused:
        return False
    return True


def _provider(ctx: Context) -> str | None:
    """The one that was asked for, else the first that is configured; null where the offline author is to write."""
    asked: BuildInput = ctx.input
    configured: Mapping[str, object] = ctx.providers
    if asked.provider is None:
        return next(iter(configured), None)
    if asked.provider not in configured:
        there = f"There are: {', '.join(configured)}." if configured else "There is none: leave it out."
        raise StageFailed(f"The provider {asked.provider} is not configured here.", there)
    return asked.provider


def _sources() -> Sources:
    return Sources.of(os.environ)


pipeline = Pipeline("build", (scaffold, code, deps, checks), input_as(BuildInput), not_kept=(ENVIRONMENT,))
