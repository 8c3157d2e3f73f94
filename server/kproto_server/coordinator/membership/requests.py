"""JoinGroup and SyncGroup as the coordinator reads them, whatever version they came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kproto_server.coordinator.groups import Protocols


class JoinRequest(NamedTuple):
    """A JoinGroup."""

    group_id: str
    member_id: str
    """Empty: the member has no id yet."""
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    requires_known_member_id: bool
    """Whether a new member first gets an id, and has to join again with it (GP-14)."""
    supports_skipping_assignment: bool
    """Whether a leader that returns understands that it need not assign (GP-34)."""


class SyncRequest(NamedTuple):
    """A SyncGroup."""

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]
    """Assignments by member id; empty unless the member leads."""
