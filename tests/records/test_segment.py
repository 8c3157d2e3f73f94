"""The end of a segment, and the files next to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import pytest

from kproto.errors import DecodeError
from kproto.records.batch_header import HEADER_SIZE, LOG_OVERHEAD
from kproto.records.batches import Batch, read_batch, read_batches
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch, read_header
from kproto.records.segment import BATCH_SIZE_MAX, CHECKS_MAX, torn_beginning, whole_batch_within
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
from tests.inspect.logs import OFFSETS, commit


@pytest.mark.parametrize("base_offset", [0, 5, 2**33 + 7])
def test_every_prefix_of_the_next_batch_is_a_torn_beginning(base_offset: int) -> None:
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
        (4).to_bytes(8, "big"),  # an offset that is not above the last one
        (2**31 + 1).to_bytes(8, "big"),  # an offset that the segment cannot have
        (5).to_bytes(8, "big") + (13).to_bytes(4, "big"),
        (5).to_bytes(8, "big") + bytes.fromhex("7fffffff"),
        (5).to_bytes(8, "big") + (BATCH_SIZE_MAX + 1).to_bytes(4, "big"),
        (5).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(4) + b"\3",
    ],
)
def test_foreign_bytes_are_not_a_torn_beginning(rest: bytes) -> None:
    assert not torn_beginning(rest, 0, 5)


def test_the_beginning_of_the_largest_batch_is_torn() -> None:
    assert torn_beginning((5).to_bytes(8, "big") + BATCH_SIZE_MAX.to_bytes(4, "big"), 0, 5)


def test_a_batch_with_a_size_that_is_too_large_is_not_torn() -> None:
    first, second = build_record_batch([commit(0)]), build_record_batch([commit(1)])
    larger = first[:8] + (5000).to_bytes(4, "big") + first[12:]
    assert torn_beginning(larger, 0, 0)
    assert whole_batch_within(larger + second, 0) == len(first)
    assert whole_batch_within(larger, 0) == 0
    old = build_message_set([commit(1)], magic=1)
    assert whole_batch_within(larger + old, 0) == len(first)
    assert whole_batch_within(larger + second[:-1], 0) is None
    tombstone = build_message_set([Record(b"k", None, offset=1)], magic=1)
    assert whole_batch_within(larger + tombstone, 0) == len(first)
    assert whole_batch_within(larger + second, 2) is None  # a batch of before, within a record
    assert whole_batch_within(b"\0" + second, 1) == 1
    empty = build_record_batch([], base_offset=5, last_offset=9)  # LF-72
    assert whole_batch_within(empty[:8] + (5000).to_bytes(4, "big") + empty[12:], 5) == 0


def found_by_reading(rest: bytes, next_offset: int) -> int | None:
    """Return the position of the first whole batch, by an attempt to read one at each position."""
    high = (next_offset >> 32).to_bytes(4, "big")
    for position in range(1, len(rest)):
        if rest[position : position + 4] != high:
            continue
        with suppress(DecodeError):
            found = read_batch(rest, position)
            if found is not None and found[0].last_offset >= next_offset:
                return position
    return None


@pytest.mark.parametrize("release", ["2.0.1", "4.4.0"])
def test_batches_of_brokers_are_found_within_others(release: str) -> None:
    """The sizes of their first batches are too large, or their ends are missing."""
    compared = 0
    for path in sorted(golden_log(release).rglob("*.log")):
        data = path.read_bytes()[:20_000]
        for batch, position in with_positions(data):
            larger = data[position : position + 8] + b"\5\0\0\0" + data[position + 12 :]
            for rest in (larger, larger[: batch.size], larger[: batch.size + 40], data[position + 1 :]):
                expected = found_by_reading(rest, batch.last_offset)
                assert whole_batch_within(rest, batch.last_offset) in (expected, 0)
                compared += expected is not None
    assert compared > 20


def with_positions(data: bytes) -> Iterator[tuple[Batch, int]]:
    position = 0
    for batch in islice(read_batches(data), 12):
        yield batch, position
        position += batch.size


def test_zeros_after_a_torn_batch_are_no_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr("kproto.records.segment.batch_end", lambda data, position: tried.append(position))
    assert whole_batch_within(build_record_batch([commit(0)])[:70] + bytes(100_000), 0) is None
    assert len(tried) < 50


def test_the_checksums_of_large_candidates_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these headers announces everything up to the end."""
    checked: list[int] = []

    def checksum(data: bytes) -> int:
        checked.append(len(data))
        return 0

    count = 500
    header = read_header(build_record_batch([commit(0)]))
    sizes = [HEADER_SIZE * (count - number) - LOG_OVERHEAD for number in range(count)]
    rest = b"".join(header.replace(batch_length=size, crc=1).encode(2) for size in sizes)
    monkeypatch.setattr("kproto.records.record_batch.crc32c", checksum)
    assert whole_batch_within(rest, 0) is None
    assert CHECKS_MAX - 1 < sum(checked) / len(rest) <= CHECKS_MAX


def test_segment_names() -> None:
    assert segment_name(42) == "00000000000000000042.log"
    assert segment_base_offset("00000000000000000042.log") == 42
    assert segment_base_offset("09223372036854775807.log") == 2**63 - 1
    for name in (
        "42.log",
        "00000000000000000042.index",
        "x0000000000000000042.log",
        "09223372036854775808.log",  # no int64
    ):
        assert segment_base_offset(name) is None


def test_index_entries_of_4_4_0() -> None:
    folder = golden_log("4.4.0") / OFFSETS
    index = (folder / "00000000000000000000.index").read_bytes()
    time_index = (folder / "00000000000000000000.timeindex").read_bytes()
    assert index_entry(index) == IndexEntry(44, 4353)
    assert time_index_entry(time_index[12:]) == TimeIndexEntry(1795215211091, 62)


def test_index_entries_are_signed_numbers_of_all_their_bytes() -> None:
    assert index_entry(bytes.fromhex("7ffffffe 7fffffff")) == IndexEntry(2**31 - 2, 2**31 - 1)
    assert time_index_entry(bytes.fromhex("ffffffffffffffff 7ffffffe")) == TimeIndexEntry(-1, 2**31 - 2)


class TestLeaderEpochs:
    EPOCHS = LeaderEpochs({0: 0, 3: 10, 4: 20})

    @pytest.mark.parametrize(("epoch", "first", "last"), [(0, 0, 9), (3, 10, 19), (4, 20, 2**40)])
    def test_a_batch_in_its_epoch_is_valid(self, epoch: int, first: int, last: int) -> None:
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
    def test_a_batch_outside_of_its_epoch_is_invalid(self, epoch: int, first: int, last: int, problem: str) -> None:
        assert self.EPOCHS.problem(epoch, first, last) == problem

    def test_a_checkpoint_is_read(self) -> None:
        assert read_leader_epochs("0\n2\n0 0\n3 10\n").problem(3, 9, 11) == self.EPOCHS.problem(3, 9, 11) is not None

    @pytest.mark.parametrize("text", ["", "0\n0\n"])
    def test_a_checkpoint_may_be_empty(self, text: str) -> None:
        """Kafka creates the file empty, and writes it when the partition has its first epoch."""
        assert read_leader_epochs(text).problem(0, 0, 0) == "leader epoch 0 is not in leader-epoch-checkpoint"
        assert partitions_in_checkpoint(text, "t") == set()

    @pytest.mark.parametrize(
        ("text", "line", "reason"),
        [
            ("\n", 1, "does not begin with version 0 and a count"),
            ("0\n", 1, "does not begin with version 0 and a count"),
            ("1\n0\n", 1, "does not begin with version 0 and a count"),
            ("0\n2\n0 0\n", 2, "'2' lines announced, there are 1"),
            ("0\n1\n0\n", 3, "'0' is not an epoch and an offset"),
            ("0\n1\n0 x\n", 3, "'0 x' is not an epoch and an offset"),
            (f"0\n1\n0 {10**19}\n", 3, f"'0 {10**19}' is not an epoch and an offset"),
            (f"0\n1\n{'9' * 5000} 0\n", 3, f"{'9' * 5000 + ' 0'!r} is not an epoch and an offset"),
            ("0\n2\n1 0\n1 5\n", 4, "epoch 1 from offset 5 is out of order"),
            ("0\n2\n1 5\n2 4\n", 4, "epoch 2 from offset 4 is out of order"),
        ],
    )
    def test_a_malformed_checkpoint_is_refused(self, text: str, line: int, reason: str) -> None:
        with pytest.raises(DecodeError) as raised:
            read_leader_epochs(text)
        assert (raised.value.position, raised.value.reason) == (line, reason)


def test_partitions_in_the_checkpoint_of_a_log_dir() -> None:
    text = (golden_log("4.4.0") / "replication-offset-checkpoint").read_text()
    assert partitions_in_checkpoint(text, "__transaction_state") == {0, 1, 2, 3}
    assert partitions_in_checkpoint(text, "nowhere") == set()
    with pytest.raises(DecodeError, match="is not a topic, a partition and an offset"):
        partitions_in_checkpoint("0\n1\nt 1\n", "t")
    with pytest.raises(DecodeError, match="is not a topic, a partition and an offset"):
        partitions_in_checkpoint(f"0\n1\nt 1 {'9' * 5000}\n", "t")
