"""From a stranger's words to names and files: nothing of a prompt gets anywhere unquoted."""

from __future__ import annotations

import ast
import keyword
import re
import string
import sys
import tomllib
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from services.worker.build import pipeline
from services.worker.build.asked import MAX_NAME_CHARS, MAX_TITLE_CHARS, BuildInput, Names, name_package
from services.worker.build.briefing import RULES
from services.worker.build.template import (
    HERE,
    LOCK,
    is_plain_need,
    needs_of,
    render_folder,
    render_frame,
)

HOSTILE: Final = (
    '"]\n[tool.pytest.ini_options]\naddopts = "-p evil"\n',
    "{{ 7 * 7 }} {% include '/etc/passwd' %}",
    '"""\nimport os\nos.system("true")\n"""',
    "../../../etc/passwd",
    "<script>alert(1)</script> [x](javascript:y)",
    "\\x00 \\u0000 ' \" ` $(reboot)",
    "a\u2028b\u202ec\x7f\x00\x1bd",
)


# ── names ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("prompt", "package"),
    [
        ("a URL shortener", "url_shortener"),
        ("Please write me a small todo list with due dates", "todo_list_due"),
        ("Ein Währungs-Rechner", "ein_wahrungs_rechner"),
        ("rate limiter, 100 per minute", "rate_limiter_per"),
        ("json", "json_package"),
        ("class import", "import_package"),
        ("pytest", "pytest_package"),
        ("日本語", "shop"),
        ("42", "shop"),
    ],
)
def test_a_package_is_called_by_what_is_asked_for(prompt: str, package: str) -> None:
    assert name_package(prompt, project="shop").package == package


def test_where_neither_prompt_nor_project_has_a_word_there_is_still_a_name() -> None:
    assert name_package("日本語", project="42").package == "package"


@given(prompt=st.text(max_size=300), project=st.text(alphabet=string.ascii_letters + "-_0123456789", max_size=64))
def test_every_name_can_be_imported_and_installed_and_hides_nothing(prompt: str, project: str) -> None:
    names = name_package(prompt, project=project)

    assert names.package.isidentifier()
    assert names.package.isascii()
    assert not keyword.iskeyword(names.package)
    assert names.package not in sys.stdlib_module_names
    assert len(names.package) <= MAX_NAME_CHARS + len("_package")
    assert set(names.distribution) <= set(string.ascii_lowercase + string.digits + "-")


@given(st.text(max_size=2000))
def test_a_title_is_one_printable_line(prompt: str) -> None:
    title = name_package(prompt, project="shop").title

    assert title.isprintable()
    assert len(title) <= MAX_TITLE_CHARS + 2


# ── the frame ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("prompt", HOSTILE)
def test_whatever_a_prompt_says_the_frame_stays_what_it_is(prompt: str) -> None:
    names = name_package(prompt, project="shop")

    frame = render_frame(names, needs=())

    told = tomllib.loads(frame["pyproject.toml"])
    assert told["project"]["description"] == names.title
    assert told["tool"]["pytest"]["ini_options"] == {
        "testpaths": ["tests"],
        "pythonpath": ["src"],
        "addopts": ["--import-mode=importlib"],
    }
    for path, text in frame.items():
        assert ".." not in path
        if path.endswith(".py"):
            ast.parse(text)
    assert not re.search(r"(?<!\\)[<>\[\]`*_]", frame["README.md"].split("\n")[2])
    assert "49" not in frame["README.md"]


@given(st.text(max_size=200))
def test_a_description_is_what_the_title_says_whatever_it_holds(prompt: str) -> None:
    names = name_package(prompt, project="shop")

    told = tomllib.loads(render_frame(names, needs=())["pyproject.toml"])

    assert told["project"]["description"] == names.title


def test_what_a_package_needs_is_in_its_configuration_and_is_read_back() -> None:
    frame = render_frame(Names("shop", "A shop"), needs=("httpx>=0.28", "rich[jupyter]~=14.0,!=14.1"))

    assert needs_of(frame) == ("httpx>=0.28", "rich[jupyter]~=14.0,!=14.1")
    assert "uv.lock" not in frame


def test_what_is_not_plain_is_not_read_back() -> None:
    text = '[project]\ndependencies = ["a @ https://example.org/a.whl", "b>=1", 7, "--index-url=x"]\n'

    assert needs_of({"pyproject.toml": text}) == ("b>=1",)
    assert needs_of({"pyproject.toml": "]"}) == ()
    assert needs_of({"pyproject.toml": "project = 1"}) == ()
    assert needs_of({}) == ()


@pytest.mark.parametrize("need", ["httpx", "httpx>=0.28", "a.b-c_d[x,y]>=1,<2", "numpy==2.*"])
def test_a_plain_requirement_is_a_name_with_versions(need: str) -> None:
    assert is_plain_need(need)


@pytest.mark.parametrize(
    "need",
    [
        "",
        "-r other.txt",
        "--index-url https://example.org",
        "a @ file:///etc/passwd",
        "git+https://example.org/a",
        "./a",
        "a; os_name == 'nt'",
        'a"\nevil = "b',
        "a>=1\n",
        "-",
        "a" * 80,
    ],
)
def test_anything_else_is_none(need: str) -> None:
    assert not is_plain_need(need)


def test_a_package_begins_with_the_lock_of_the_toolchain_and_the_same_tools() -> None:
    """The wheels that a worker brings are those of this lock: what a package is developed with must be just that."""
    frame = render_frame(Names("shop_cart", "A cart"), needs=())
    toolchain = tomllib.loads((LOCK.parent / "pyproject.toml").read_text())

    told = tomllib.loads(frame["pyproject.toml"])

    assert told["dependency-groups"] == toolchain["dependency-groups"]
    assert told["project"]["version"] == toolchain["project"]["version"]
    assert told["project"]["requires-python"] == toolchain["project"]["requires-python"]
    assert told["build-system"] == toolchain["build-system"]
    assert f"Python {told['project']['requires-python'].removeprefix('>=')} and later" in RULES
    packages = tomllib.loads(frame["uv.lock"])["package"]
    assert [each["name"] for each in packages if each["source"] == {"editable": "."}] == ["shop-cart"]


def test_a_template_that_asks_for_what_there_is_not_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render_folder(HERE / "template", Names("shop", "A shop"), {})


# ── the input ─────────────────────────────────────────────────────────────────


def test_an_input_is_a_prompt_and_may_name_provider_and_model() -> None:
    asked = pipeline.read_input('{"prompt": " a shop ", "provider": "ollama", "model": "qwen3-coder:30b"}')

    assert asked == BuildInput(prompt="a shop", provider="ollama", model="qwen3-coder:30b")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{}", "prompt"),
        ('{"prompt": "  "}', "prompt"),
        ('{"prompt": 7}', "prompt"),
        ('{"prompt": "a", "provider": "a.b"}', "provider"),
        ('{"prompt": "a", "model": "../x y"}', "model"),
        ('{"prompt": "a", "modle": "x"}', "modle"),
        ("[]", "input"),
        ("nonsense", "input"),
    ],
)
def test_an_input_that_is_wrong_names_the_field(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: "):
        pipeline.read_input(text)
