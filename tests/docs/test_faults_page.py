"""Each example of server/FAULTS.md runs, and its tables have all names of rules.

Method: the programs, the file and the command are taken from the page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kproto_server.faults.rule import FaultRule
from tests.docs.page_examples import ROOT, blocks, run, run_program

PAGE = (ROOT / "server" / "FAULTS.md").read_text()


@pytest.mark.parametrize("program", blocks("FAULTS.md", "python"))
def test_each_program_works(program: str, tmp_path: Path) -> None:
    run_program(program, tmp_path)


def test_the_file_and_the_command_work(tmp_path: Path) -> None:
    rules, (command,) = "".join(blocks("FAULTS.md", "yaml")), blocks("FAULTS.md", "sh")
    (tmp_path / "rules.yaml").write_text(rules)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    assert "orders-0: offset 42" in run(["bash", "-c", command], tmp_path)


def test_the_tables_have_all_names() -> None:
    rows = "\n".join(line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`(\w+)`", rows))
    assert set(FaultRule.__annotations__) - named == {
        "place",
        "when",
        "chunk_interval_ms",
    }  # described below the tables
    assert named <= set(FaultRule.__annotations__)
