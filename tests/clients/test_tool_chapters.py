"""Kafka's own tools, of the newest release, in sessions: each chapter of steps runs against both brokers.

Method: tool_steps.py; all chapters in one JVM. What one step changes the next ones show.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.tool_chapters import CHAPTERS
from tests.clients.tool_steps import run_chapter
from tests.clients.tools import CONFIGS, Pair, running_tools
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def pair(tested_and_real: tuple[str, str]) -> Iterator[Pair]:
    with running_tools(NEWEST) as tools:
        yield Pair(tools, *tested_and_real)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_step_prints_the_same_against_both(pair: Pair, chapter: str, tmp_path: Path) -> None:
    run_chapter(CHAPTERS[chapter], pair, tmp_path)


def test_what_is_told_of_a_broker_is_part_of_what_kafka_tells(pair: Pair) -> None:
    """kproto has some forty of Kafka's settings. What is set on this real broker differs, the others do not."""
    tested, real = (_settings(pair, address) for address in pair.addresses)

    assert set(tested) <= set(real)
    assert len(tested) > 30
    set_here = {name for name, told in real.items() if "STATIC_BROKER_CONFIG" in told}
    assert {name: tested[name] for name in tested if name not in set_here} == {
        name: real[name] for name in tested if name not in set_here
    }


def _settings(pair: Pair, address: str) -> dict[str, str]:
    printed = pair.run(address, CONFIGS, *["--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"])
    return {line.strip().partition("=")[0]: line for line in printed.out.splitlines() if line.startswith("  ")}
