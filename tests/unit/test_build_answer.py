"""What a model hands over, read strictly, and the project as a value."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.worker.build.answer import ModelAnswer, read_answer
from services.worker.build.asked import Names
from services.worker.build.briefing import MAX_SHOWN_CHARS, complain, go_on, opening
from services.worker.build.tree import (
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TREE_BYTES,
    TreeRefused,
    checked_path,
    checked_tree,
    read_tree,
    write_tree,
)
from services.worker.sandbox.remains import clear

NAMES = Names("shop", "A shop")


def read(text: str, *, was_cut: bool = False) -> ModelAnswer:
    return read_answer(text, package="shop", was_cut=was_cut)


# ── the answer ────────────────────────────────────────────────────────────────


def test_files_are_read_with_the_talk_around_them_left_alone() -> None:
    answer = read(
        "Sure!\n=== FILE src/shop/a.py ===\nA = 1\n=== END ===\nand\n"
        "=== FILE tests/test_a.py ===\n\ndef test_a():\n    pass\n\n\n=== END ===\nDone."
    )

    assert answer == ModelAnswer({"src/shop/a.py": "A = 1\n", "tests/test_a.py": "def test_a():\n    pass\n"})


def test_a_block_ends_with_the_next_one_and_with_the_answer() -> None:
    answer = read("=== FILE src/shop/a.py ===\nA = 1\n=== FILE src/shop/b.py ===\nB = 2")

    assert answer.files == {"src/shop/a.py": "A = 1\n", "src/shop/b.py": "B = 2\n"}


def test_the_file_that_a_cut_answer_ended_in_is_dropped_and_named() -> None:
    answer = read("=== FILE src/shop/a.py ===\nA = 1\n=== FILE src/shop/b.py ===\nB = ", was_cut=True)

    assert answer.files == {"src/shop/a.py": "A = 1\n"}
    assert answer.left_open == "src/shop/b.py"


def test_a_fence_around_a_whole_file_is_taken_off_and_one_inside_is_not() -> None:
    answer = read("=== FILE src/shop/a.py ===\n```python\nA = 1\n```\n=== END ===")
    readme = read("=== FILE README.md ===\n# Shop\n```\nuse\n```\n=== END ===")

    assert answer.files == {"src/shop/a.py": "A = 1\n"}
    assert readme.files == {"README.md": "# Shop\n```\nuse\n```\n"}


def test_files_are_deleted_by_name_and_the_last_word_counts() -> None:
    answer = read(
        "=== FILE src/shop/a.py ===\nA = 1\n=== END ===\n=== DELETE src/shop/a.py ===\n=== DELETE tests/b.py ==="
    )

    assert answer.files == {}
    assert answer.deleted == {"src/shop/a.py", "tests/b.py"}


def test_needs_are_plain_requirements_and_an_empty_block_takes_them_back() -> None:
    assert read("=== NEEDS ===\nhttpx>=0.28\n\nrich\n=== END ===").needs == ("httpx>=0.28", "rich")
    assert read("=== NEEDS ===\n=== END ===").needs == ()
    assert read("nothing").needs is None


def test_a_need_that_is_not_plain_is_a_problem() -> None:
    answer = read("=== NEEDS ===\nevil @ https://example.org/evil.whl\n=== END ===")

    assert answer.needs == ()
    assert "evil @" in answer.problems[0]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_any_line_end_is_understood(end: str) -> None:
    assert read(f"=== FILE src/shop/a.py ==={end}A = 1{end}=== END ===").files == {"src/shop/a.py": "A = 1\n"}


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../evil.py",
        "src/shop/../../../evil.py",
        "src/shop//a.py",
        "src\\shop\\a.py",
        "src/other/a.py",
        "a.py",
        "src/shop/.hidden.py",
        "tests/.env.txt",
        "src/shop/a.so",
        "src/shop/a",
        "pyproject.toml",
        "tests/pytest.ini",
        "src/shop/ruff.toml",
        "src/shop/RUFF.toml",
        "uv.lock",
        "tests/a b.py",
        "tests/ü.py",
        "tests/a/b/c/d/e/f.py",
        "tests/" + "a" * 80 + ".py",
        "C:/a.py",
        "~/a.py",
        "tests/a.py\0.txt",
    ],
)
def test_a_path_outside_of_package_and_tests_is_a_problem_and_nothing_else(path: str) -> None:
    answer = read(f"=== FILE {path} ===\nx\n=== END ===\n=== FILE tests/test_a.py ===\nx\n=== END ===")

    assert set(answer.files) == {"tests/test_a.py"}
    assert len(answer.problems) == 1


def test_text_that_cannot_be_written_is_a_problem_or_made_writable() -> None:
    assert "NUL" in read("=== FILE src/shop/a.py ===\n\0\n=== END ===").problems[0]
    assert read("=== FILE src/shop/a.py ===\n# \ud800\n=== END ===").files == {"src/shop/a.py": "# ?\n"}


@given(st.text(alphabet=st.sampled_from(list("=FILEND srcshop/.py\n`\0\r")), max_size=300), st.booleans())
def test_no_answer_breaks_the_reading_and_no_file_leaves_the_project(text: str, was_cut: bool) -> None:  # noqa: FBT001
    answer = read(text, was_cut=was_cut)

    for path in (*answer.files, *answer.deleted):
        assert checked_path(path, package="shop") == path


# ── the project ───────────────────────────────────────────────────────────────


def test_a_tree_comes_back_as_it_was_written(tmp_path: Path) -> None:
    tree = {"README.md": "# Ü\n", "src/shop/a.py": "A = 1\n", "tests/deep/test_a.py": "\n"}

    write_tree(tmp_path / "project", tree)

    assert read_tree(tmp_path / "project") == tree


def test_writing_leaves_nothing_of_what_was_there(tmp_path: Path) -> None:
    write_tree(tmp_path / "project", {"a.py": "1\n", "b/c.py": "2\n"})

    write_tree(tmp_path / "project", {"b": "3\n"})

    assert read_tree(tmp_path / "project") == {"b": "3\n"}


def test_links_are_neither_read_nor_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("KEY = 1\n")
    project = tmp_path / "project"
    write_tree(project, {"a.py": "1\n"})
    (project / "link.py").symlink_to(outside / "secret.py")
    (project / "folder").symlink_to(outside)
    os.mkfifo(project / "pipe.py")

    assert read_tree(project) == {"a.py": "1\n"}

    clear(project)
    project.symlink_to(outside)
    assert read_tree(project) == {}
    write_tree(project, {"secret.py": "KEY = 2\n"})
    assert (outside / "secret.py").read_text() == "KEY = 1\n"
    assert not project.is_symlink()


def test_what_is_no_text_too_large_or_a_cache_is_not_read(tmp_path: Path) -> None:
    write_tree(tmp_path / "project", {"a.py": "1\n", "__pycache__/a.py": "2\n", ".venv/b.py": "3\n"})
    (tmp_path / "project" / "b.bin").write_bytes(b"\xff\xfe")
    (tmp_path / "project" / "c.py").write_text("x" * (MAX_FILE_BYTES + 1))

    assert read_tree(tmp_path / "project") == {"a.py": "1\n"}


def test_what_a_hostile_command_has_left_is_neither_entered_too_deep_nor_an_error(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write_tree(project, {"a.py": "1\n"})
    deep = os.open(project, os.O_DIRECTORY)
    for _ in range(300):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_DIRECTORY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    (project / os.fsdecode(b"\xff.py")).write_text("2\n")
    (project / "two\nlines.py").write_text("3\n")

    assert read_tree(project) == {"a.py": "1\n"}

    write_tree(project, {"b.py": "4\n"})
    assert sorted(path.name for path in project.iterdir()) == ["b.py"]


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ({f"tests/test_{number}.py": "" for number in range(MAX_FILES + 1)}, "files are more than"),
        ({"tests/test_a.py": "x" * (MAX_FILE_BYTES + 1)}, "tests/test_a.py has"),
        ({f"tests/{n}.txt": "x" * MAX_FILE_BYTES for n in range(MAX_TREE_BYTES // MAX_FILE_BYTES + 1)}, "together"),
        ({"tests/a": "", "tests/a/b.py": ""}, "tests/a is a file and a folder at once"),
    ],
)
def test_a_tree_beyond_its_bounds_is_refused_with_the_bound(tree: dict[str, str], why: str) -> None:
    with pytest.raises(TreeRefused, match=why):
        checked_tree(tree)


# ── what a model is told ──────────────────────────────────────────────────────


def test_the_first_iteration_asks_for_a_package_and_a_later_one_shows_what_failed() -> None:
    tree = {"src/shop/a.py": "A = 1\n"}

    first = opening("a shop", NAMES, tree, failure="", can_fetch=True)[1]["content"]
    later = opening("a shop", NAMES, tree, failure="E   assert 1 == 2", can_fetch=True)[1]["content"]

    assert "=== FILE src/shop/a.py ===\nA = 1\n" in first
    assert "assert 1 == 2" not in first
    assert "E   assert 1 == 2" in later


def test_a_model_is_told_of_other_packages_only_where_they_can_be_fetched() -> None:
    with_index = opening("a shop", NAMES, {}, failure="", can_fetch=True)[0]["content"]
    without = opening("a shop", NAMES, {}, failure="", can_fetch=False)[0]["content"]

    assert "=== NEEDS ===" in with_index
    assert "=== NEEDS ===" not in without
    assert "standard library alone" in without


def test_a_project_that_is_too_large_is_shown_in_part() -> None:
    tree = {f"src/shop/{number}.py": "x" * 60_000 for number in range(5)}

    shown = opening("a shop", NAMES, tree, failure="", can_fetch=False)[1]["content"]

    assert len(shown) < MAX_SHOWN_CHARS + 2000
    assert "(src/shop/4.py: not shown)" in shown


def test_the_form_that_a_model_is_shown_is_the_form_that_is_read() -> None:
    rules = opening("a shop", NAMES, {}, failure="", can_fetch=True)[0]["content"]

    answer = read(rules)

    assert answer.files == {"src/shop/example.py": "the whole content of the file\n"}
    assert answer.needs == ("httpx>=0.28",)
    assert answer.problems == ()


def test_a_cut_answer_is_answered_with_what_has_arrived() -> None:
    word = go_on({"tests/b.py", "src/shop/a.py"}, cut="src/shop/c.py")["content"]

    assert "src/shop/a.py, tests/b.py" in word
    assert "src/shop/c.py was cut off" in word
    assert complain(["no a", "no b"])["content"].startswith("This cannot be accepted:\n- no a\n- no b\n")
