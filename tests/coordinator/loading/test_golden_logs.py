"""Logs of real brokers load to the offsets and groups that the brokers had (fixtures/golden/logs).

The expected values follow from the requests (`conversation.txt`): commits of all versions, a member that joins, commits
and leaves, transactions that are committed and aborted, deletions; in 4.4.0 also a static member and a consumer group.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto_server.coordinator.groups import GroupState
from tests.coordinator.loading.logs import Loaded, loaded
from tests.fixture_files import golden_log

RELEASES = ("2.0.1", "2.1.1", "4.4.0")
WHOLE = {"t": {0: 42, 1: 7, 2: 0}, "u": {0: 1099511627776}}
ONE = {"t": {0: 42}}
COMMON = {"ret-v3": ONE, "ret-v4": ONE, "v3": WHOLE, "v4": WHOLE, "tx": {"t": {0: 501}}}
AT_THE_END = {
    "2.0.1": {**COMMON, "ret-v2": ONE, "v1": {"t": {0: 1}}},
    "2.1.1": {**COMMON, "ret-v2": ONE, "v1": {"t": {0: 1}}, "v5": WHOLE, "v6": {**WHOLE, "t": {0: 43, 1: 7, 2: 0}}},
    "4.4.0": {
        **COMMON,
        "ret-v2": ONE,
        "v5": WHOLE,
        "v6": {**WHOLE, "t": {0: 43, 1: 7, 2: 0}},
        "v7": {**WHOLE, "t": {0: 43, 1: 7, 2: 0}},
        "v8": {**WHOLE, "t": {0: 43, 1: 7, 2: 0}},
        "v9": {**WHOLE, "t": {0: 43, 2: 0}},
        "k848": {"t": {0: 1}},
    },
}


def segment(release: str) -> bytes:
    return Path(golden_log(release) / "__consumer_offsets-0" / "00000000000000000000.log").read_bytes()


def golden(release: str) -> Loaded:
    return loaded(segment(release), release)


@pytest.mark.parametrize("release", RELEASES)
def test_the_offsets_at_the_end(release: str) -> None:
    """LF-31, LF-32: without aborted and deleted offsets, with those of committed transactions."""
    found = golden(release)
    assert found.offsets_as_dicts() == AT_THE_END[release]
    assert not found.load.pending
    assert not found.load.skipped


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_leader_epochs_and_times(release: str) -> None:
    offsets = golden(release).offsets
    assert {offsets["v3"]["u"][0].metadata, offsets["tx"]["t"][0].metadata} == {"héllo ✓", "tx"}
    whole, with_retention = offsets["v3"]["t"][0], offsets["ret-v3"]["t"][0]
    expire_ms = with_retention.expire_timestamp_ms
    assert expire_ms is not None
    assert expire_ms - with_retention.commit_timestamp_ms == 60_000
    if release == "2.0.1":
        assert whole.expire_timestamp_ms == whole.commit_timestamp_ms + 7 * 86_400_000
    else:
        assert whole.expire_timestamp_ms is None
        assert offsets["v6"]["t"][0].leader_epoch == 5
    assert (whole.topic_id == bytes(16)) == (release != "4.4.0")


@pytest.mark.parametrize("release", RELEASES)
def test_slices_may_end_anywhere(release: str) -> None:
    whole = golden(release)
    for size in (1, 7, 1000):
        assert loaded(segment(release), release, slice_size=size).offsets == whole.offsets


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_deleted_groups_are_not_loaded(release: str) -> None:
    found = golden(release)
    assert list(found.state.coordinator.groups) == found.load.groups == []


def test_the_groups_of_the_newest_release() -> None:
    """LF-35: "live" was deleted; "static" has a member that never left."""
    found = golden("4.4.0")
    assert [group.group_id for group in found.load.groups] == ["static", "k848"]
    static, k848 = found.load.groups
    assert static is found.state.coordinator.groups.get("static")
    assert (static.kind, static.state, static.generation) == ("classic", GroupState.STABLE, 1)
    assert (static.protocol_type, static.protocol_name) == ("consumer", "range")
    (member,) = static.members.values()
    assert (member.group_instance_id, member.client_id, member.client_host) == ("inst-1", "golden", "/127.0.0.1")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (30_000, 60_000)
    assert static.static_members == {"inst-1": member.member_id}
    assert static.leader_id == member.member_id
    assert static.subscribed_topics == frozenset({"t"})
    assert static.state_timestamp_ms == 1795215209256
    assert (k848.kind, k848.state, k848.generation) == ("consumer", GroupState.STABLE, 2)
    (member,) = k848.members.values()
    assert (member.client_id, member.epoch, member.speaks_classic) == ("golden", 2, False)
    assert k848.subscribed_topics == frozenset({"t"})
