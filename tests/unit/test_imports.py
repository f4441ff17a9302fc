"""The import lint's own rule: what a module may see is a list, and the rest is refused."""

from grimp import ImportGraph

from tests.imports import SeesOnlyContract


def _broken_by(*imports: tuple[str, str]) -> list[tuple[str, str]]:
    graph = ImportGraph()
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    options = {"modules": ["services.*.domain"], "may_see": ["libs.policy"]}
    rule = SeesOnlyContract(name="rule", session_options={}, contract_options=options)
    return rule.check(graph, verbose=False).metadata["seen"]


def test_the_standard_library_and_the_named_packages_may_be_seen() -> None:
    assert not _broken_by(
        ("services.admission.domain", "dataclasses"),
        ("services.admission.domain", "libs.policy"),
        ("services.admission.domain", "libs.policy.model"),
    )


def test_a_library_nobody_thought_of_is_refused() -> None:
    seen = ("services.admission.domain", "brand_new_client")

    assert _broken_by(seen, ("services.admission.handlers", "brand_new_client")) == [seen]


def test_a_package_whose_name_only_begins_alike_is_refused() -> None:
    seen = ("services.worker.domain", "libs.policy_cache")

    assert _broken_by(seen) == [seen]


def test_no_module_to_look_at_is_no_complaint() -> None:
    assert not _broken_by(("libs.eventlog", "nats"))
