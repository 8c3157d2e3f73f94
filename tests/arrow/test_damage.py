"""Each kind of damage has an error class, and the error gives file, byte and offset. A torn tail is counted."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kproto.arrow.batch_rows import rows_of_block
from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.logs import errors
from kproto.logs.blocks import SegmentBlocks
from kproto.logs.files import PartitionDirectory
from kproto.logs.ranges import OffsetRange
from kproto.records.batch_header import CONTROL, TRANSACTIONAL, RecordBatchHeader
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch, seal
from kproto.records.segment_files import segment_name
from tests.records.made import COMMIT_BATCH, COMMIT_KEY, COMMIT_VALUE, NOW, TOMBSTONE_BATCH

GOOD = COMMIT_BATCH + TOMBSTONE_BATCH


def batch(
    key: bytes | None = COMMIT_KEY, value: bytes | None = COMMIT_VALUE, *, offset: int = 2, flags: int = 0
) -> bytes:
    return build_record_batch([Record(key, value, (), NOW, offset)], flags=flags, producer_id=9 if flags else -1)


def header(**changes: int) -> RecordBatchHeader:
    plain = RecordBatchHeader(
        base_offset=2,
        batch_length=0,
        partition_leader_epoch=0,
        crc=0,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=NOW,
        max_timestamp=NOW,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    return plain.replace(**changes)


def changed(data: bytes, position: int, replacement: bytes) -> bytes:
    return data[:position] + replacement + data[position + len(replacement) :]


PAYLOAD = batch()[61:]
DAMAGES: dict[str, tuple[type[errors.Damage], bytes]] = {
    "a flipped bit": (errors.BadChecksum, changed(batch(), 80, b"\xff")),
    "a flipped bit in a message set": (
        errors.BadChecksum,
        changed(build_message_set([Record(COMMIT_KEY, COMMIT_VALUE, (), NOW, 2)], magic=1), 40, b"\xff"),
    ),
    "an unknown magic": (errors.UnknownMagic, changed(batch(), 16, b"\3")),
    "a negative size": (errors.BadSize, changed(batch(), 8, b"\xff\xff\xff\xff")),
    "a size of gigabytes": (errors.BadSize, changed(batch(), 8, b"\x7f\xff\xff\xff")),
    "a negative record count": (errors.BadBatch, seal(header(record_count=-1), PAYLOAD)),
    "a batch smaller than a header": (errors.BadBatch, changed(batch(), 8, (20).to_bytes(4, "big"))[:32]),
    "an unknown compression": (errors.BadCompression, seal(header(attributes=5), PAYLOAD)),
    "content that is not gzip": (errors.BadCompression, seal(header(attributes=1), PAYLOAD)),
    "a record count that is too high": (errors.BadRecords, seal(header(record_count=2), PAYLOAD)),
    "bytes after the records": (errors.BadRecords, seal(header(), PAYLOAD + b"\0")),
    "a key longer than its record": (errors.BadRecords, seal(header(), changed(PAYLOAD, 4, b"\x7e"))),
    "a control record of an unknown type": (
        errors.BadMarker,
        batch(b"\0\0\0\x09", b"\0\0\0\0\0\0", flags=TRANSACTIONAL | CONTROL),
    ),
    "an end marker without value": (errors.BadMarker, batch(b"\0\0\0\1", None, flags=TRANSACTIONAL | CONTROL)),
    "no key": (errors.BadKey, batch(None)),
    "a key without type": (errors.BadKey, batch(b"\0")),
    "a truncated key": (errors.BadKey, batch(COMMIT_KEY[:-1])),
    "a key with trailing bytes": (errors.BadKey, batch(COMMIT_KEY + b"\0")),
    "a truncated group key": (errors.BadKey, batch(b"\0\2\0\5gr")),
    "an unknown value version": (errors.BadValue, batch(value=b"\0\5" + COMMIT_VALUE[2:])),
    "a truncated value": (errors.BadValue, batch(value=COMMIT_VALUE[:-1])),
    "a value with trailing bytes": (errors.BadValue, batch(value=COMMIT_VALUE + b"\0")),
    "an empty value": (errors.BadValue, batch(value=b"")),
    "a truncated group value": (errors.BadValue, batch(b"\0\2\0\1g", b"\0\3\0\0")),
    "an offset that does not rise": (errors.BadOffset, batch(offset=1)),
    "an offset too far above the base offset": (errors.BadOffset, batch(offset=2**31)),
}


def partition(directory: Path, *segments: bytes, bases: tuple[int, ...] = (0, 3)) -> PartitionDirectory:
    directory.mkdir(exist_ok=True)
    for base, data in zip(bases, segments, strict=False):
        (directory / segment_name(base)).write_bytes(data)
    return PartitionDirectory("__consumer_offsets", 0, directory)


def read(found: PartitionDirectory, decoder: str = "fast") -> RangeReader:
    reader = RangeReader(OffsetRange(found, 0, None), View.COMMITS, decoder=decoder)
    for _ in reader:
        pass
    return reader


@pytest.mark.parametrize("decoder", ["fast", "reference"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_raises_its_class_with_file_and_position(tmp_path: Path, damage: str, decoder: str) -> None:
    kind, data = DAMAGES[damage]
    broken = partition(tmp_path / "__consumer_offsets-0", GOOD + data, batch(offset=3))
    with pytest.raises(errors.Damage) as caught:
        read(broken, decoder)
    assert type(caught.value) is kind
    assert caught.value.file == "__consumer_offsets-0/00000000000000000000.log"
    assert caught.value.position == len(GOOD)
    assert "\n" not in str(caught.value)


def test_a_truncated_batch_in_an_older_segment_is_damage(tmp_path: Path) -> None:
    broken = partition(tmp_path, GOOD + batch()[:-7], batch(offset=3))
    with pytest.raises(errors.Truncated, match="is not the newest segment"):
        read(broken)


@pytest.mark.parametrize("missing", [1, 7, 60, 90])
def test_a_torn_tail_is_reported(tmp_path: Path, missing: int) -> None:
    """LF-62."""
    tail = batch()[:-missing]
    reader = read(partition(tmp_path, GOOD + tail))
    assert reader.counts.records == 2
    assert reader.blocks.torn is not None
    assert reader.blocks.torn[1:] == (len(GOOD), len(tail), False)


def test_zeros_after_the_last_batch_are_a_torn_tail(tmp_path: Path) -> None:
    reader = read(partition(tmp_path, GOOD + bytes(5000)))
    assert reader.counts.records == 2
    assert reader.blocks.torn is not None
    assert reader.blocks.torn[1:] == (len(GOOD), 5000, True)


def test_zeros_in_an_older_segment_are_damage(tmp_path: Path) -> None:
    with pytest.raises(errors.BadSize):
        read(partition(tmp_path, GOOD + bytes(5000), batch(offset=3)))


def test_bytes_that_cannot_begin_a_batch_are_damage(tmp_path: Path) -> None:
    with pytest.raises(errors.Truncated, match="cannot begin a batch"):
        read(partition(tmp_path, GOOD + b"garbage"))


def test_a_size_that_covers_later_batches_is_damage(tmp_path: Path) -> None:
    too_large = changed(batch(), 8, (100_000).to_bytes(4, "big"))
    with pytest.raises(errors.BadSize, match="begins a batch"):
        read(partition(tmp_path, GOOD + too_large + batch(offset=3)))


def test_batch_rows_raise_damage_in_headers() -> None:
    for name in ("an unknown magic", "a negative record count", "an unknown compression"):
        kind, data = DAMAGES[name]
        (block,) = SegmentBlocks(io.BytesIO(GOOD + data), "log", base_offset=0, is_newest=True)
        with pytest.raises(kind):
            rows_of_block(block, "t", 0, 0, None)


def test_errors_can_be_pickled() -> None:
    import pickle

    error = errors.BadKey("a.log", 7, 3, "no key")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own
    assert (type(again), str(again)) == (errors.BadKey, "a.log at byte 7, offset 3: BadKey: no key")


@pytest.mark.parametrize("decoder", ["fast", "reference"])
def test_text_that_is_not_utf_8_is_replaced(tmp_path: Path, decoder: str) -> None:
    """As Java does when it reads such a log."""
    malformed = batch(COMMIT_KEY.replace(b"g1", b"\xff1"), COMMIT_VALUE.replace(b"m", b"\xff"))
    found = partition(tmp_path / "__consumer_offsets-0", GOOD + malformed)
    reader = RangeReader(OffsetRange(found, 0, None), View.COMMITS, decoder=decoder)
    assert "\ufffd1" in str([decoded.rows and decoded.rows.to_pylist() for decoded in reader])
