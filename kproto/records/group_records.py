"""Records of classic groups (type 2 of `__consumer_offsets`; LF-14 to LF-16)."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bytes, Int32, Int64, NullableString, String, Struct, ignorable, since
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue


class GroupMetadataKey(CoordinatorKey, record_type=2):
    group: String


class MemberMetadata(Struct):
    member_id: String
    group_instance_id: Annotated[NullableString, since(3), ignorable] = None
    client_id: String
    client_host: String
    rebalance_timeout: Annotated[Int32, since(1), ignorable] = -1
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes

    def effective_rebalance_timeout(self) -> int:
        """Return the rebalance timeout; version 0 has none, and the session timeout applies (LF-16)."""
        return self.session_timeout if self.rebalance_timeout < 0 else self.rebalance_timeout


class GroupMetadataValue(CoordinatorValue, versions=(0, 4), flexible=4):
    """v1: + members[].rebalance_timeout
    v2: + current_state_timestamp
    v3: + members[].group_instance_id?
    v4: flexible
    """

    protocol_type: String
    generation: Int32
    protocol: NullableString
    leader: NullableString
    current_state_timestamp: Annotated[Int64, since(2), ignorable] = -1
    members: Array[MemberMetadata]
