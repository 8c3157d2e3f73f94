"""Kafka's own tools, of the newest release, in sessions: each chapter of steps runs against both brokers.

Method: tool_steps.py; all chapters in one JVM. What one step changes the next ones show.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.tool_chapters import CHAPTERS
from tests.clients.tool_steps import run_chapter
from tests.clients.tools import Pair, running_tools
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def pair(tested_and_real: tuple[str, str]) -> Iterator[Pair]:
    with running_tools(NEWEST) as tools:
        yield Pair(tools, *tested_and_real)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_step_prints_the_same_against_both(pair: Pair, chapter: str, tmp_path: Path) -> None:
    run_chapter(CHAPTERS[chapter], pair, tmp_path)
