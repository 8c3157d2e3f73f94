"""kafka-python and aiokafka read kproto's batches, and kproto reads theirs, in all magics.

The peers build batches as producers do: offsets count from 0, and a wrapper of a message set has any offset, which the
broker sets. `stored` sets it here.
"""

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaLegacyBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
from kafka.record.memory_records import MemoryRecordsBuilder as KafkaPythonBuilder

from kproto.records.batches import read_records
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from tests.records.made import HEADERS, NULLABLE_BYTES

ROOM = 1 << 20
NONE, GZIP = Compression.NONE, Compression.GZIP
WITH_PACKAGE = [Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]

Build = Callable[[list[Record], int, Compression], bytes]


def by_kproto(records: list[Record], magic: int, compression: Compression) -> bytes:
    if magic == 2:
        return build_record_batch(records, compression=compression)
    return build_message_set(records, magic=magic, compression=compression)


def by_kafka_python(records: list[Record], magic: int, compression: Compression) -> bytes:
    builder = KafkaPythonBuilder(magic, int(compression), ROOM)
    for record in records:
        assert builder.append(record.timestamp, record.key, record.value, list(map(tuple, record.headers)))
    builder.close()
    return stored(bytes(builder.buffer()), records, magic, compression)


def by_aiokafka(records: list[Record], magic: int, compression: Compression) -> bytes:
    if magic == 2:
        builder = AiokafkaBuilder(2, int(compression), False, -1, -1, -1, ROOM)
        for record in records:
            headers = list(map(tuple, record.headers))
            assert builder.append(record.offset, record.timestamp, record.key, record.value, headers)
    else:
        builder = AiokafkaLegacyBuilder(magic, int(compression), ROOM)
        for record in records:
            assert builder.append(record.offset, record.timestamp, record.key, record.value)
    return stored(bytes(builder.build()), records, magic, compression)


def stored(data: bytes, records: list[Record], magic: int, compression: Compression) -> bytes:
    """Return a produced batch with the offset that a broker sets."""
    if magic == 2 or compression is NONE:
        return data
    return records[-1].offset.to_bytes(8, "big") + data[8:]


def to_record(record: Any) -> Record:
    """Return a peer's record as a `Record`."""
    headers = tuple((name, value) for name, value in record.headers or ())
    key, value = [None if part is None else bytes(part) for part in (record.key, record.value)]
    timestamp = -1 if record.timestamp is None else record.timestamp
    return Record(key, value, headers, timestamp, record.offset)  # type: ignore[arg-type]  # plain tuples


def read_by_kafka_python(data: bytes) -> list[Record]:
    return read_by_peer(KafkaPythonRecords(data))


def read_by_aiokafka(data: bytes) -> list[Record]:
    return read_by_peer(AiokafkaRecords(data))


def read_by_peer(batches: Any) -> list[Record]:
    found = []
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        found += [to_record(record) for record in batch]
    return found


PEERS = {"kafka-python": (by_kafka_python, read_by_kafka_python), "aiokafka": (by_aiokafka, read_by_aiokafka)}
CASES = [(magic, compression) for magic in range(3) for compression in (NONE, GZIP)]
each_case = pytest.mark.parametrize(
    ("magic", "compression"), CASES, ids=[f"magic {magic} {c.name.lower()}" for magic, c in CASES]
)
each_peer = pytest.mark.parametrize("peer", PEERS)


def produced(magic: int) -> st.SearchStrategy[list[Record]]:
    """Draw records as a producer sends them: offsets from 0 without gaps."""
    record = st.builds(
        Record,
        key=NULLABLE_BYTES,
        value=NULLABLE_BYTES,
        headers=HEADERS if magic == 2 else st.just(()),
        timestamp=st.just(-1) if magic == 0 else st.integers(0, 2**41),
    )
    numbered = st.lists(record, min_size=1, max_size=5)
    return numbered.map(lambda records: [r._replace(offset=n) for n, r in enumerate(records)])


@each_peer
@each_case
def test_kproto_reads_batches_of_a_peer(peer: str, magic: int, compression: Compression) -> None:
    build = PEERS[peer][0]

    @settings(max_examples=40)
    @given(produced(magic))
    def check(records: list[Record]) -> None:
        assert list(read_records(build(records, magic, compression))) == records

    check()


@each_peer
@each_case
def test_a_peer_reads_batches_of_kproto(peer: str, magic: int, compression: Compression) -> None:
    read = PEERS[peer][1]

    @settings(max_examples=40)
    @given(produced(magic))
    def check(records: list[Record]) -> None:
        assert read(by_kproto(records, magic, compression)) == records

    check()


@each_peer
@pytest.mark.parametrize("magic", range(3))
def test_uncompressed_batches_are_equal(peer: str, magic: int) -> None:
    """Except for the leader epoch, which a broker sets."""
    build = PEERS[peer][0]

    @settings(max_examples=40)
    @given(produced(magic))
    def check(records: list[Record]) -> None:
        theirs, kprotos = build(records, magic, NONE), by_kproto(records, magic, NONE)
        assert without_epoch(theirs, magic) == without_epoch(kprotos, magic)

    check()


def without_epoch(data: bytes, magic: int) -> bytes:
    return data[:12] + data[16:] if magic == 2 else data


@pytest.mark.parametrize(
    ("magic", "compression"),
    [(magic, c) for magic in (1, 2) for c in WITH_PACKAGE if (magic, c) != (1, Compression.ZSTD)],
)
def test_aiokafka_and_kproto_read_each_others_compressions(magic: int, compression: Compression) -> None:
    """Not in magic 0, for which aiokafka writes LZ4 that Kafka could not read."""

    @settings(max_examples=40)
    @given(produced(magic))
    def check(records: list[Record]) -> None:
        assert list(read_records(by_aiokafka(records, magic, compression))) == records
        assert read_by_aiokafka(by_kproto(records, magic, compression)) == records

    check()


def test_kafka_python_reads_batches_of_all_magics_in_one_response() -> None:
    """aiokafka 0.14 does not continue from a message set to a batch of magic 2."""
    records = [Record(b"k", str(n).encode(), timestamp=n * 10, offset=n) for n in range(6)]
    first = [record._replace(timestamp=-1) for record in records[:2]]
    data = by_kproto(first, 0, GZIP) + by_kproto(records[2:4], 1, GZIP) + by_kproto(records[4:], 2, GZIP)
    assert read_by_kafka_python(data) == list(read_records(data)) == first + records[2:]
    assert read_by_kafka_python(data[:-1]) == list(read_records(data[:-1])) == first + records[2:4]
