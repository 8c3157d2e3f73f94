"""The tools of older releases print the same against the broker under test and a real, newer broker.

Method: as in test_tools.py. These tools send older versions of nearly every API. Their scripts, as in
test_tool_scripts.py, run against brokers of their own release too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import broker_under_test
from tests.clients.tool_scripts import old, quotas
from tests.clients.tool_steps import Action, run_script
from tests.clients.tools import OLD_GROUPS, OLD_OFFSETS, OLD_TOPICS, OLD_VERSIONS, Pair, ToolOutput, rows, running_tools
from tests.oracle.cluster import AS_DELIVERED, real_kafka

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module", params=["2.0.1", "2.8.2"])
def release(request: pytest.FixtureRequest) -> str:
    release: str = request.param
    return release


@pytest.fixture(scope="module")
def pair(release: str, tested_and_real: tuple[str, str]) -> Iterator[Pair]:
    with running_tools(release) as tools:
        yield Pair(tools, *tested_and_real)


def single_spaced(printed: ToolOutput) -> str:
    return "\n".join(rows(printed.out))


def test_broker_api_versions_are_shown(pair: Pair) -> None:
    assert "OffsetCommit(8): 2 to 10" in pair.same(OLD_VERSIONS).out


def test_groups_are_listed_described_reset_and_deleted(pair: Pair, release: str) -> None:
    topic = pair.create_topic(f"for-tools-of-{release}", 2)
    group = pair.commit(f"of-tools-{release}", topic, {0: 3, 1: 0})
    describe = ("--describe", "--group", group)

    assert group in rows(pair.same(OLD_GROUPS, "--list", unordered=True).out)
    assert f"{topic} 0 3 0 -3 - - -" in single_spaced(pair.same(OLD_GROUPS, *describe))
    pair.same(OLD_GROUPS, *describe, "--state")
    pair.same(OLD_GROUPS, *describe, "--members")
    pair.same(OLD_GROUPS, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert f"{topic} 0 0 0 0 - - -" in single_spaced(pair.same(OLD_GROUPS, *describe))
    pair.same(OLD_GROUPS, "--describe", "--group", "no-such-group")
    pair.same(OLD_GROUPS, "--delete", "--group", group)
    pair.same(OLD_GROUPS, "--delete", "--group", group)
    assert group not in rows(pair.same(OLD_GROUPS, "--list", unordered=True).out)


@pytest.mark.parametrize("release", ["2.8.2"], indirect=True)
def test_topics_are_created_described_grown_and_deleted(pair: Pair) -> None:
    """Not 2.0.1: its tool queries ZooKeeper."""
    topic = ("--topic", "created-by-2.8.2")
    create = ("--create", *topic, "--partitions", "2", "--replication-factor", "1")

    assert pair.same(OLD_TOPICS, *create).exit_code == 0
    pair.wait_topic("created-by-2.8.2", 2)
    assert "already exists" in pair.same(OLD_TOPICS, *create).out
    assert "PartitionCount: 2" in pair.same(OLD_TOPICS, "--describe", *topic).out
    pair.same(OLD_TOPICS, "--alter", *topic, "--partitions", "3")
    pair.wait_topic("created-by-2.8.2", 3)
    assert rows(pair.same(OLD_OFFSETS, *topic).out) == [f"created-by-2.8.2:{p}:0" for p in range(3)]
    assert pair.same(OLD_TOPICS, "--delete", *topic).exit_code == 0
    pair.wait_topic("created-by-2.8.2", 0)
    assert "created-by-2.8.2" not in pair.same(OLD_TOPICS, "--list").out.splitlines()


@pytest.mark.parametrize(
    ("version", "steps"),
    [("2.0.1", old.GROUPS + old.BROKERS), ("2.8.2", old.GROUPS + old.BROKERS + old.TOPICS + quotas.OLD)],
    ids=["2.0.1", "2.8.2"],
)
def test_every_step_prints_the_same_against_a_broker_of_the_release(
    version: str, steps: tuple[Action, ...], tmp_path: Path
) -> None:
    with (
        real_kafka(version, props=AS_DELIVERED) as real,
        broker_under_test(tmp_path, "--kafka-version", version) as tested,
        running_tools(version) as tools,
    ):
        run_script(steps, Pair(tools, tested.bootstrap, real.bootstrap), tmp_path)
