"""The notebook shows tables and pictures for the questions of KIP-211; it runs here cell by cell, without Jupyter."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import kproto.spark
from kproto.spark.engine import SPARK, using
from tests.fixture_files import offsets_log

NOTEBOOK = Path(kproto.spark.__file__).parent / "examples" / "kip_211.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; return the value of its last expression, which Jupyter shows."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)  # noqa: S102  # our own text
    return None if last is None else eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)  # type: ignore[attr-defined]  # noqa: S307


def test_the_notebook_from_the_first_cell_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(offsets_log("requested-retentions", "2.0.1"))
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "notebook"}
    shown = []
    with using(SPARK):  # the notebook chooses the embedded engine
        for cell in cells:
            if cell["cell_type"] == "code":
                assert (cell["outputs"], cell["execution_count"]) == ([], None)
                shown.append(run_cell("".join(cell["source"]), names))
    output = capsys.readouterr().out
    assert re.search(r"^a-month +2419200000 +1 +1 .* 40320 +yes$", output, re.MULTILINE)
    assert re.search(r"^no-request +- +2026-11-30T17:06:40.344Z +1 +0 +override$", output, re.MULTILINE)
    assert re.search(r"^a-month +1 +2026-12-21T17:06:40.832Z +2026-11-24T17:06:40.832Z +0 +1$", output, re.MULTILINE)
    pictures = [one._repr_svg_() for one in shown if hasattr(one, "_repr_svg_")]
    assert [len(ElementTree.fromstring(text).findall("{*}rect")) for text in pictures] == [5, 5, 5]  # noqa: S314  # our own
