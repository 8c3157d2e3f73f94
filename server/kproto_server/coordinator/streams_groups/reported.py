"""Which statuses the response to a heartbeat has, besides those of delayed targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.streams_groups.statuses import Status, StatusCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.streams_groups.data import StreamsData, StreamsMember
    from kproto_server.coordinator.streams_groups.group import StreamsGroup
    from kproto_server.coordinator.streams_groups.limits import StreamsLimits
    from kproto_server.coordinator.streams_groups.topology import ConfiguredTopology

MISSING_TAGS_SINCE = 1
"""The version from which on clients know MISSING_CLIENT_TAGS."""


def of_stale_topology(data: StreamsData, member: StreamsMember) -> list[Status]:
    """Return the status of a member with an older topology than the group has."""
    if data.topology is None or member.topology_epoch >= data.topology.epoch:
        return []
    detail = (
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
        f"{data.topology.epoch}."
    )
    return [Status(StatusCode.STALE_TOPOLOGY, detail)]


def at_the_end(
    group: StreamsGroup, configured: ConfiguredTopology, member: StreamsMember, limits: StreamsLimits, api_version: int
) -> Iterator[Status]:
    """Yield the statuses that follow from the topics, from another member, and from the tags of this member."""
    if configured.problem is not None:
        yield configured.problem
    if group.shutdown_member_id is not None:
        detail = (
            f"Streams group member {group.shutdown_member_id} encountered a fatal error and requested a shutdown for "
            "the entire application."
        )
        yield Status(StatusCode.SHUTDOWN_APPLICATION, detail)
    missing = [tag for tag in limits.rack_tags if tag not in member.client_tags]
    if missing and api_version >= MISSING_TAGS_SINCE:
        detail = (
            f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. Configure them "
            "via 'client.tag.<tagKey>' in your Streams config."
        )
        yield Status(StatusCode.MISSING_CLIENT_TAGS, detail)
