"""A segment in slices of any size, its damages, and the files beside it."""

from __future__ import annotations

import pytest

from kproto.errors import CorruptBatch, DecodeError
from kproto.records.batches import read_batches
from kproto.records.message_set import build_message_set
from kproto.records.record_batch import build_record_batch
from kproto.records.segment import BATCH_SIZE_MAX, PlacedBatch, SegmentReader, torn_beginning, whole_batch_within
from kproto.records.segment_files import (
    IndexEntry,
    LeaderEpochs,
    TimeIndexEntry,
    index_entry,
    partitions_in_checkpoint,
    read_leader_epochs,
    segment_base_offset,
    segment_name,
    time_index_entry,
)
from tests.fixture_files import golden_log
from tests.inspect.logs import FIRST_SEGMENT, OFFSETS, RELEASES, commit


def golden_segment(release: str) -> bytes:
    return (golden_log(release) / OFFSETS / FIRST_SEGMENT).read_bytes()


def batches_of(data: bytes, slice_size: int) -> tuple[list[PlacedBatch], SegmentReader]:
    reader = SegmentReader()
    found = []
    for start in range(0, len(data), slice_size):
        reader.feed(data[start : start + slice_size])
        while (placed := reader.next_batch()) is not None:
            found.append(placed)
    return found, reader


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("slice_size", [1, 11, 100, 1 << 20])
def test_slices_of_any_size_make_the_same_batches(release: str, slice_size: int) -> None:
    data = golden_segment(release)
    found, reader = batches_of(data, slice_size)
    assert [placed.batch for placed in found] == list(read_batches(data))
    assert [placed.position for placed in found] == [0, *(placed.end for placed in found[:-1])]
    assert (reader.position, reader.rest) == (len(data), b"")


def test_feeding_what_is_missing_completes_a_batch() -> None:
    data = build_record_batch([commit(0)])
    reader = SegmentReader()
    rounds = 0
    while reader.next_batch() is None:
        reader.feed(data[len(reader.rest) :][: reader.missing])
        rounds += 1
    assert rounds == 2


def test_an_error_tells_its_place_in_the_segment_and_the_reader_stays_there() -> None:
    good = build_record_batch([commit(0)])
    bad = bytearray(build_record_batch([commit(1)]))
    bad[-1] ^= 1
    reader = SegmentReader()
    reader.feed(good[:50])
    assert reader.next_batch() is None
    reader.feed(good[50:] + bytes(bad))
    assert reader.next_batch() is not None
    with pytest.raises(CorruptBatch) as raised:
        reader.next_batch()
    assert raised.value.position == len(good) + 17
    assert reader.position == len(good)


@pytest.mark.parametrize("size", [-1, 13, BATCH_SIZE_MAX + 1])
def test_a_size_that_no_batch_has_is_refused_before_it_is_read(size: int) -> None:
    reader = SegmentReader()
    reader.feed(bytes(8) + size.to_bytes(4, "big", signed=True))
    with pytest.raises(DecodeError, match=f"size {size}"):
        reader.next_batch()


@pytest.mark.parametrize("base_offset", [0, 5, 2**33 + 7])
def test_each_beginning_of_the_next_batch_can_be_a_torn_one(base_offset: int) -> None:
    data = build_record_batch([commit(base_offset + 3)])
    for size in range(1, len(data)):
        assert torn_beginning(data[:size], base_offset, base_offset + 3)
        assert torn_beginning(data[:size], base_offset, base_offset + 1)
        assert whole_batch_within(data[:size], base_offset + 3) is None


@pytest.mark.parametrize(
    "rest",
    [
        b"x",
        b"trailing",
        (4).to_bytes(8, "big"),  # an offset that was there
        (2**31 + 1).to_bytes(8, "big"),  # one that the segment can't hold
        (5).to_bytes(8, "big") + (13).to_bytes(4, "big"),
        (5).to_bytes(8, "big") + bytes.fromhex("7fffffff"),
        (5).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(4) + b"\3",
    ],
)
def test_foreign_bytes_begin_no_batch(rest: bytes) -> None:
    assert not torn_beginning(rest, 0, 5)


def test_a_batch_that_announces_too_much_is_told_from_a_torn_one() -> None:
    first, second = build_record_batch([commit(0)]), build_record_batch([commit(1)])
    larger = first[:8] + (5000).to_bytes(4, "big") + first[12:]
    assert torn_beginning(larger, 0, 0)
    assert whole_batch_within(larger + second, 0) == len(first)
    assert whole_batch_within(larger, 0) == 0
    old = build_message_set([commit(1)], magic=1)
    assert whole_batch_within(larger + old, 0) == len(first)
    assert whole_batch_within(larger + second[:-1], 0) is None


def test_names() -> None:
    assert segment_name(42) == "00000000000000000042.log"
    assert segment_base_offset("00000000000000000042.log") == 42
    for name in ("42.log", "00000000000000000042.index", "x0000000000000000042.log"):
        assert segment_base_offset(name) is None


def test_entries_of_the_indexes_of_4_4_0() -> None:
    folder = golden_log("4.4.0") / OFFSETS
    index = (folder / "00000000000000000000.index").read_bytes()
    time_index = (folder / "00000000000000000000.timeindex").read_bytes()
    assert index_entry(index) == IndexEntry(44, 4353)
    assert time_index_entry(time_index[12:]) == TimeIndexEntry(1795215211091, 62)


class TestLeaderEpochs:
    EPOCHS = LeaderEpochs({0: 0, 3: 10, 4: 20})

    @pytest.mark.parametrize(("epoch", "first", "last"), [(0, 0, 9), (3, 10, 19), (4, 20, 2**40)])
    def test_a_batch_within_its_epoch(self, epoch: int, first: int, last: int) -> None:
        assert self.EPOCHS.problem(epoch, first, last) is None

    @pytest.mark.parametrize(
        ("epoch", "first", "last", "problem"),
        [
            (-1, 0, 0, "leader epoch -1 is not in leader-epoch-checkpoint"),
            (1, 0, 0, "leader epoch 1 is not in leader-epoch-checkpoint"),
            (3, 9, 11, "leader epoch 3 begins with offset 10 in leader-epoch-checkpoint"),
            (3, 18, 20, "leader epoch 3 ends before offset 20 in leader-epoch-checkpoint"),
        ],
    )
    def test_a_batch_that_is_not(self, epoch: int, first: int, last: int, problem: str) -> None:
        assert self.EPOCHS.problem(epoch, first, last) == problem

    @pytest.mark.parametrize(
        ("text", "line", "reason"),
        [
            ("", 1, "does not begin with version 0 and a count"),
            ("1\n0\n", 1, "does not begin with version 0 and a count"),
            ("0\n2\n0 0\n", 2, "'2' lines announced, there are 1"),
            ("0\n1\n0\n", 3, "'0' is not an epoch and an offset"),
            ("0\n1\n0 x\n", 3, "'0 x' is not an epoch and an offset"),
            ("0\n2\n1 0\n1 5\n", 4, "epoch 1 from offset 5 comes too late"),
            ("0\n2\n1 5\n2 4\n", 4, "epoch 2 from offset 4 comes too late"),
        ],
    )
    def test_a_checkpoint_with_a_mistake(self, text: str, line: int, reason: str) -> None:
        with pytest.raises(DecodeError) as raised:
            read_leader_epochs(text)
        assert (raised.value.position, raised.value.reason) == (line, reason)


def test_partitions_in_the_checkpoint_of_a_log_directory() -> None:
    text = (golden_log("4.4.0") / "replication-offset-checkpoint").read_text()
    assert partitions_in_checkpoint(text, "__transaction_state") == {0, 1, 2, 3}
    assert partitions_in_checkpoint(text, "nowhere") == set()
    with pytest.raises(DecodeError, match="is not a topic, a partition and an offset"):
        partitions_in_checkpoint("0\n1\nt 1\n", "t")
