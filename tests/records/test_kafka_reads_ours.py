"""Kafka's DumpLogSegments reads segments that kproto writes: each compression and magic, and every record type."""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kproto.declaration import Struct, WireType, fields_of
from kproto.records.batch_header import APPEND_TIME
from kproto.records.batches import read_batches
from kproto.records.compression import Compression
from kproto.records.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_member_data,
)
from kproto.records.control import ControlType, build_end_marker
from kproto.records.coordinator import CoordinatorRecord, RecordTypes, encode_key, encode_value
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kproto.records.message_set import build_message_set
from kproto.records.offsets_topic import RECORD_TYPES as OF_OFFSETS
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import RecordBatch, build_record_batch
from kproto.records.transaction_state import RECORD_TYPES as OF_TRANSACTIONS
from tests.oracle.java import JVM_FLAGS
from tests.oracle.releases import classpath, fetch, fetch_tools, find_class
from tests.records.dumps import Line, PlacedRecord, as_json, batch_fields, lines_of, payload_json, record_fields
from tests.records.made import NOW
from tests.requirements import need_java, need_maven

pytestmark = pytest.mark.oracle

RELEASE = "4.4.0"
NEWEST = ("kafka-group-coordinator", "kafka-transaction-coordinator")
"""Jars of exactly that release; the tool itself is of an older one if the registry has no newer."""
NOT_IN_4_4 = {9}


def dump(folder: Path, batches: list[bytes], *options: str) -> list[Line]:
    """Return the lines that the tool prints for a segment of these batches."""
    java = need_java()
    need_maven()
    segment = folder / "00000000000000000000.log"
    segment.write_bytes(b"".join(batches))
    tools = fetch_tools(RELEASE)
    newest = [str(fetch(RELEASE)[1] / f"{name}-{RELEASE}.jar") for name in NEWEST]
    jars = os.pathsep.join([*newest, classpath(tools)])
    command = [java, *JVM_FLAGS, "-cp", jars, find_class(tools, "DumpLogSegments")]
    arguments = [*command, "--files", str(segment), "--deep-iteration", *options]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Found" not in done.stdout, done.stdout
    return list(lines_of(done.stdout))


def records_from(offset: int) -> list[Record]:
    """Return three records with each part of the layout, and one long enough for compression."""
    return [
        Record(b"key", b"value", (RecordHeader("h", b"1"), RecordHeader("null", None)), NOW, offset),
        Record(None, b"", (), NOW + 5, offset + 1),
        Record(b"", None, (), NOW - 3, offset + 4),
        Record(b"k" * 300, b"v" * 70_000, (), NOW + 100_000, offset + 5),
    ]


def test_kafka_reads_batches_of_each_compression(tmp_path: Path) -> None:
    data = [
        build_record_batch(records_from(10 * number), compression=compression, partition_leader_epoch=3)
        for number, compression in enumerate(Compression)
    ]
    data.append(build_record_batch([], base_offset=60, last_offset=62))
    data.append(build_record_batch(records_from(70), flags=APPEND_TIME, max_timestamp=NOW + 7))
    data.append(
        build_end_marker(
            ControlType.ABORT,
            offset=80,
            timestamp=NOW,
            producer_id=4000,
            producer_epoch=3,
            coordinator_epoch=9,
            partition_leader_epoch=3,
        )
    )
    lines = iter(dump(tmp_path, data))
    position = 0
    for batch in read_batches(b"".join(data)):
        assert isinstance(batch, RecordBatch)
        fields = batch_fields(position, batch)
        if batch.has_append_time:
            fields["logappendtime"] = fields.pop("createtime")
        assert next(lines).fields == fields
        for record in batch.records():
            expected = record_fields(PlacedRecord(position, batch, record))
            if batch.has_append_time:
                expected["logappendtime"] = expected.pop("createtime")
            assert next(lines).fields.items() <= expected.items()
        position += batch.size
    assert list(lines) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_kafka_reads_message_sets_of_each_compression(magic: int, tmp_path: Path) -> None:
    """The tool prints a line for each inner message, with the result of its checksum."""
    data, expected = [], []
    for number, compression in enumerate(c for c in Compression if c is not Compression.ZSTD):
        records = [
            record._replace(headers=(), timestamp=record.timestamp if magic else -1)
            for record in records_from(10 * number)
        ]
        data.append(build_message_set(records, magic=magic, compression=compression))
        expected += records
    lines = [line.fields for line in dump(tmp_path, data) if "keysize" in line.fields]
    assert len(lines) == len(expected)
    for fields, record in zip(lines, expected, strict=True):
        assert fields["isvalid"] == "true"
        assert fields["createtime" if magic else "notimestamptype"] == str(record.timestamp)
        assert fields["offset"] == str(record.offset)
        assert fields["keysize"] == str(-1 if record.key is None else len(record.key))
        assert fields["valuesize"] == str(-1 if record.value is None else len(record.value))


def some(kind: WireType, name: str, chance: random.Random) -> Any:
    """Return a random value of a type, mostly not its default."""
    match kind.kind:
        case "string":
            return chance.choice(["", "text", "grüße", "x" * 200])
        case "bytes":
            return chance.randbytes(chance.choice([0, 3, 200]))
        case "uuid":
            return chance.randbytes(16)
        case "array":
            assert kind.element is not None
            return tuple(some(kind.element, name, chance) for _ in range(chance.choice([0, 1, 3])))
        case "struct":
            assert kind.struct is not None
            return some_struct(kind.struct, 0, chance)
        case "uint16":
            return chance.choice([0, 65535])
        case number:
            bits = int(number.removeprefix("int"))
            return chance.choice([0, -1, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])


def some_struct(cls: type[Struct], version: int, chance: random.Random) -> Any:
    values = {}
    for field in fields_of(cls):
        if not field.versions.covers(version):
            values[field.name] = field.default
        elif field.nullable_versions.covers(version) and chance.random() < 0.3:
            values[field.name] = None
        else:
            values[field.name] = some(field.type, field.name, chance)
    return cls(**values)


def known_records(types: RecordTypes, chance: random.Random) -> list[CoordinatorRecord]:
    """Return some records of each type and version of a topic, and a tombstone of each type."""
    found = []
    for number, (key_class, value_class) in types.items():
        if number in NOT_IN_4_4:
            continue
        found.append(CoordinatorRecord(some_struct(key_class, 0, chance), None, -1))
        for version in range(value_class._versions[0], value_class._versions[1] + 1):
            for _ in range(6):
                value = some_struct(value_class, version, chance)
                if isinstance(value, GroupMetadataValue):
                    value = value.replace(protocol_type="consumer", members=some_members(version))
                if isinstance(value, ConsumerGroupMemberMetadataValue):
                    value = value.with_classic_member_metadata(chance.choice([None, CLASSIC, EMPTY]))
                found.append(CoordinatorRecord(some_struct(key_class, 0, chance), value, version))
    return found


CLASSIC = ClassicMemberMetadata(
    session_timeout_ms=45000, supported_protocols=(ClassicProtocol(name="range", metadata=b""),)
)
EMPTY = ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=())
OWNED = (TopicPartition(topic="t", partitions=(0, 1)),)


def some_members(version: int) -> tuple[MemberMetadata, ...]:
    """Return members whose data the tool can decode, one for each version of the consumer protocol."""
    return tuple(
        MemberMetadata(
            member_id=f"member-{protocol_version}",
            group_instance_id="instance" if version >= 3 else None,
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout=60000 if version >= 1 else -1,
            session_timeout=10000,
            subscription=encode_member_data(
                ConsumerProtocolSubscription(
                    topics=("t",), owned_partitions=OWNED, generation_id=protocol_version, rack_id="r"
                ),
                protocol_version,
            ),
            assignment=encode_member_data(ConsumerProtocolAssignment(assigned_partitions=OWNED), protocol_version),
        )
        for protocol_version in range(4)
    )


@pytest.mark.parametrize(
    ("types", "option"),
    [(OF_OFFSETS, "--offsets-decoder"), (OF_TRANSACTIONS, "--transaction-log-decoder")],
    ids=["offsets", "transactions"],
)
def test_kafka_reads_every_record_type(types: RecordTypes, option: str, tmp_path: Path) -> None:
    """Kafka's classes decode each record and print the encoded values."""
    records = known_records(types, random.Random(2))  # noqa: S311 - test data, the same in each run
    assert len(records) > 6
    written = [
        Record(
            encode_key(record.key),
            None if record.value is None else encode_value(record.value, record.value_version),
            timestamp=NOW,
            offset=offset,
        )
        for offset, record in enumerate(records)
    ]
    lines = [line for line in dump(tmp_path, [build_record_batch(written)], option) if not line.is_batch]
    assert len(lines) == len(records)
    for line, record in zip(lines, records, strict=True):
        key, payload = as_json(record)
        assert line.key is not None
        assert line.payload is not None
        assert json.loads(line.key) == key
        assert payload_json(line.payload) == payload


def test_the_groups_among_the_records_have_members() -> None:
    """The test above relies on this."""
    values = [record.value for record in known_records(OF_OFFSETS, random.Random(2))]  # noqa: S311 - as above
    groups = [value for value in values if isinstance(value, GroupMetadataValue)]
    assert all(len(group.members) == 4 for group in groups)
    assert GroupMetadataKey(group="g")._record_type == 2
