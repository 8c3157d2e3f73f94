"""Each example of server/TESTING.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kproto_server import Broker
from tests.docs.page_examples import blocks, run_program
from tests.requirements import need_package


def test_the_seed_works(tmp_path: Path) -> None:
    (seed,) = blocks("TESTING.md", "yaml")
    (tmp_path / "seed.yaml").write_text(seed)
    with Broker.running(seed=str(tmp_path / "seed.yaml")) as broker:
        assert len(broker.topics.records("orders")) == 4
        assert broker.groups.committed("billing") == {("orders", 0): 1, ("orders", 1): 1}


@pytest.mark.parametrize("program", blocks("TESTING.md", "python"))
def test_each_program_works(program: str, tmp_path: Path) -> None:
    if "mark.asyncio" in program:
        need_package("pytest_asyncio")
    assert re.search(r"\d+ passed|\nOK\n|^127\.0\.0\.1:\d+\n", run_program(program, tmp_path))
