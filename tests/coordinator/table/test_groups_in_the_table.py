"""Groups in the table: their memory, and their changes of size."""

from __future__ import annotations

import tracemalloc
from itertools import islice
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from kproto_server.coordinator.offsets import OffsetAndMetadata, OffsetStore
from kproto_server.coordinator.table.buckets import BLOCKS_MAX, Buckets
from kproto_server.coordinator.table.layouts import ENTRIES_CACHED_MAX, Layouts
from kproto_server.coordinator.table.records import encode
from kproto_server.coordinator.table.table import OffsetTable
from kproto_server.coordinator.table.topics import TopicNumbers
from tests.coordinator.table.reference_table import ReferenceTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.coordinator.offsets import CommitEntries

TOPIC_ID = bytes(16)


def stored(offset: int = 1, *, at_ms: int = 5, metadata: str = "", topic_id: bytes = TOPIC_ID) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, metadata, at_ms, None, topic_id)


def entries(partitions: Iterable[int], topic: str = "t", **fields: int) -> CommitEntries:
    return [(topic, [(partition, stored(partition, **fields)) for partition in partitions])]  # type: ignore[arg-type]


def offsets_of(table: OffsetTable, group_id: str) -> dict[str, dict[int, int]]:
    return {
        name: {partition: value.offset for partition, value in stored.items()}
        for name, stored in table.of_group(group_id).items()
    }


# Memory (OS-13).


@pytest.mark.parametrize(("groups", "topics", "partitions"), [(20, 10, 100), (1_000, 1, 16), (5_000, 1, 1)])
def test_an_entry_takes_at_most_64_bytes(groups: int, topics: int, partitions: int) -> None:
    """OS-13; `bench/table_memory.py` measures resident memory, with millions."""
    offsets = OffsetStore()
    commits = [
        (f"group-{number}", [(f"t{topic}", [(p, stored(p)) for p in range(partitions)]) for topic in range(topics)])
        for number in range(groups)
    ]
    offsets.apply_commit("first", commits[0][1], expires_early=False)
    tracemalloc.start()
    try:
        for group_id, committed in commits:
            offsets.apply_commit(group_id, committed, expires_early=False)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(offsets) == (groups + 1) * topics * partitions
    assert grown / len(offsets) < 64


def test_deleted_topics_take_no_memory() -> None:
    table = OffsetTable()

    def live(number: int) -> None:
        for group_id in ("g", "large"):
            table.apply(group_id, entries(range(3 if group_id == "g" else 100), f"t{number}"), expires_early=False)
            table.remove(group_id, [(f"t{number}", range(100))])

    live(0)
    tracemalloc.start()
    try:
        for number in range(1, 800):
            live(number)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(table) == 0
    assert grown < 64 * 1024, "a topic takes some hundred bytes, its layouts some thousand"


def test_a_topic_that_was_created_many_times_is_one_topic() -> None:
    """Each time with another id; offsets of the old topic are replaced by partition."""
    table = OffsetTable()
    for number in range(300):
        topic_id = number.to_bytes(16, "big")
        table.apply("g", [("t", [(number % 5, stored(number, topic_id=topic_id))])], expires_early=False)
    assert offsets_of(table, "g") == {"t": {0: 295, 1: 296, 2: 297, 3: 298, 4: 299}}
    assert {value.topic_id for value in table.of_group("g")["t"].values()} == {
        number.to_bytes(16, "big") for number in range(295, 300)
    }
    assert len(table) == 5


def test_the_cache_of_layouts_is_bounded() -> None:
    layouts = Layouts(TopicNumbers())
    layouts.topics.base("t", TOPIC_ID)
    for first in range(3000):
        record = encode(tuple(range(first, first + 60)), ((1,) * 60, (-1,) * 60, ("",) * 60, (5,) * 60, (None,) * 60))
        assert record is not None
        layout = layouts.get(record[9 : 9 + record[8]])
        assert layout.keys[0] == first
        assert sum(known.count for known in layouts.cached()) <= ENTRIES_CACHED_MAX


# Changes of a group.


def test_a_commit_in_another_order_or_of_a_partition_twice() -> None:
    """OC-14: the last one counts; a commit with as many partitions as the group need not name all of them."""
    table = OffsetTable()
    table.apply("g", entries([0, 1]), expires_early=False)
    table.apply("g", [("t", [(1, stored(7)), (1, stored(8, at_ms=9))])], expires_early=False)
    assert dict(table.of_group("g")["t"]) == {0: stored(0), 1: stored(8, at_ms=9)}
    table.apply("g", [("t", [(1, stored(3)), (0, stored(4))])], expires_early=False)
    assert offsets_of(table, "g") == {"t": {0: 4, 1: 3}}


@pytest.mark.parametrize("group_id", ["g", "a-group-with-" + "a-long-id-" * 40, "\ud800"])
def test_a_group_grows_and_shrinks(group_id: str) -> None:
    table, reference = OffsetTable(), ReferenceTable()
    for count in (1, 16, 70, 500, 64, 3, 1):
        before = reference.of_group(group_id).get("t", {})
        deleted = [("t", [partition for partition in before if partition >= count])]
        for one in (table, reference):
            one.apply(group_id, entries(range(count), at_ms=count), expires_early=False)
            one.remove(group_id, deleted)
        assert table.of_group(group_id) == reference.of_group(group_id)
        assert len(table) == count
    assert list(table.group_ids()) == [group_id]


def test_metadata_grows_and_shrinks() -> None:
    """OS-4: byte for byte."""
    table = OffsetTable()
    for metadata in ("", "m", "grüße", "x" * 4096, "", "\U0001f600" * 2000, "m"):
        table.apply("g", [("t", [(0, stored(metadata=metadata)), (1, stored(2))])], expires_early=False)
        assert table.of_group("g")["t"][0].metadata == metadata
        assert table.of_group("g")["t"][1] == stored(2)


def test_many_partitions_one_by_one() -> None:
    """Each new partition changes one record of the group, not all."""
    table = OffsetTable()
    partitions = [number * 7919 % 3000 for number in range(3000)]
    for partition in partitions:
        table.apply("g", entries([partition]), expires_early=False)
    assert offsets_of(table, "g") == {"t": {partition: partition for partition in range(3000)}}
    assert table.of_group("g")["t"].get(3000) is None


def test_a_large_group_is_read_by_topic_and_partition() -> None:
    table = OffsetTable()
    for topic in ("t", "u", "v"):
        table.apply("g", entries(range(0, 400, 2), topic), expires_early=False)
    view = table.of_group("g")
    assert (list(view), len(view)) == (["t", "u", "v"], 3)
    assert (len(view["u"]), list(view["u"])[:3], 398 in view["u"], 399 in view["u"]) == (200, [0, 2, 4], True, False)
    assert [view["v"][partition].offset for partition in (2, 4, 390)] == [2, 4, 390]
    assert view.get("w") is None
    assert repr(view).startswith("{'t': {0: OffsetAndMetadata(offset=0,")


def test_group_ids_that_share_a_bucket() -> None:
    """A bucket has room for 255 groups; the others are large groups."""
    table = OffsetTable()
    same = [text for number in range(400_000) if crc32((text := f"{number}").encode()) & 0x3FF == 7][:300]
    assert len(same) > BLOCKS_MAX
    for group_id in same:
        table.apply(group_id, entries([0], at_ms=int(group_id)), expires_early=False)
    assert sorted(table.group_ids()) == sorted(same)
    assert all(table.of_group(group_id)["t"][0].commit_timestamp_ms == int(group_id) for group_id in same)


def test_one_bucket_is_split_at_a_time() -> None:
    """Linear hashing: no commit ever moves more than one bucket's groups."""
    buckets = Buckets()
    record = encode((0,), ((1,), (-1,), ("",), (5,), (None,)))
    assert record is not None
    sizes = set()
    for number in range(5000):
        before = len(buckets)
        assert buckets.add(f"group-{number}".encode(), record)
        sizes.add(len(buckets) - before)
        assert len(buckets) >= buckets.count / 20
    assert sizes == {0, 1}
    assert all(buckets.find(f"group-{number}".encode()) for number in range(5000))
    assert buckets.find(b"group-5000") is None
    for number in range(4000):
        block = buckets.find(f"group-{number}".encode())
        assert block is not None
        buckets.remove(block)
    assert buckets.count == 1000


# Expiration.


def to_check(table: OffsetTable, until_ms: int) -> list[str]:
    """Return the ids that an expiration run gets, in at most 1000 steps."""
    return [group_id for groups in islice(table.groups_to_check(until_ms), 1000) for group_id, _ in groups]


@pytest.mark.parametrize("partitions", [3, 400])
def test_a_commit_in_place_may_be_older_than_the_others(partitions: int) -> None:
    """In version 1 its timestamp is the client's."""
    table = OffsetTable()
    first, *others = range(partitions)
    table.apply("g", [*entries([first], at_ms=50), *entries(others, at_ms=90)], expires_early=False)
    assert to_check(table, 49) == []
    table.apply("g", entries(others[-1:], at_ms=30), expires_early=False)
    assert to_check(table, 29) == []
    assert to_check(table, 30) == ["g"]


@pytest.mark.parametrize("partitions", [3, 400])
def test_a_commit_in_place_may_expire_at_any_time(partitions: int) -> None:
    table = OffsetTable()
    commit = [("t", [(index, stored()._replace(expire_timestamp_ms=60)) for index in range(partitions)])]
    for expires_early in (False, True):
        table.apply("g", commit, expires_early=expires_early)
        assert to_check(table, 4) == (["g"] if expires_early else [])


def test_an_expiration_run_gets_each_group_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto_server.coordinator.table.buckets.SCANNED_AT_ONCE", 2)
    table = OffsetTable()
    ids = [f"group-{number}" for number in range(200)]
    for group_id in ids:
        table.apply(group_id, entries([0]), expires_early=False)
    assert sorted(to_check(table, 5)) == sorted(ids)
    assert to_check(table, 5) == []
