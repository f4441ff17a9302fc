"""Pipelines from the names of their modules: one that is broken is refused in words, and costs no other."""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from headgate_pipeline.errors import PipelineBroken
from headgate_pipeline.pipeline import Pipeline

MOST_SAID: Final = 500  # of what a module raises


@dataclass(frozen=True, slots=True)
class LoadedPipelines:
    """Those that can run, by name, and why each other module of the list is refused, in words that name it."""

    found: Mapping[str, Pipeline]
    refused: tuple[str, ...]


def load_pipelines(modules: Iterable[str]) -> LoadedPipelines:
    """The pipelines of these modules. Each module has its own as `pipeline`; one that is broken costs no other."""
    found: dict[str, Pipeline] = {}
    refused: list[str] = []
    for name in modules:
        try:
            pipeline = pipeline_of(name)
        except PipelineBroken as broken:
            refused.append(str(broken))
            continue
        if pipeline.name in found:
            why = f"another module has a pipeline named {pipeline.name} too"
            refused.append(str(PipelineBroken(name, why)))
        else:
            found[pipeline.name] = pipeline
    return LoadedPipelines(found, tuple(refused))


def pipeline_of(module: str) -> Pipeline:
    """Raises PipelineBroken, whatever the module raises: it is an author's."""
    if module.endswith(".py") or not all(map(str.isidentifier, module.split("."))):
        raise PipelineBroken(module, _no_module(module))
    try:
        pipeline = getattr(importlib.import_module(module), "pipeline", None)
    except PipelineBroken as broken:
        raise PipelineBroken(module, broken.why) from broken
    except (Exception, SystemExit) as error:
        raise PipelineBroken(module, f"{type(error).__name__}: {error}"[:MOST_SAID]) from error
    if not isinstance(pipeline, Pipeline):
        raise PipelineBroken(module, "it has no `pipeline = Pipeline(...)`")
    return pipeline


def _no_module(text: str) -> str:
    """A file's name, or a package's as an index has it, is what people write first."""
    likely = PurePath(text).name.removesuffix(".py").replace("-", "_")
    meant = f", perhaps {likely}" if likely.isidentifier() else ""
    return f"that is no module: name it as `import` does{meant}"
