"""kproto returns the OffsetFetch responses of eight releases, 0.10.2.2 to 4.4.0, with the Kafka version of each.

Not asked: what needs an authorizer ("denied" in the note) or a transaction that committed, and the request without
groups, to which 3.9.2 never responded.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.handlers._offsets import OffsetsBehavior
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import commit
from tests.coordinator.consumer_group import add_consumer_group
from tests.server.handlers.recorded import RELEASES, another_node_leads, conversation, recorded_state, replay

NOT_ASKED = ("denied", "after the transaction committed", "no answer within the time limit")


def _committed(state: BrokerState) -> None:
    """The offsets that were there when the recording of OffsetFetch began."""
    state_of_t: dict[int, int | tuple[int, str | None]] = {0: (42, "meta"), 1: (7, None), 2: (0, "")}
    commit(state, "f", {"t": state_of_t, "u": {0: (9, "u")}})
    if state.kafka_version.behavior(OffsetsBehavior).v0_store == "zookeeper":
        commit(state, "f0", {"t": state_of_t}, version=0)
    commit(state, "", {"t": {0: (1, "x")}})


def _consumer(change: int, member_id: str | None = None) -> Any:
    """A group of KIP-848 whose member's epoch differs by ``change`` from the one that is asked with."""

    def prepare(state: BrokerState, request: Any) -> None:
        asked = request.groups[0]
        state.coordinator.groups.remove(asked.group_id)
        commit(state, asked.group_id, {"t": {0: (1, "x")}})
        add_consumer_group(
            state.coordinator,
            0,
            member_id or asked.member_id,
            group_id=asked.group_id,
            epoch=asked.member_epoch + change,
        )

    return prepare


SITUATIONS = {
    "KIP-848 group: right epoch": _consumer(0),
    "KIP-848 group: stale epoch": _consumer(1),
    "KIP-848 group: unknown member": _consumer(0, "other"),
    "group that another broker coordinates": another_node_leads,
    "group that another broker coordinates, all": another_node_leads,
}


@pytest.mark.parametrize("release", RELEASES)
def test_fetch_responses_equal_the_recorded_ones(release: str) -> None:
    """OF-1 to OF-17, OF-31, OF-35 to OF-38, in every version that the release has.

    The bytes are equal (also OF-2, OF-40, BA-15). Null topics of v0 and v1 get no response (OF-14).
    """
    pairs = conversation("OffsetFetch", release)
    pairs = [pair for pair in pairs if not any(reason in pair.note for reason in NOT_ASKED)]
    assert len(pairs) > 30
    state = recorded_state(release, pairs)
    _committed(state)
    assert replay(release, pairs, state, SITUATIONS) == []
