"""The offsets and groups that a coordinator serves, fetched over a socket: the same requests to kproto and real
brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kproto.messages.k09_offset_fetch import OffsetFetchRequest
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from tests.network.raw_client import RawClient
from tests.oracle.releases import number
from tests.waiting import wait_until

NOT_YET = {14, 15, 16}
"""Error codes while the coordinator loads, or the offsets topic is not created or has no leader yet."""


class Committed(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Offsets = Mapping[tuple[str, int], Committed]
"""By topic and partition."""


class Member(NamedTuple):
    member_id: str
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class Group(NamedTuple):
    """A group in the response of DescribeGroups; a group that does not exist has an empty state."""

    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[Member, ...] = ()


class Served(NamedTuple):
    offsets: dict[str, Offsets]
    groups: dict[str, Group]
    listed: dict[str, str]
    """Group id -> protocol type, for all groups."""


def served_by(address: str, release: str, group_ids: Iterable[str]) -> Served:
    """Wait until the coordinator has loaded the partitions of these groups; return their offsets and descriptions."""
    ids = sorted(group_ids)
    with RawClient(address) as client:
        for group_id in ids:
            wait_until(partial(_is_loaded, client, group_id), f"the coordinator of {group_id}")
        offsets = {group_id: committed_offsets(client, release, group_id) for group_id in ids}
        groups = {
            group.group_id: _group(group) for group in client.ask(DescribeGroupsRequest(groups=tuple(ids)), 1).groups
        }
        listed = client.ask(ListGroupsRequest(), 1)
        assert listed.error_code == 0
        return Served(offsets, groups, {group.group_id: group.protocol_type for group in listed.groups})


def _is_loaded(client: RawClient, group_id: str) -> bool:
    if client.ask(FindCoordinatorRequest(key=group_id), 1).error_code in NOT_YET:
        return False
    return client.ask(_all_offsets(group_id), 2).error_code not in NOT_YET


def _all_offsets(group_id: str) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=group_id, topics=None)


def committed_offsets(client: RawClient, release: str, group_id: str) -> Offsets:
    """Return the committed offsets of a group that is loaded."""
    response = client.ask(_all_offsets(group_id), 5 if number(release) >= (2, 1) else 3)
    assert response.error_code == 0, f"{group_id}: {response}"
    found: dict[tuple[str, int], Committed] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            assert partition.error_code == 0, f"{group_id}: {partition}"
            place = topic.name, partition.partition_index
            found[place] = Committed(
                partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
            )
    return found


def _group(group: Any) -> Group:
    assert group.error_code == 0, group
    members = (
        Member(m.member_id, m.client_id, m.client_host, m.member_metadata, m.member_assignment) for m in group.members
    )
    return Group(group.group_state, group.protocol_type, group.protocol_data, tuple(sorted(members)))
