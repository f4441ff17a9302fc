"""A package that is made for an author, and what is said of a module that is to be a pipeline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headgate_pipeline.checking import checked
from headgate_pipeline.rules import BUILT_IN
from headgate_pipeline.starting import NotStarted, start
from libs.cli.__main__ import main
from services.worker.settings import BUILT_IN as MODULES

HEAD = "from headgate_pipeline import Context, Pipeline, stage\n"


def test_what_is_built_in_is_what_every_worker_loads() -> None:
    assert tuple(module.rpartition(".")[2] for module in MODULES) == BUILT_IN


def test_the_tests_of_a_new_package_pass_and_nothing_is_wrong_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["pipelines", "new", "weather-report"]) == 0

    folder = tmp_path / "weather-report"
    asked = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:socket")
    tested = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert tested.returncode == 0, tested.stdout
    assert "2 passed" in tested.stdout
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    capsys.readouterr()
    assert main(["pipelines", "check", "weather_report"]) == 0
    assert capsys.readouterr().out == "weather_report is the pipeline weather-report: gather, write, check\n"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Two Words", "is no name"),
        ("build", "is built in"),
        ("there", "there already"),
        ("json", "`import json` means something else"),
        ("class", "`import class` means something else"),
    ],
)
def test_a_package_is_made_under_a_free_name_alone(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()

    with pytest.raises(NotStarted, match=why):
        start(name, tmp_path)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("", "it has no `pipeline = Pipeline(...)`"),
        (HEAD + "pipeline = Pipeline('a', ())", "it has 0 stages, and may have 1 to 20"),
        (HEAD + "@stage('s')\nasync def s(ctx): ...\npipeline = Pipeline('build', (s,))", "build is built in"),
        (HEAD + "@stage('s')\ndef s(ctx): ...\npipeline = Pipeline('a', (s,))", "the stage s is not `async def`"),
        (HEAD + "@stage('s')\nasync def s(): ...\npipeline = Pipeline('a', (s,))", "does not take one argument"),
    ],
)
def test_what_keeps_a_module_from_being_a_pipeline_is_said(
    text: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"of_an_author_{abs(hash(text))}"
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    assert wrong in " ".join(checked(module).wrong)


def test_what_an_author_may_want_to_know_keeps_no_pipeline_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "@stage('s', retry_on=(OSError,))\nasync def s(ctx): ...\npipeline = Pipeline('advised', (s,))"
    (tmp_path / "advised.py").write_text(HEAD + text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    assert main(["pipelines", "check", "advised", "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["wrong"] == []
    assert [word.partition(":")[0] for word in told["advice"]] == [
        "a model of its input is none",
        "the stage s names errors to retry on and has no `retries`",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("my-pipe", "my_pipe"), ("weather.py", "weather"), ("./weather", "weather"), ("there/weather.py", "weather")],
)
def test_what_is_no_modules_name_is_told_the_one_that_is_meant(name: str, meant: str) -> None:
    assert checked(name).wrong == (f"that is no module: name it as `import` does, perhaps {meant}",)


def test_no_name_is_no_module() -> None:
    assert checked("").wrong == ("that is no module: name it as `import` does",)
