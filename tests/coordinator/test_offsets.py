"""The store of committed offsets: a change affects the offsets that it names, and no others."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

from kproto_server.coordinator.offsets import LazyEntries, OffsetAndMetadata, OffsetStore

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import CommitEntries


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


class Lazy(LazyEntries):
    """The commit of one partition of a topic, not decoded yet."""

    def __init__(self, partition: int, value: OffsetAndMetadata, *, expires_early: bool = False) -> None:
        self.entries: CommitEntries = [("t", [(partition, value)])]
        self.early = expires_early
        self.is_taken = False

    @property
    def expires_early(self) -> bool:
        return self.early

    def take(self) -> CommitEntries:
        assert not self.is_taken
        self.is_taken = True
        return self.entries


@pytest.mark.parametrize(
    ("later", "partitions"),
    [
        (Lazy(1, stored(2)), {0: 1, 1: 2}),
        ([("t", [(0, stored(2))])], {0: 2}),
        ([("t", [(1, stored(2))])], {0: 1, 1: 2}),
    ],
    ids=["lazy", "of the same partition", "of another partition"],
)
def test_a_commit_comes_after_the_lazy_one_before(later: CommitEntries | Lazy, partitions: dict[int, int]) -> None:
    offsets = OffsetStore()
    offsets.apply_commit("g", Lazy(0, stored(1)))
    offsets.apply_commit("other", Lazy(0, stored(9)))
    offsets.apply_commit("g", later)
    assert {index: value.offset for index, value in offsets.of_group("g")["t"].items()} == partitions
    assert [offsets.offset_of(("g", "t", index)) for index in (0, 7)] == [stored(partitions[0]), None]
    assert [offsets.offset_of(("g", "u", 0)), offsets.offset_of(("h", "t", 0))] == [None, None]


def test_a_deletion_comes_after_the_lazy_commit_before() -> None:
    offsets = OffsetStore()
    offsets.apply_commit("g", Lazy(0, stored(1)))
    offsets.apply_deletion("g", [("t", [0])])
    assert not offsets.has("g")
    assert offsets.of_group("g") == {}


@pytest.mark.parametrize("early", [True, False])
def test_the_table_names_groups_with_offsets_that_expire_early(early: bool) -> None:
    """Such an offset may expire at any time, whenever it was committed."""
    offsets = OffsetStore()
    offsets.apply_commit("g", Lazy(0, stored(1)._replace(expire_timestamp_ms=2), expires_early=early))
    assert offsets.of_group("g")
    assert list(chain(*offsets.groups_to_check(0))) == ([("g", None)] if early else [])


def test_lazy_commits_that_the_table_does_not_name_touch_their_groups() -> None:
    offsets = OffsetStore()
    for number, (group_id, early) in enumerate([("new", False), ("early", True), ("early", False), ("early", True)]):
        if number:
            offsets.settle(group_id)
        offsets.touched.clear()
        offsets.apply_commit(group_id, Lazy(0, stored(1), expires_early=early))
        assert list(offsets.touched) == ([] if number == 2 else [group_id])


def test_some_groups_are_named_without_decoding_a_commit() -> None:
    offsets = OffsetStore()
    lazy = {f"lazy-{number}": Lazy(0, stored(1)) for number in range(3)}
    for group_id, entries in lazy.items():
        offsets.apply_commit(group_id, entries)
    assert offsets.some_group_ids(2) == ["lazy-0", "lazy-1"]
    offsets.apply_commit("in the table", [("t", [(0, stored(1))])])
    assert sorted(offsets.some_group_ids(3)) == sorted(lazy)
    assert sorted(offsets.some_group_ids(9)) == sorted([*lazy, "in the table"])
    assert not any(entries.is_taken for entries in lazy.values())
