"""What a job's log says of an author's exception."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from services.worker.child.life import traceback_of


def raised(workspace: Path) -> ValueError:
    try:
        json.loads((workspace / "shop" / "data.json").read_text())
    except (OSError, ValueError) as error:
        fault = ValueError(f"{workspace}/shop/data.json is no JSON")
        fault.__cause__ = error
        return fault
    raise AssertionError("it can be read")


def test_files_are_named_below_what_they_were_imported_from(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "data.json").write_text("{")

    text = traceback_of(raised(tmp_path), workspace=tmp_path)

    assert 'File "json/__init__.py"' in text
    assert 'File "tests/unit/test_worker_blame.py"' in text
    assert "ValueError: shop/data.json is no JSON" in text
    assert not [root for root in (str(tmp_path), sys.prefix, sys.base_prefix, str(Path.cwd())) if root in text]
