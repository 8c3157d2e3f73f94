"""The store of committed offsets: a change affects the offsets that it names, and no others."""

from __future__ import annotations

from kproto_server.coordinator.offsets import OffsetAndMetadata, OffsetStore


def stored(offset: int, metadata: str = "") -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, metadata, 1000, None, bytes(16))


def test_commit_becomes_visible_as_a_whole() -> None:
    """OS-26: all topics and partitions of a commit together."""
    offsets = OffsetStore()
    offsets.apply_commit("g", [("t", [(0, stored(1)), (1, stored(2))]), ("u", [(0, stored(3))])])
    assert {t: {p: v.offset for p, v in ps.items()} for t, ps in offsets.of_group("g").items()} == {
        "t": {0: 1, 1: 2},
        "u": {0: 3},
    }
    assert len(offsets) == 3


def test_later_commit_replaces_only_its_own_partitions() -> None:
    offsets = OffsetStore()
    offsets.apply_commit("g", [("t", [(0, stored(1)), (1, stored(2))])])
    offsets.apply_commit("g", [("t", [(1, stored(7, "m"))])])
    assert offsets.of_group("g")["t"] == {0: stored(1), 1: stored(7, "m")}


def test_last_offset_of_a_repeated_partition_counts() -> None:
    """OC-14."""
    offsets = OffsetStore()
    offsets.apply_commit("g", [("t", [(0, stored(5)), (0, stored(6))])])
    assert offsets.of_group("g")["t"] == {0: stored(6)}


def test_groups_do_not_see_each_other() -> None:
    offsets = OffsetStore()
    offsets.apply_commit("g", [("t", [(0, stored(1))])])
    offsets.apply_commit("", [("t", [(0, stored(2))])])
    assert offsets.of_group("g")["t"][0].offset == 1
    assert offsets.of_group("")["t"][0].offset == 2
    assert offsets.of_group("h") == {}


def test_deletion_removes_its_offsets_and_leaves_no_empty_topics() -> None:
    """EX-30: a group without offsets is removed, so no empty topic may be left."""
    offsets = OffsetStore()
    offsets.apply_commit("g", [("t", [(0, stored(1)), (1, stored(2))]), ("u", [(0, stored(3))])])
    offsets.apply_deletion("g", [("t", [0]), ("u", [0, 9]), ("v", [0])])
    assert offsets.of_group("g") == {"t": {1: stored(2)}}
    assert list(offsets.groups_with({"u"})) == []
    offsets.apply_deletion("g", [("t", [1])])
    assert offsets.of_group("g") == {}
    offsets.apply_deletion("g", [("t", [1])])
    assert len(offsets) == 0


def test_groups_of_a_topic_are_found() -> None:
    """EX-60."""
    offsets = OffsetStore()
    for group_id, topic in (("a", "t"), ("b", "u"), ("c", "t")):
        offsets.apply_commit(group_id, [(topic, [(0, stored(1))])])
    assert sorted(offsets.groups_with({"t", "nope"})) == ["a", "c"]
