"""Operations of the control API that describe groups: members, offsets, lag, and when offsets expire."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto_server.control.problem import not_found
from kproto_server.control.results import Result
from kproto_server.control.schema import INTEGER, STRING, Schema, a_list, an_object
from kproto_server.coordinator.commit import limits_of
from kproto_server.coordinator.expiration import condition_of, deadline_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.broker.controls import BrokerControls
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import OffsetAndMetadata
    from kproto_server.network.server import Server

GROUPS_MAX = 200
"""Groups in one response."""
OFFSETS_MAX = 1000
"""Offsets of one group in one response; and offsets of all groups together that a list of groups reads."""


class GroupPage(NamedTuple):
    """Some groups, those with members first."""

    groups: list[dict[str, Any]]
    has_more: bool


class _Offset(NamedTuple):
    """A committed offset beside the partition that it is of."""

    topic: str
    partition: int
    committed: OffsetAndMetadata
    end_offset: int | None
    """None: the partition does not exist."""
    expires_ms: int | None
    """None: never."""

    @property
    def lag(self) -> int | None:
        return None if self.end_offset is None else self.end_offset - self.committed.offset


def group_page(server: Server) -> GroupPage:
    """Return groups with their states, lags and next expirations, those with members first, `GROUPS_MAX` at most; runs
    in the broker's thread.

    Lags and expirations are null if the groups have more than `OFFSETS_MAX` offsets together.
    """
    coordinator = server.state.coordinator
    registered = coordinator.groups
    ids = chain(
        (group.group_id for group in registered if group.members),
        (group.group_id for group in registered if not group.members),
        coordinator.offsets.some_group_ids(2 * GROUPS_MAX),
    )
    chosen = list(islice(dict.fromkeys(islice(ids, 3 * GROUPS_MAX)), GROUPS_MAX + 1))
    found = []
    left = OFFSETS_MAX
    for group_id in chosen[:GROUPS_MAX]:
        offsets = list(islice(_offsets(server, group_id), left + 1))
        left -= len(offsets)
        found.append(_summary(server, group_id, offsets if left >= 0 else None))
        left = max(left, 0)
    return GroupPage(found, len(chosen) > GROUPS_MAX)


def _summary(server: Server, group_id: str, offsets: list[_Offset] | None) -> dict[str, Any]:
    group = server.state.coordinator.group(group_id)
    lags = [one.lag for one in offsets or () if one.lag is not None]
    expirations = [one.expires_ms for one in offsets or () if one.expires_ms is not None]
    return {
        "group_id": group_id,
        "kind": "classic" if group is None else group.kind,
        "state": "Empty" if group is None else group.state.value,
        "generation": -1 if group is None else group.generation,
        "member_count": 0 if group is None else len(group.members),
        "lag": sum(lags) if lags else None,
        "expires_ms": min(expirations, default=None),
    }


def group(broker: BrokerControls, group_id: str) -> dict[str, Any]:
    """Return a group with its members and their assignments, and its offsets with lag and expiration, 1,000 at most.

    ``expires_ms`` is the broker's time from which on an offset is expired if the group stays as it is; null: never.

    Raises:
        Problem: there is no such group.
    """
    found = broker.run(lambda server: _described(server, group_id))
    if found is None:
        raise not_found(f"there is no group {group_id!r}")
    about_members = found.pop("about_members")
    found["members"] = [
        member._asdict()
        | {"partitions": [{"topic": topic, "partition": partition} for topic, partition in member.partitions]}
        | about_members.get(member.member_id, {"client_host": "", "is_leader": False})
        for member in islice(broker.groups.members(group_id), OFFSETS_MAX)
    ]
    if found["kind"] == "share":
        lags = broker.groups.lag(group_id)
        found["offsets"] = [
            {"topic": topic, "partition": partition, "offset": offset, "lag": lags.get((topic, partition))}
            for (topic, partition), offset in sorted(broker.groups.start_offsets(group_id).items())[:OFFSETS_MAX]
        ]
    return found


def _described(server: Server, group_id: str) -> dict[str, Any] | None:
    coordinator = server.state.coordinator
    group = coordinator.group(group_id)
    offsets = list(islice(_offsets(server, group_id), OFFSETS_MAX + 1))
    if group is None and not offsets:
        return None
    node = server.state.cluster.coordinator_of(group_id)
    return {
        **_summary(server, group_id, offsets),
        "protocol_type": None if group is None else group.protocol_type,
        "protocol": None if group is None else group.protocol_name,
        "coordinator": None if node is None else node.node_id,
        "about_members": _about_members(group),
        "offsets": [_offset(one) for one in sorted(offsets[:OFFSETS_MAX], key=lambda one: one[:2])],
        "has_more_offsets": len(offsets) > OFFSETS_MAX,
    }


def _about_members(group: Group | None) -> dict[str, dict[str, Any]]:
    """Return, by member id, what `GroupMember` does not have."""
    if group is None:
        return {}
    return {
        one.member_id: {"client_host": one.client_host, "is_leader": one.member_id == group.leader_id}
        for one in group.members.values()
    }


def _offset(one: _Offset) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.committed.offset,
        "end_offset": one.end_offset,
        "lag": one.lag,
        "metadata": one.committed.metadata,
        "committed_ms": one.committed.commit_timestamp_ms,
        "expires_ms": one.expires_ms,
    }


def _offsets(server: Server, group_id: str) -> Iterator[_Offset]:
    coordinator, cluster = server.state.coordinator, server.state.cluster
    condition = condition_of(coordinator.group(group_id), coordinator.behavior)
    retention_ms = limits_of(coordinator.settings.current).retention_ms
    for name, partitions in coordinator.offsets.of_group(group_id).items():
        topic = cluster.topic(name)
        for index, committed in partitions.items():
            partition = None if topic is None else topic.partition(index)
            end_offset = None if partition is None else partition.high_watermark
            expires_ms = deadline_ms(name, committed, condition, retention_ms, coordinator.behavior)
            yield _Offset(name, index, committed, end_offset, expires_ms)


NULLABLE: Schema = {"type": ["integer", "null"]}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_OFFSET = an_object(
    {"topic": STRING, **dict.fromkeys(("partition", "offset"), INTEGER), "lag": NULLABLE},
    end_offset=NULLABLE,
    metadata=STRING,
    committed_ms=INTEGER,
    expires_ms=NULLABLE,
)
_MEMBER = an_object(
    {
        **dict.fromkeys(("member_id", "client_id", "client_host"), STRING),
        "group_instance_id": TEXT_OR_NULL,
        "is_leader": {"type": "boolean"},
        "partitions": a_list(an_object({"topic": STRING, "partition": INTEGER})),
    }
)
GROUP = Result(
    "the group",
    an_object(
        {
            **dict.fromkeys(("group_id", "kind", "state"), STRING),
            **dict.fromkeys(("generation", "member_count"), INTEGER),
            **dict.fromkeys(("lag", "expires_ms", "coordinator"), NULLABLE),
            "protocol_type": TEXT_OR_NULL,
            "protocol": TEXT_OR_NULL,
            "members": a_list(_MEMBER),
            "offsets": a_list(_OFFSET),
            "has_more_offsets": {"type": "boolean"},
        }
    ),
)
