"""A pipeline whose stage `code` runs the script that its job asks for, and fails where the script had to be ended."""

from headgate_pipeline import Context, Pipeline, StageFailed, stage


@stage("scaffold")
async def scaffold(ctx: Context) -> None:
    pass


@stage("code")
async def code(ctx: Context) -> None:
    ran = await ctx.run("bash", "-c", ctx.input["script"])
    if ran.ended_by != "itself":
        raise StageFailed(f"The command was ended: {ran.ended_by}.")


@stage("deps")
async def deps(ctx: Context) -> None:
    pass


@stage("checks")
async def checks(ctx: Context) -> None:
    pass


pipeline = Pipeline("hostile", (scaffold, code, deps, checks))
