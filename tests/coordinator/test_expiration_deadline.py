"""`deadline_ms` and `expiration_of` have one rule: an offset is expired from its deadline on, and not before."""

from __future__ import annotations

import pytest

from kproto_server.coordinator.expiration import condition_of, deadline_ms, expiration_of
from kproto_server.coordinator.groups import Group, GroupState
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.releases.kafka_version import KafkaVersion

RETENTION_MS = 1000
NO_ID = bytes(16)


def group_in(state: GroupState, protocol_type: str | None, topics: frozenset[str] | None) -> Group:
    group = Group("billing", 500, state=state, protocol_type=protocol_type)
    group.subscribed_topics = topics
    return group


@pytest.mark.parametrize("release", ["0.11", "2.0", "2.4", "4.4"])
@pytest.mark.parametrize("expire_ms", [None, 700])
@pytest.mark.parametrize(
    "group",
    [
        None,
        group_in(GroupState.EMPTY, None, None),
        group_in(GroupState.EMPTY, "consumer", None),
        group_in(GroupState.STABLE, "consumer", frozenset({"orders"})),
        group_in(GroupState.STABLE, "consumer", frozenset({"others"})),
        group_in(GroupState.PREPARING_REBALANCE, "consumer", frozenset({"others"})),
        group_in(GroupState.STABLE, "connect", None),
    ],
)
def test_an_offset_is_expired_from_its_deadline_on(release: str, expire_ms: int | None, group: Group | None) -> None:
    behavior = KafkaVersion.named(release).behavior(CoordinatorBehavior)
    offset = OffsetAndMetadata(42, -1, "", 100, expire_ms, NO_ID)

    def is_expired(now_ms: int) -> bool:
        return bool(expiration_of(group, {"orders": {0: offset}}, now_ms, RETENTION_MS, behavior).expired)

    found = deadline_ms("orders", offset, condition_of(group, behavior), RETENTION_MS, behavior)
    if found is None:
        assert not is_expired(10**12)
    else:
        assert (is_expired(found - 1), is_expired(found)) == (False, True)
