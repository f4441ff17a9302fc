"""How manifests with conditions are made and written down."""

from __future__ import annotations

from libs.deployment.chart.emitting import document
from libs.deployment.chart.tree import ABSENT, Expression, When, overlaid, replaced


def test_a_key_that_a_component_adds_is_there_on_its_condition() -> None:
    assert overlaid({"a": 1}, {"a": 1}, {"a": 1, "b": 2}, "tls") == {"a": 1, "b": When("tls", 2)}


def test_a_key_that_a_component_takes_away_is_there_without_it() -> None:
    assert overlaid({"a": 1}, {"a": 1}, {}, "scaled") == {"a": When("scaled", ABSENT, 1)}


def test_two_components_that_append_to_one_list_do_not_hide_each_other() -> None:
    first = overlaid([1], [1], [1, 2], "tls")

    assert overlaid(first, [1], [1, 3], "otel") == [1, When("tls", 2), When("otel", 3)]


def test_what_two_components_change_is_what_the_later_says() -> None:
    first = overlaid({"a": 1}, {"a": 1}, {"a": 2}, "tls")

    assert overlaid(first, {"a": 1}, {"a": 3}, "otel") == {"a": When("otel", 3, When("tls", 2, 1))}


def test_a_value_is_put_in_on_either_side_of_a_condition() -> None:
    tree = {"spec": When("scaled", {"replicas": 1}, {"replicas": 2})}

    made = replaced(tree, ("spec", "replicas"), lambda _: Expression("{{ .Values.replicas }}"))

    assert document(made) == (
        "---\n{{- if scaled }}\nspec:\n  replicas: {{ .Values.replicas }}\n{{- else }}\n"
        "spec:\n  replicas: {{ .Values.replicas }}\n{{- end }}\n"
    )


def test_a_template_of_somebody_else_is_a_text_to_helm() -> None:
    assert document({"summary": "{{ $value }} jobs"}) == '---\nsummary: "{{ "{{" }} $value }} jobs"\n'


def test_words_that_some_reader_takes_for_something_else_stand_in_quotes() -> None:
    assert document({"a": "on", "b": "1", "c": "", "d": True}) == '---\na: "on"\nb: "1"\nc: ""\nd: true\n'


def test_lines_stand_as_lines_where_a_block_gives_back_the_same() -> None:
    assert document({"a": "x\n\ny\n"}) == "---\na: |\n  x\n\n  y\n"
    assert document({"a": "x\ny"}) == "---\na: |-\n  x\n  y\n"
    assert document({"a": " x\ny\n"}) == '---\na: " x\\ny\\n"\n'
    assert document({"a": "x\ny\n\n"}) == '---\na: "x\\ny\\n\\n"\n'
