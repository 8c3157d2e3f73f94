"""Cases in which real brokers do not respond, or fail, and kproto does not (server/DEVIATIONS.md)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from tests.coordinator.membership.group_driver import RANGE, GroupDriver, error_of, joined


@pytest.mark.parametrize("kafka_version", ["2.0", "2.5", "4.4"])
def test_a_member_that_leaves_gets_a_response_to_its_pending_request(kafka_version: str) -> None:
    """GP-31: 2.0.1 (JoinGroup) and 2.5.1 (SyncGroup) never respond (measured)."""
    driver = GroupDriver(kafka_version)
    leader, _ = driver.stable_with(2)
    waiting = driver.join(leader)  # for the other member to rejoin
    driver.leave((leader, None))
    assert error_of(waiting) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4"])
def test_a_repeated_protocol_counts_once(kafka_version: str) -> None:
    """GP-23: 2.1.1 to 4.4.0 never respond (measured)."""
    assert joined(GroupDriver(kafka_version).join(protocols=RANGE * 2)).protocol_name == "range"


def test_a_leader_in_version_2_gets_static_members_without_instance_ids() -> None:
    """2.5.1 to 3.0.2 return UNSUPPORTED_VERSION (measured)."""
    member = JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=b"")
    response = JoinGroupResponse(error_code=0, protocol_name="range", leader="m", member_id="m", members=(member,))
    (decoded,) = JoinGroupResponse.decode(response.encode(2), 2).members
    assert (decoded.member_id, decoded.group_instance_id) == ("m", None)
