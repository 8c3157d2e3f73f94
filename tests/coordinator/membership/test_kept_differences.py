"""Where real brokers leave somebody waiting, or fail, and ours does not: server/DEVIATIONS.md."""

from __future__ import annotations

import pytest

from kproto.messages.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from tests.coordinator.membership.gathering import RANGE, Coordinator, error_of, joined


@pytest.mark.parametrize("kafka_version", ["2.0", "2.5", "4.4"])
def test_who_leaves_while_it_waits_is_told(kafka_version: str) -> None:
    """GP-31: measured on 2.0.1 (JoinGroup) and 2.5.1 (SyncGroup) as never answered."""
    coordinator = Coordinator(kafka_version)
    leader, _ = coordinator.stable_with(2)
    waiting = coordinator.join(leader)  # for the other to join again
    coordinator.leave((leader, None))
    assert error_of(waiting) == 25


@pytest.mark.parametrize("kafka_version", ["2.3", "3.9", "4.4"])
def test_a_member_id_that_was_given_may_join_with_an_instance_id(kafka_version: str) -> None:
    """GP-14: measured on 2.3.1 to 4.4.0 as an unexpected error."""
    coordinator = Coordinator(kafka_version)
    told = coordinator.join(requires_known_member_id=True)
    assert error_of(told) == 79
    assert told.result is not None
    assert joined(coordinator.join(told.result.member_id, instance="i")).generation == 1


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4"])
def test_a_protocol_named_twice_is_one(kafka_version: str) -> None:
    """GP-23: measured on 2.1.1 to 4.4.0 as never answered."""
    assert joined(Coordinator(kafka_version).join(protocols=RANGE * 2)).protocol_name == "range"


def test_a_leader_of_version_2_hears_of_static_members_without_their_instance_ids() -> None:
    """Measured as 35 on 2.5.1 to 3.0.2."""
    member = JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=b"")
    response = JoinGroupResponse(error_code=0, protocol_name="range", leader="m", member_id="m", members=(member,))
    (told,) = JoinGroupResponse.decode(response.encode(2), 2).members
    assert (told.member_id, told.group_instance_id) == ("m", None)
