"""Classic groups that stay classic because of broker settings; the texts are those of 4.0.2 to 4.4.0."""

from __future__ import annotations

import pytest

from kproto_server.testing.in_memory import virtual_clock
from tests.consumer_groups.members import Conversation
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport

START = "Cannot upgrade classic group <group> to consumer group because"


def refusal(release: str, settings: dict[str, str]) -> str:
    """Return what the member of KIP-848 gets that joins a classic group of two members."""
    state = new_state(release, topics={"x": 6}, settings=settings, clock=virtual_clock())
    group = Conversation(InMemoryTransport(state), "the-group", release=release)
    group.learn_topics("x")
    group.join_classic("A", ("x",))
    group.sync("A", assigns={"x": range(6)})
    group.join_classic("C", ("x",))
    group.join_classic("A", ("x",))
    group.join("B", ("x",))
    [[response]] = group.steps[-1].responses.values()
    assert response["error_code"] == 69
    return str(response["error_message"])


@pytest.mark.parametrize("release", ["4.0.2", "4.4.0"])
@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_policy_forbids_upgrades(release: str, policy: str) -> None:
    text = refusal(release, {"group.consumer.migration.policy": policy})
    assert text == f"{START} online upgrade is disabled."


@pytest.mark.parametrize("release", ["4.0.2", "4.4.0"])
def test_a_group_has_too_many_members(release: str) -> None:
    text = refusal(release, {"group.consumer.max.size": "1"})
    assert text == f"{START} the group size exceeds the consumer group maximum size."
