"""A rule for the import lint: these modules see the standard library and the packages named, and nothing else.

The rules that come with import-linter forbid what one thought of; this one refuses what nobody thought of, such as a
new client library in a `domain`.
"""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.domain.helpers import module_expressions_to_modules


class SeesOnlyContract(Contract):
    """Options: `modules` (wildcards allowed, may match none) and `may_see` (packages)."""

    type_name = "sees_only"

    modules = fields.SetField(subfield=fields.ModuleExpressionField())
    may_see = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001 - the signature is import-linter's
        allowed = cast("list[str]", self.may_see)
        sources = module_expressions_to_modules(graph, self.modules)  # type: ignore[arg-type]
        seen = {
            (source.name, target)
            for source in sources
            for target in graph.find_modules_directly_imported_by(source.name)
            if not _within(target, allowed) and target.split(".")[0] not in sys.stdlib_module_names
        }
        return ContractCheck(kept=not seen, metadata={"seen": sorted(seen)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for source, target in check.metadata["seen"]:
            output.print_error(f"{source} sees {target}")


def _within(module: str, packages: list[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)
