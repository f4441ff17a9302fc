"""HTTP: which pipelines there are, and an operator's removal of one."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from headgate_contracts.shown import RemovedPipeline, ShownPipeline
from headgate_contracts.tokens import TOKEN_PATTERN
from headgate_pipeline.rules import BUILT_IN
from libs.eventlog.pipelines import AnnouncedPipeline
from libs.runtime.faults import Refused
from services.admission import problems
from services.admission.api import Edge, Operator, Reader, ReasonQuery, route_group
from services.admission.operating import Done, NotAnnounced
from services.admission.pipelines import PipelineBook

NamePath = Annotated[str, Path(pattern=TOKEN_PATTERN)]
PoolQuery = Annotated[str, Query(pattern=TOKEN_PATTERN, description="the pool whose workers had announced it")]


def pipeline_routes(edge: Edge) -> APIRouter:
    router = route_group()

    @router.get("/pipelines")
    async def list_pipelines(who: Reader) -> tuple[ShownPipeline, ...]:
        """All pipelines by pool, with their stages and the JSON Schema of their input. Built-in pipelines are listed
        before any worker has announced them, and without a pool, as every pool runs them."""
        return tuple(_shown(edge.submitting.pipelines.book))

    @router.delete("/pipelines/{name}")
    async def remove_pipeline(
        name: NamePath, who: Operator, pool: PoolQuery = "default", reason: ReasonQuery = ""
    ) -> RemovedPipeline:
        """Accepts no new jobs of the pipeline from now on; jobs that were accepted go on. A worker that still has the
        pipeline announces it again when it starts."""
        pipelines = edge.submitting.pipelines
        match await edge.operating.remove_pipeline(name, pool, pipelines=pipelines, by=who.user, reason=reason):
            case NotAnnounced(names):
                raise Refused(problems.no_such_pipeline(name, pool, names))
            case Done():
                pass
        return RemovedPipeline(name=name, pool=pool, message=f"{name} is no pipeline of pool {pool} any more")

    return router


def _shown(book: PipelineBook) -> list[ShownPipeline]:
    there = {name for _, name in book.announced}
    unsaid = [ShownPipeline(name=name) for name in BUILT_IN if name not in there]
    return [*(_announced(each) for each in book.announced.values()), *unsaid]


def _announced(each: AnnouncedPipeline) -> ShownPipeline:
    return ShownPipeline(
        name=each.name,
        pool=each.pool,
        version=each.version or None,
        stages=each.titles,
        input_schema=each.input_schema,
    )
