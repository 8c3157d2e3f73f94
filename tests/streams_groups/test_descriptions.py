"""What StreamsGroupDescribe returns before the first target assignment."""

from __future__ import annotations

from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.streams_groups.members import STATEFUL, Application


def test_a_configured_topology_is_described_at_once() -> None:
    """A real broker describes the counts with the next write of the offsets partition (DEVIATIONS)."""
    app = Application(InMemoryTransport(new_state("4.2", clock=virtual_clock())), "4.2.2", "app", 0)
    app.create("t", 3)
    app.create("log", 3)
    app.join("A", STATEFUL)
    app.describe()
    assert described_count(app) == 0
    app.beat("A")
    app.describe()
    assert described_count(app) == 3


def described_count(app: Application) -> int:
    [[response]] = app.steps[-1].responses.values()
    [subtopology] = response["groups"][0]["topology"]["subtopologies"]
    return int(subtopology["state_changelog_topics"][0]["partitions"])
