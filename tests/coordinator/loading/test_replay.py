"""The effect of each record on offsets and groups, with and without the fast paths (LF-31 to LF-37)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.declaration import TaggedField
from kproto.records.compression import Compression
from kproto.records.coordinator import encode_value
from kproto.records.group_records import GroupMetadataKey
from kproto.records.offset_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.coordinator.loading.group_values import MEMBER, group_value
from tests.coordinator.loading.logs import NOW, Loaded, Log, Pair, attempted, both_ways, loaded, numbers, offset, stored

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import OffsetAndMetadata

KEY = OffsetCommitKey(group="g", topic="t", partition=0)

TOPIC_ID_TAG = b"\1\0\x10" + bytes(range(17))
"""With one byte too many."""


@both_ways
def test_the_last_record_of_a_key_counts(decodes_all: bool) -> None:
    """LF-31: in the order of the log."""
    log = Log()
    for number in range(5):
        log.commit("g", [("t", [(0, stored(number)), (1, stored(10 + number))])])
        log.commit("h", [("t", [(0, stored(20 + number))])])
    log.commit("g", [("t", [(1, stored(99))])])
    expected = {"g": {"t": {0: 4, 1: 99}}, "h": {"t": {0: 24}}}
    assert numbers(log, decodes_all=decodes_all) == expected


@both_ways
def test_a_tombstone_deletes(decodes_all: bool) -> None:
    """LF-31; later commits count again."""
    log = Log()
    for number in range(3):
        log.commit("g", [("t", [(0, stored(number)), (1, stored(number))])])
        log.commit("h", [("t", [(0, stored(number))])])
    log.delete("g", [("t", [0])])
    log.delete("h", [("t", [0])], removes_group=True)
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {1: 2}}}
    log.commit("g", [("t", [(0, stored(7)), (1, stored(8))])])
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {0: 7, 1: 8}}}


@both_ways
def test_commits_of_several_kinds_in_turn(decodes_all: bool) -> None:
    """A group commits other partitions, then with metadata, and then the first partitions again."""
    log = Log()
    for number in range(6):
        log.commit("g", [("t", [(0, stored(number)), (1, stored(number))])])
        if number < 4:
            log.commit("g", [("t", [(0, stored(100 + number)), (2, stored(number))])])
            log.commit("g", [("t", [(0, stored(200 + number, "m" * number))])])
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {0: 5, 1: 5, 2: 3}}}


@both_ways
def test_metadata_of_repeated_commits_may_change(decodes_all: bool) -> None:
    log = Log()
    for text in ("aaa", "bbb", "ccc", "ddd", "é!", "eee"):
        log.commit("g", [("t", [(0, stored(1, text))])])
        assert loaded(log.data, decodes_all=decodes_all).offsets["g"]["t"][0].metadata == text


@both_ways
def test_offsets_of_all_versions(decodes_all: bool) -> None:
    """LF-12, OC-44: from 0.8.2 to the newest."""
    log = Log()
    for _ in range(3):
        legacy = LegacyOffsetCommitValue(offset=1, metadata="m", commit_timestamp=NOW)
        log.records((LegacyOffsetCommitKey(group="g", topic="t", partition=0), (legacy, 0)))
        for version in range(5):
            others: dict[str, Any] = {"expire_timestamp": NOW + 5} if version == 1 else {}
            if version >= 3:
                others["leader_epoch"] = 7
            if version == 4:
                others["topic_id"] = bytes(range(16))
            log.records(offset(version, partition=1 + version, version=version, **others))
    partitions = loaded(log.data, decodes_all=decodes_all).offsets["g"]["t"]
    assert [partitions[index].offset for index in range(6)] == [1, 0, 1, 2, 3, 4]
    assert [partitions[index].leader_epoch for index in range(6)] == [-1, -1, -1, -1, 7, 7]
    assert [partitions[index].expire_timestamp_ms for index in range(6)] == [None, None, NOW + 5, None, None, None]
    assert {one.commit_timestamp_ms for one in partitions.values()} == {NOW}
    assert partitions[0].metadata == "m"
    assert partitions[5].topic_id == bytes(range(16))


def deadlines(pair: Pair, kafka_version: str, *, decodes_all: bool) -> int | None:
    log = Log()
    for _ in range(3):
        log.records(pair)
    found: OffsetAndMetadata = loaded(log.data, kafka_version, decodes_all=decodes_all).offsets["g"]["t"][0]
    return found.expire_timestamp_ms


@both_ways
def test_no_expire_timestamp_is_none(decodes_all: bool) -> None:
    """OC-45 (KAFKA-8069): -1 in v1 is no time in 1969."""
    assert deadlines(offset(1, version=1), "2.1", decodes_all=decodes_all) is None
    assert deadlines(offset(1, version=1), "latest", decodes_all=decodes_all) is None


@both_ways
def test_expire_timestamps_of_older_brokers_are_kept(decodes_all: bool) -> None:
    """EX-51."""
    pair = offset(1, version=1, expire_timestamp=NOW + 1)
    assert deadlines(pair, "2.0", decodes_all=decodes_all) == NOW + 1
    assert deadlines(pair, "latest", decodes_all=decodes_all) == NOW + 1


@both_ways
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_before_kip_211_each_offset_has_an_expire_timestamp(version: int, decodes_all: bool) -> None:
    """EX-41: the commit timestamp plus the present retention time."""
    assert deadlines(offset(1, version=version), "2.0", decodes_all=decodes_all) == NOW + 7 * 86_400_000
    assert deadlines(offset(1, version=version), "1.1", decodes_all=decodes_all) == NOW + 86_400_000


@both_ways
@pytest.mark.parametrize("compression", Compression)
def test_compressed_batches(compression: Compression, decodes_all: bool) -> None:
    log = Log()
    for number in range(3):
        log.commit("g", [("t", [(0, stored(number)), (1, stored(number))])], compression=compression)
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {0: 2, 1: 2}}}


@both_ways
@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets(magic: int, decodes_all: bool) -> None:
    """LF-4."""
    log = Log()
    for number in range(3):
        log.message_set(magic, offset(number, version=1), offset(number, partition=1, version=1))
        log.message_set(magic, offset(number, partition=2, version=1), compression=Compression.GZIP)
    log.message_set(magic, (KEY, None))
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {1: 2, 2: 2}}}


@both_ways
def test_compacted_batches(decodes_all: bool) -> None:
    """LF-37, LF-72, LF-73: with gaps, and without records."""
    log = Log()
    for number in range(4):
        log.records(offset(number, partition=3), base_offset=0, last_offset=9)
        log.records(base_offset=0, last_offset=3, base_timestamp=NOW)
        log.next_offset += 12
    assert numbers(log, decodes_all=decodes_all) == {"g": {"t": {3: 3}}}


@both_ways
def test_unknown_types_are_counted_and_skipped(decodes_all: bool) -> None:
    """EX-55, LF-36."""
    log = Log()
    log.commit("g", [("t", [(0, stored(1))])])
    log.raw(b"\0\x63of a later release", b"\xff")
    log.raw(b"\0\x63", None)
    found = loaded(log.data, decodes_all=decodes_all)
    assert found.offsets_as_dicts() == {"g": {"t": {0: 1}}}
    assert found.load.skipped == {0x63: 2}


@both_ways
@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (None, b"\0\1", "null"),
        (b"\0", b"\0\1", "truncated before its type"),
        (b"\0\1\0\1g\0\1t\0\0\0", None, "OffsetCommitKey"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\5", "version 5"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3\0\0", "OffsetCommitValue"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\2" + bytes(8) + b"\xff\xff" + bytes(7), "OffsetCommitValue"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\4" + bytes(12) + b"\1" + bytes(8) + TOPIC_ID_TAG, "OffsetCommitValue"),
        (b"\0\1\0\1g\xff\xfft\0\0\0\0", b"\0\3" + bytes(22), "OffsetCommitKey"),
        (b"\0\1\0\1g\xff\xff\0\0\0", b"\0\3" + bytes(22), "OffsetCommitKey"),
        (b"\0\2\0\1g", b"\0\3", "GroupMetadataValue"),
        (b"\0\2\0\1g", b"\0\x09", "version 9"),
        (b"\0\3\0\1g", b"\0\0", "ConsumerGroupMetadataValue"),
    ],
)
def test_unreadable_records_fail_the_load(key: bytes | None, value: bytes | None, why: str, decodes_all: bool) -> None:
    """LF-36, EX-53, EX-55: the partition is unavailable as a whole."""
    log = Log()
    for number in range(4):
        log.commit("g", [("t", [(0, stored(number)), (1, stored(number))])])
        log.commit(f"g{number}", [("t", [(0, stored(number))])])
    log.records((GroupMetadataKey(group="g"), (group_value(MEMBER), 3)))
    before = len(log.data)
    log.raw(key, value)
    log.commit("g", [("t", [(0, stored(9))])])
    found: Loaded = attempted(log.data, decodes_all=decodes_all)
    assert found.load.failed is not None
    assert why in found.load.failed
    assert f"byte {before} " in found.load.failed
    assert found.offsets_as_dicts() == {}
    assert len(found.state.coordinator.offsets) == 0
    assert found.state.coordinator.groups.get("g") is None


@both_ways
def test_an_unreadable_value_that_is_replaced_later_fails_the_load(decodes_all: bool) -> None:
    """Kafka reads each record, and can't know whether a later record of its key follows."""
    log = Log()
    for number in range(4):
        log.commit("g", [("t", [(0, stored(number, "m"))])])
    broken = encode_value(OffsetCommitValue(offset=1, metadata="m", commit_timestamp=NOW), 4)
    log.raw(b"\0\1\0\1g\0\1t\0\0\0\0", broken.replace(b"\2m", b"\x7fm"), base_sequence=0)
    log.commit("g", [("t", [(0, stored(5, "m"))])])
    assert attempted(log.data, decodes_all=decodes_all).load.failed is not None


@both_ways
def test_text_that_is_not_utf_8_is_replaced(decodes_all: bool) -> None:
    """As Java does, in keys and in values."""
    log = Log()
    for number in range(4):
        log.commit("g", [("t", [(0, stored(number, "m"))])])
    value = encode_value(OffsetCommitValue(offset=9, metadata="m", commit_timestamp=NOW), 4)
    log.raw(b"\0\1\0\1g\0\1t\0\0\0\0", value.replace(b"\2m", b"\2\xff"), base_sequence=0)
    log.raw(b"\0\1\0\1\xff\0\1\xff\0\0\0\0", value, base_sequence=0)
    offsets = loaded(log.data, decodes_all=decodes_all).offsets
    assert (offsets["g"]["t"][0].offset, offsets["g"]["t"][0].metadata) == (9, "\ufffd")
    assert offsets["\ufffd"]["\ufffd"][0].offset == 9


@both_ways
def test_unknown_tags_are_ignored(decodes_all: bool) -> None:
    """EX-55: readers since 3.5 know version 4, which is flexible."""
    log = Log()
    for number in range(3):
        unknown = (TaggedField(9, b"?"),)
        log.records(offset(number, version=4, topic_id=bytes(range(16)), unknown_tagged_fields=unknown))
    (found,) = loaded(log.data, decodes_all=decodes_all).offsets["g"]["t"].values()
    assert (found.offset, found.topic_id) == (2, bytes(range(16)))
