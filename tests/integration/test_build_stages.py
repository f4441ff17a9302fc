"""The stages of a build with real uv, ruff and pytest: environments, checks, iterations, results."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from headgate_contracts.vocabulary import BUILD_STAGES, Fault
from headgate_pipeline import ChecksFailed, Context, Endpoint, StageFailed
from libs.runtime.eventually import eventually
from services.worker.build import pipeline
from services.worker.build.asked import BuildInput, name_package
from services.worker.build.checks import MAX_OUTPUT_CHARS, Finding, detail_of, find_faults, shortened
from services.worker.build.deps import Sources
from services.worker.build.offline import KINDS, choose, write_package
from services.worker.build.template import render_frame
from services.worker.build.tree import read_tree, write_tree
from services.worker.child.packing import pack
from services.worker.children import clean_environment
from tests.fixtures.contexts import RunningLink, a_context
from tests.fixtures.providers import a_provider, files, says

WHEELS = Path(sys.prefix) / "wheels"
TIDY = {
    "src/shop/cart.py": '"""A cart."""\n\n\ndef total(prices):\n    return sum(prices)\n',
    "tests/test_cart.py": (
        "from shop.cart import total\n\n\ndef test_a_cart_adds_up():\n    assert total([1, 2]) == 3\n"
    ),
}
WRONG = TIDY | {"src/shop/cart.py": '"""A cart."""\n\n\ndef total(prices):\n    return max(prices)\n'}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No build of these tests reaches out."""
    monkeypatch.setenv("HEADGATE_INDEX", "")
    monkeypatch.delenv("HEADGATE_WHEELS", raising=False)


class Bench:
    """One job's workspace, and a context for each of its stages."""

    def __init__(self, workspace: Path, prompt: str = "a shop", **asked: Any) -> None:
        self.link = RunningLink(workspace)
        self.failure = ""
        self.workspace = workspace
        self.providers: dict[str, Endpoint] = {}
        self.asked = BuildInput(prompt=prompt, **asked)

    def context(self, at: str, *, iteration: int = 1) -> Context:
        return a_context(
            self.workspace,
            self.asked,
            link=self.link,
            at=at,
            iteration=iteration,
            failure=self.failure,
            providers=self.providers,
        )

    async def run(self, *stages: str, iteration: int = 1) -> None:
        for name in stages or BUILD_STAGES:
            await pipeline.step(name).run(self.context(name, iteration=iteration))

    async def iteration(self, number: int) -> bool:
        """Whether its checks passed. What they said is kept, as a worker does."""
        try:
            await self.run(iteration=number)
        except ChecksFailed as failed:
            self.failure = failed.detail or failed.summary
            return False
        return True

    @property
    def project(self) -> dict[str, str]:
        return read_tree(self.workspace / "project")

    def put(self, tree: dict[str, str]) -> None:
        write_tree(self.workspace / "project", self.project | tree)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def put_wheel(shelf: Path, name: str) -> None:
    """The smallest wheel there is."""
    folder = f"{name}-1.0.dist-info"
    content = {
        f"{name}.py": "HERE = True\n",
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*content, f"{folder}/RECORD"))
    with zipfile.ZipFile(shelf / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in (content | {f"{folder}/RECORD": record}).items():
            wheel.writestr(path, text)


def put_source(shelf: Path, name: str, *, runs: str) -> None:
    """A package that runs its own code when it is built, or merely asked what it needs."""
    backend = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    with tarfile.open(shelf / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in {"pyproject.toml": backend, "backend.py": f"{runs}\n"}.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


@asynccontextmanager
async def an_index(shelf: Path) -> AsyncIterator[str]:
    """A package index over HTTP: a page for each name, with what lies on the shelf."""

    class Pages(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(shelf))

        def do_GET(self) -> None:
            if not self.path.startswith("/simple/"):
                return super().do_GET()
            name = self.path.removeprefix("/simple/").strip("/")
            links = [path.name for path in shelf.iterdir() if path.name.lower().startswith(f"{name}-")]
            page = "".join(f'<a href="/{link}">{link}</a>' for link in links).encode()
            self.send_response(200 if links else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)
            return None

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called above
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    serving = asyncio.create_task(asyncio.to_thread(server.serve_forever, 0.05))
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        await serving
        server.server_close()


# ── the whole way ─────────────────────────────────────────────────────────────


async def test_a_build_without_a_provider_makes_a_package_that_passes_and_can_be_taken_away(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "job", "a URL shortener with expiry")
    bench.workspace.mkdir()

    assert await bench.iteration(1)

    pack(bench.workspace / "result", tmp_path / "result.tar.gz", max_bytes=1_000_000)
    with tarfile.open(tmp_path / "result.tar.gz") as archive:
        names = archive.getnames()
    assert "url-shortener-expiry/pyproject.toml" in names
    assert "url-shortener-expiry/uv.lock" in names
    assert "url-shortener-expiry/src/url_shortener_expiry/shortener.py" in names
    assert "url-shortener-expiry/tests/test_shortener.py" in names
    assert not [name for name in names if "env" in name or "cache" in name]
    assert (tmp_path / "result.tar.gz").stat().st_size < 20_000
    assert any("passed" in line for line in bench.link.lines)
    assert not [act for act in bench.link.acts if "online" in act]


async def test_a_model_that_fails_first_is_shown_the_failure_and_mends_it(bench: Bench) -> None:
    mended = says(files({"src/shop/cart.py": TIDY["src/shop/cart.py"]}))
    async with a_provider(says(files(WRONG)), mended) as provider:
        bench.providers = {"parrot": provider.endpoint}

        first = await bench.iteration(1)
        second = await bench.iteration(2)

    assert (first, second) == (False, True)
    assert "assert 2 == 3" in provider.asked[1].last
    assert "pytest failed: 1 failed, 1 passed" in provider.asked[1].last or "1 failed" in provider.asked[1].last
    assert "return max(prices)" in provider.asked[1].last
    result = read_tree(bench.workspace / "result" / "shop")
    assert result["src/shop/cart.py"] == TIDY["src/shop/cart.py"]


async def test_the_first_provider_configured_is_asked_unless_another_is_named(tmp_path: Path) -> None:
    async with a_provider(says(files(TIDY))) as first, a_provider(says(files(TIDY))) as second:
        for number, wanted in enumerate((None, "second")):
            bench = Bench(tmp_path / str(number), provider=wanted)
            bench.workspace.mkdir()
            bench.providers = {"first": first.endpoint, "second": second.endpoint}
            await bench.run("scaffold", "code")

    assert (len(first.asked), len(second.asked)) == (1, 1)


@pytest.mark.parametrize(("configured", "said"), [({}, "There is none"), ({"first": 1}, "There are: first")])
async def test_a_provider_that_is_not_configured_is_named_with_those_that_are(
    tmp_path: Path, configured: dict[str, Any], said: str
) -> None:
    bench = Bench(tmp_path, provider="second")
    bench.providers = configured

    with pytest.raises(StageFailed, match="The provider second is not configured here") as failed:
        await bench.run("scaffold", "code")

    assert said in failed.value.detail


# ── the offline kinds ─────────────────────────────────────────────────────────

PROMPTS = {
    "shortener": ["a URL shortener", "links with 9 letters that expire please and thank you very much indeed"],
    "todo": ["a todo list", "chores with priorities and due dates", "homework checklist by deadline", "urgent tasks"],
    "csv_statistics": ["CSV statistics", "tsv median of salary columns", "semicolon csv statistics temperatures"],
    "adventure": ["a text adventure in a castle", "space station quest", "a dungeon maze", "a forest game"],
    "rate_limiter": ["a rate limiter", "throttle 5 requests per second per user", "quota of 1 per day for teams"],
    "key_value": ["a key-value store", "redis-like cache with ttl for sessions and 64 characters"],
    "catalogue": ["a weather dashboard", "track my stamps", "countries' internationalisationalities x", "日本語", "q"],
}


def test_every_kind_is_chosen_by_some_prompt() -> None:
    assert set(PROMPTS) == {kind.name for kind in KINDS}
    for kind, prompts in PROMPTS.items():
        assert {choose(prompt).name for prompt in prompts} == {kind}


def test_the_words_of_a_prompt_change_what_is_written() -> None:
    for prompts in PROMPTS.values():
        trees = [write_package(prompt, name_package("the same", project="p")) for prompt in prompts[:2]]
        assert trees[0] != trees[1]


@pytest.mark.parametrize(
    "kind", [kind if kind == "key_value" else pytest.param(kind, marks=pytest.mark.builds) for kind in PROMPTS]
)
async def test_every_kind_passes_its_own_checks_in_a_real_environment_as_it_is_written(bench: Bench, kind: str) -> None:
    """Untidied: layout and rules are the templates' own. With the longest names and the shortest."""
    await bench.run("scaffold", "code", "deps")
    for prompt in PROMPTS[kind]:
        names = name_package(prompt, project="shop")
        tree = render_frame(names, needs=()) | write_package(prompt, names)
        bench.workspace.joinpath(names.package).mkdir(exist_ok=True)
        write_tree(bench.workspace / names.package / "project", tree)
        (bench.workspace / names.package / "env").symlink_to(bench.workspace / "env")
        other = Bench(bench.workspace / names.package, prompt)

        findings = await find_faults(other.context("checks"))

        assert findings == [], (prompt, findings)


# ── the environment ───────────────────────────────────────────────────────────


async def test_an_environment_holds_what_the_lock_says_and_nothing_else(bench: Bench) -> None:
    await bench.run("scaffold", "code", "deps")

    locked = {each["name"]: each["version"] for each in tomllib.loads(bench.project["uv.lock"])["package"]}
    listing = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    ran = await bench.context("checks").run("env/bin/python", "-I", "-c", listing)
    installed = {name.lower(): version for name, version in json.loads(ran.output_tail).items()}
    assert {"pytest", "ruff"} <= installed.keys()
    assert all(locked[name] == version for name, version in installed.items())


async def test_a_stage_that_is_run_again_after_a_loss_clears_what_it_makes(bench: Bench) -> None:
    await bench.run("scaffold", "code", "deps")
    (bench.workspace / "env" / "rubbish").write_text("x")
    (bench.workspace / "project" / "rubbish.py").write_text("import os\n")
    (bench.workspace / "result").mkdir()
    (bench.workspace / "result" / "rubbish").write_text("x")

    await bench.run()

    assert not (bench.workspace / "env" / "rubbish").exists()
    assert "rubbish.py" not in bench.project
    assert [path.name for path in (bench.workspace / "result").iterdir()] == ["shop"]


async def test_checks_make_the_environment_again_where_a_checkpoint_has_none(bench: Bench) -> None:
    await bench.run("scaffold", "code")

    await bench.run("checks")

    assert (bench.workspace / "result" / "shop" / "pyproject.toml").is_file()


async def test_wheels_that_are_missing_are_the_systems_fault_and_say_so(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-wheels").mkdir()
    monkeypatch.setenv("HEADGATE_WHEELS", str(tmp_path / "no-wheels"))

    with pytest.raises(StageFailed, match="The environment cannot be made") as failed:
        await bench.run("scaffold", "code", "deps")

    assert failed.value.fault is Fault.SYSTEM
    assert "wheels" in failed.value.detail


async def test_a_package_that_cannot_be_had_is_for_the_next_iteration_to_mend(bench: Bench) -> None:
    await bench.run("scaffold", "code")
    bench.put(render_frame(name_package("a shop", project="p"), needs=("httpx",)))
    (bench.workspace / "project" / "uv.lock").unlink()

    await bench.run("deps")
    with pytest.raises(ChecksFailed, match="cannot be installed") as failed:
        await bench.run("checks")

    assert "httpx" in failed.value.detail


async def test_what_a_model_asks_for_is_fetched_from_the_index_as_wheels_alone(
    bench: Bench, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = tmp_path_factory.mktemp("shelf")  # the workspace holds the project alone
    for wheel in WHEELS.iterdir():
        (shelf / wheel.name).symlink_to(wheel)
    for name in ("tinydep", "colorama"):  # the latter is locked for systems that are not ours
        put_wheel(shelf, name)
    ran = tmp_path / "ran"
    put_source(shelf, "onlysource", runs=f"open({str(ran)!r}, 'w')")
    needy = TIDY | {"tests/test_dep.py": "import tinydep\n\n\ndef test_it():\n    assert tinydep.HERE\n"}
    needs = "=== NEEDS ===\n{}\n=== END ===\n"
    answers = [says(files(needy) + needs.format(name)) for name in ("onlysource", "tinydep>=1")]
    async with an_index(shelf) as url, a_provider(*answers) as provider:
        monkeypatch.setenv("HEADGATE_INDEX", url)
        bench.providers = {"parrot": provider.endpoint}

        first = await bench.iteration(1)
        said, bench.failure = bench.failure, "again"
        second = await bench.iteration(2)

    assert (first, second) == (False, True)
    assert "onlysource" in said
    assert not ran.exists()
    result = read_tree(bench.workspace / "result" / "shop")
    assert tomllib.loads(result["pyproject.toml"])["project"]["dependencies"] == ["tinydep>=1"]
    assert "tinydep-1.0-py3-none-any.whl" in result["uv.lock"]
    assert [act for act in bench.link.acts if "online" in act] == ["uv lock online"] * 2 + ["uv pip online"]
    assert [each.environ for each in bench.link.commands if each.network] == [{"UV_SYSTEM_CERTS": "1"}] * 3


@pytest.mark.builds
async def test_an_index_that_is_out_of_reach_is_the_systems_fault(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_INDEX", "http://127.0.0.1:9/simple")
    async with a_provider(says(files(TIDY) + "=== NEEDS ===\nhttpx\n=== END ===\n")) as provider:
        bench.providers = {"parrot": provider.endpoint}

        with pytest.raises(StageFailed) as failed:
            await bench.run("scaffold", "code", "deps")

    assert failed.value.fault is Fault.SYSTEM
    assert "index" in failed.value.detail


async def test_a_wheel_that_is_not_what_the_lock_says_is_refused(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = tmp_path_factory.mktemp("forged")
    for wheel in WHEELS.iterdir():
        content = wheel.read_bytes()
        (forged / wheel.name).write_bytes(content + b"\0" if wheel.name.startswith("iniconfig") else content)
    monkeypatch.setenv("HEADGATE_WHEELS", str(forged))

    with pytest.raises(StageFailed):
        await bench.run("scaffold", "code", "deps")

    assert any("hash" in line.lower() for line in bench.link.lines)


async def test_nothing_that_is_deps_may_read_comes_from_the_job(bench: Bench) -> None:
    """A configuration of uv's that a command has left behind would name an index of its own; a project around ours
    would be the root of a workspace, with a lock of its own."""
    await bench.run("scaffold", "code")
    (bench.workspace / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["project"]\nnonsense = [')
    (bench.workspace / "uv.lock").write_text("nonsense")
    (bench.workspace / "project" / "uv.toml").write_text('index-url = "http://127.0.0.1:9/"\nnonsense = 1\n')
    (bench.workspace / "uv.toml").write_text("nonsense = 1\n")

    await bench.run("deps")

    assert (bench.workspace / "env" / "bin" / "pytest").exists()


def test_wheels_are_found_beside_the_workers_python_and_an_empty_index_is_none(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()

    assert Sources.of({}, prefix=str(tmp_path)) == Sources(tmp_path / "wheels", "https://pypi.org/simple")
    assert Sources.of({"HEADGATE_INDEX": ""}, prefix=str(tmp_path)).index is None
    assert Sources.of({"HEADGATE_WHEELS": "/nowhere"}, prefix=str(tmp_path)).wheels is None
    assert Sources.of({"HEADGATE_INDEX": "http://mirror:8081/simple"}, prefix="").ports == (8081,)


def test_uv_trusts_what_the_machine_trusts_unless_something_else_is_said() -> None:
    known = subprocess.run((find_uv_bin(), "pip", "sync", "--help"), capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own uv

    assert Sources.of({}).system_certs == "1"
    assert Sources.of(clean_environment({"UV_SYSTEM_CERTS": "0"})).system_certs == "0"
    assert "UV_SYSTEM_CERTS=" in known


# ── the checks ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("broken", "check", "said"),
    [
        ({"src/shop/a.py": "def f(\n"}, "ruff check", "invalid-syntax"),
        ({"src/shop/a.py": "def f():\n    return missing\n"}, "ruff check", "F821"),
        ({"tests/test_a.py": "def test_a():\n    assert 1 == 2\n"}, "pytest", "assert 1 == 2"),
        ({"tests/test_a.py": "import no_such_module\n\nno_such_module.f()\n"}, "pytest", "No module named"),
        ({"tests/test_a.py": "import os\n\n\ndef test_a():\n    os._exit(0)\n"}, "pytest", "ended without a result"),
    ],
)
async def test_checks_that_fail_say_which_and_why(bench: Bench, broken: dict[str, str], check: str, said: str) -> None:
    await bench.run("scaffold", "code", "deps")
    bench.put(broken)

    with pytest.raises(ChecksFailed) as failed:
        await bench.run("checks")

    assert check in failed.value.summary
    assert said in failed.value.detail
    assert not (bench.workspace / "result").exists()


async def test_layout_and_imports_are_tidied_and_cost_no_iteration(bench: Bench) -> None:
    await bench.run("scaffold", "code", "deps")
    bench.put({"src/shop/a.py": "import os, sys\nimport json\ndef  f( x ) :\n  return json.dumps(x)\n"})

    await bench.run("checks")

    result = read_tree(bench.workspace / "result" / "shop")["src/shop/a.py"]
    assert result == "import json\n\n\ndef f(x):\n    return json.dumps(x)\n"


async def test_an_author_cannot_switch_the_checks_off(bench: Bench) -> None:
    """Neither by an answer nor by a command that left a configuration behind."""
    await bench.run("scaffold", "code")
    bench.put(
        {
            "ruff.toml": "[lint]\nselect = []\n",
            ".ruff.toml": "[lint]\nselect = []\n",
            "pyproject.toml": "[project]\nname = 'x'\n[tool.ruff.lint]\nselect = []\n",
            "conftest.py": "collect_ignore_glob = ['*']\n",
            "src/shop/a.py": "def f():\n    return missing\n",
        }
    )

    await bench.run("scaffold", iteration=2)

    assert {"ruff.toml", ".ruff.toml", "conftest.py"}.isdisjoint(bench.project)
    assert 'select = ["B"' in bench.project["pyproject.toml"]
    assert "src/shop/a.py" in bench.project


async def test_a_result_is_what_was_checked_and_not_what_its_tests_have_made_of_it(bench: Bench) -> None:
    await bench.run("scaffold", "code", "deps")
    scribble = "from pathlib import Path\n\n\ndef test_a():\n    Path('src/shop/evil.py').write_text('x')\n"
    bench.put({"tests/test_a.py": scribble})

    await bench.run("checks")

    result = read_tree(bench.workspace / "result" / "shop")
    assert "src/shop/evil.py" not in result
    assert result["tests/test_a.py"] == scribble.replace("'", '"')


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    output = "first\n" + "x" * 100_000 + "\nlast"

    short = shortened(output)

    assert len(short) < MAX_OUTPUT_CHARS + 100
    assert short.startswith("first")
    assert short.endswith("last")
    assert len(detail_of([Finding("ruff check", "failed", output), Finding("pytest", "failed", output)])) < 16_000


async def test_a_stage_can_be_cancelled_in_the_middle_of_a_command(bench: Bench) -> None:
    await bench.run("scaffold", "code", "deps")
    bench.put({"tests/test_a.py": "import time\n\n\ndef test_a():\n    time.sleep(60)\n"})
    running = asyncio.create_task(bench.run("checks"))
    await eventually(lambda: any(act.startswith("python") for act in bench.link.acts))

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
