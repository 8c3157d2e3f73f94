"""`kproto log dump` prints logs of 2.0.1, 2.1.1 and 4.4.0 as Kafka's own dump tool does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto.errors import CorruptLog
from kproto.records.batch_header import APPEND_TIME, DELETE_HORIZON
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import build_record_batch, read_record_batch, seal
from kproto_server.inspect.directory import find_logs
from kproto_server.inspect.dump import dump
from tests.fixture_files import golden_log
from tests.inspect.logs import NOW, OFFSETS, RELEASES, TRANSACTIONS, commit, partition_folder
from tests.records.dumps import Line, camel, lines_of

ADDED = {
    *("topicId", "metadataHash", "version", "assignmentEpochs", "assignmentTimestamp", "classicMemberMetadata"),
    *("previousProducerId", "nextProducerId", "nextProducerEpoch", "clientTransactionVersion"),
}
"""Fields that Kafka's tool omits at their default, and the version of a member's subscription and assignment."""
each_release = pytest.mark.parametrize("release", RELEASES)
each_topic = pytest.mark.parametrize("topic", [OFFSETS, TRANSACTIONS])


def text_of(path: Path, form: str = "text") -> str:
    lines: list[str] = []
    dump(find_logs(str(path)), form, write=lines.append, note=pytest.fail)
    return "".join(lines)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text_of(path, "jsonl").splitlines()]


def printed_by_kafka(release: str, topic: str, name: str = "dump.txt") -> Iterator[Line]:
    return lines_of((golden_log(release) / topic / name).read_text())


def kafka_fields(row: dict[str, Any], batch: dict[str, Any]) -> dict[str, str]:
    """Return the fields of our lines under the names that Kafka's tool prints, in lower case."""
    horizon = batch["delete_horizon_ms"]
    found = {
        "baseoffset": batch["base_offset"],
        "lastoffset": batch["last_offset"],
        "count": batch["record_count"],
        "basesequence": batch["base_sequence"],
        "lastsequence": sequence(batch, batch["last_offset"]),
        "producerid": batch["producer_id"],
        "producerepoch": batch["producer_epoch"],
        "partitionleaderepoch": batch["partition_leader_epoch"],
        "istransactional": batch["transactional"],
        "iscontrol": batch["control"],
        "deletehorizonms": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": batch["position"],
        "createtime": batch["max_timestamp"],
        "size": batch["size"],
        "batchsize": batch["size"],
        "magic": batch["magic"],
        "compresscodec": batch["compression"],
        "compresstype": batch["compression"],
        "crc": batch["crc"],
        "isvalid": True,
    }
    if row["type"] == "record":
        found |= {
            "offset": row["offset"],
            "createtime": row["timestamp"],
            "keysize": row["key_size"],
            "valuesize": row["value_size"],
            "sequence": sequence(batch, row["offset"]),
            "headerkeys": f"[{','.join(header['key'] for header in row['headers'])}]",
            "crc": "null",
        }
    if "marker" in row:
        found |= {"endtxnmarker": row["marker"]["type"], "coordinatorepoch": row["marker"]["coordinator_epoch"]}
    return {name: str(value).lower() for name, value in found.items()}


def sequence(batch: dict[str, Any], offset: int) -> int:
    first: int = batch["base_sequence"]
    return -1 if first < 0 else first + offset - batch["base_offset"]


def with_batches(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    batch = rows[0]
    for row in rows:
        batch = row if row["type"] == "batch" else batch
        yield row, batch


def assert_equal_fields(ours: Any, theirs: Any) -> None:
    """Check that our fields are those that Kafka's tool prints, and fields that it omits at their default."""
    if isinstance(theirs, dict):
        ours = {camel(name): value for name, value in ours.items()}
        assert ours.keys() - theirs.keys() <= ADDED
        assert theirs.keys() <= ours.keys()
        for name, value in theirs.items():
            assert_equal_fields(ours[name], value)
    elif isinstance(theirs, list):
        for our, their in zip(ours, theirs, strict=True):
            assert_equal_fields(our, their)
    else:
        assert ours == theirs


@each_topic
def test_each_field_of_the_dump_by_4_4_0(topic: str) -> None:
    theirs = printed_by_kafka("4.4.0", topic)
    for row, batch in with_batches(rows_of(golden_log("4.4.0") / topic)):
        line = next(theirs)
        assert line.fields.items() <= kafka_fields(row, batch).items()
        if line.key is None:
            assert row["type"] == "batch" or "marker" in row
            continue
        assert line.payload is not None
        key = json.loads(line.key)
        assert str(row["key"]["type"]) == key["type"]
        assert_equal_fields(row["key"]["data"], key["data"])
        assert row["tombstone"] == (line.payload == "<DELETE>") == (row["value"] is None)
        if not row["tombstone"]:
            payload = json.loads(line.payload)
            assert str(row["value"]["version"]) == payload["version"]
            assert_equal_fields(row["value"]["data"], payload["data"])
    assert list(theirs) == []


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_each_field_of_the_dump_by_2_8_2(release: str) -> None:
    theirs = printed_by_kafka(release, OFFSETS, "dump-by-2.8.2.txt")
    for row, batch in with_batches(rows_of(golden_log(release) / OFFSETS)):
        line = next(theirs)
        assert line.fields.items() <= kafka_fields(row, batch).items()
        if line.key is not None:
            assert line.payload is not None
            assert (line.key, line.payload.split(",")[0].split(":")[0]) == as_2_8_prints(row)
    assert list(theirs) == []


def as_2_8_prints(row: dict[str, Any]) -> tuple[str, str]:
    key, value = row["key"], row["value"]
    if key["name"] == "GroupMetadata":
        subject, payload = f"group_metadata::group={key['data']['group']}", '{"protocolType"'
    else:
        data = key["data"]
        subject = f"offset_commit::group={data['group']},partition={data['topic']}-{data['partition']}"
        payload = "" if value is None else f"offset={value['data']['offset']}"
    return subject, "<DELETE>" if value is None else payload


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
@each_topic
def test_each_field_of_the_dump_by_the_release_itself(release: str, topic: str) -> None:
    """The dump of the offsets topic ends at the first group with members, where the old tool fails."""
    ours = [(r, b) for r, b in with_batches(rows_of(golden_log(release) / topic)) if r["type"] == "record"]
    theirs = list(printed_by_kafka(release, topic))
    assert len(theirs) >= 8
    for line, (row, batch) in zip(theirs, ours, strict=False):
        assert line.fields.items() <= kafka_fields(row, batch).items()
        if line.key is not None and topic == OFFSETS:
            data, value = row["key"]["data"], row["value"]["data"]
            metadata = f":{value['metadata']}" if value["metadata"] else ""
            assert line.key == f"offset::{data['group']}:{data['topic']}:{data['partition']}"
            assert line.payload == f"{value['offset']}{metadata}"
        elif line.key is not None:
            assert line.key == f"transactionalId={row['key']['data']['transactional_id']}"
            assert f"producerId:{row['value']['data']['producer_id']}," in (line.payload or "")


@each_release
@each_topic
def test_text_has_a_line_for_each_line_of_json(release: str, topic: str) -> None:
    folder = golden_log(release) / topic
    lines = text_of(folder).splitlines()
    rows = rows_of(folder)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        if row["type"] == "batch":
            assert line.startswith(f"{topic}/{row['segment']} at {row['position']}: offsets {row['base_offset']}..")
        else:
            assert line.startswith(f"  {row['offset']} 2026-11-2")
            assert "UNREADABLE" not in line


def test_a_log_dir_is_dumped_topic_by_topic() -> None:
    rows = rows_of(golden_log("4.4.0"))
    assert [row["topic"] for row in rows] == sorted(row["topic"] for row in rows)
    assert {row["topic"] for row in rows} == {"__consumer_offsets", "__transaction_state"}


def dumped(tmp_path: Path, data: bytes) -> tuple[list[str], list[dict[str, Any]]]:
    folder = partition_folder(tmp_path, {0: data})
    return text_of(folder).splitlines(), rows_of(folder)


def test_text_of_each_kind_of_record(tmp_path: Path) -> None:
    key = commit(0).key
    records = [
        commit(0, metadata='a "quoted"\x1b[31m'),
        Record(key, None, timestamp=NOW, offset=1),
        Record(b"\x7f\xff?", b"!", timestamp=NOW, offset=2),
        Record(b"\x7f\xff?", None, timestamp=-1, offset=3),
        Record(None, b"v", (RecordHeader("h", None),), timestamp=2**62, offset=4),
        Record(key, b"\0\x09", timestamp=NOW, offset=5),
    ]
    text, rows = dumped(tmp_path, build_record_batch(records, producer_id=7, producer_epoch=1))
    printed = [line.removesuffix(" (producer 7 epoch 1)") for line in text[1:]]
    subject = 'OffsetCommit group="g1" topic="t" partition=0'
    quoted = r'"a \"quoted\"\u001b[31m"'
    assert printed[:4] == [
        f"  0 2023-11-14T22:13:20.000Z {subject} -> v3 offset=0 leader_epoch=-1 metadata={quoted} "
        f"commit_timestamp={NOW}",
        f"  1 2023-11-14T22:13:20.000Z {subject} -> tombstone",
        "  2 2023-11-14T22:13:20.000Z type 32767, unknown: f/8/ -> IQ==",
        "  3 (no time) type 32767, unknown: f/8/ -> tombstone",
    ]
    assert printed[4].startswith(f"  4 {2**62} UNREADABLE record key at byte 0: null; key None, value dg== (base64)")
    assert "UNREADABLE OffsetCommitValue at byte 0: version 9, only 0 to 4 are known" in printed[5]
    assert rows[3]["key"] == {"type": 32767, "base64": "f/8/"}
    assert rows[3]["value"] == {"base64": "IQ=="}
    assert rows[5]["error"] == "record key at byte 0: null"
    assert rows[5]["headers"] == [{"key": "h", "base64": None}]


def test_attributes_of_a_batch(tmp_path: Path) -> None:
    data = build_record_batch([commit(0)], flags=APPEND_TIME | DELETE_HORIZON, base_timestamp=NOW + 1000)
    text, rows = dumped(tmp_path, data)
    assert text[0].endswith("append time, delete horizon 2023-11-14T22:13:21.000Z")
    assert rows[0]["timestamp_type"] == "append"
    assert rows[0]["delete_horizon_ms"] == NOW + 1000


@pytest.mark.parametrize("version", range(5))
def test_each_version_of_a_commit_has_the_fields_of_that_version(tmp_path: Path, version: int) -> None:
    _, rows = dumped(tmp_path, build_record_batch([commit(0, version=version)]))
    data = rows[1]["value"]["data"]
    assert ("expire_timestamp" in data, "leader_epoch" in data, "topic_id" in data) == (
        version == 1,
        version >= 3,
        version >= 4,
    )


@pytest.mark.parametrize("compression", Compression)
def test_each_compression(tmp_path: Path, compression: Compression) -> None:
    _, rows = dumped(tmp_path, build_record_batch([commit(0), commit(1)], compression=compression))
    assert rows[0]["compression"] == compression.name.lower()
    assert [row["value"]["data"]["offset"] for row in rows[1:]] == [0, 1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_message_sets(tmp_path: Path, magic: int, compression: Compression) -> None:
    records = [commit(offset)._replace(timestamp=NOW if magic else -1) for offset in range(2)]
    text, rows = dumped(tmp_path, build_message_set(records, magic=magic, compression=compression))
    batches = [row for row in rows if row["type"] == "batch"]
    assert len(batches) == (2 if compression is Compression.NONE else 1)
    assert batches[0]["base_offset"] is batches[0]["producer_id"] is batches[0]["record_count"] is None
    found = [row for row in rows if row["type"] == "record"]
    assert [row["offset"] for row in found] == [0, 1]
    assert {row["timestamp"] for row in found} == {NOW if magic else -1}
    assert f"magic {magic}" in text[0]


def test_records_before_damage_are_printed(tmp_path: Path) -> None:
    good, bad = build_record_batch([commit(0)]), bytearray(build_record_batch([commit(1)]))
    bad[-1] ^= 1
    folder = partition_folder(tmp_path, {0: good + bytes(bad)})
    lines: list[str] = []
    with pytest.raises(CorruptLog, match=f"at byte {len(good)}, offset 1: BadChecksum: RecordBatch.crc"):
        dump(find_logs(str(folder)), "text", write=lines.append, note=pytest.fail)
    assert len(lines) == 2


def test_malformed_records_are_damage(tmp_path: Path) -> None:
    batch, _ = read_record_batch(build_record_batch([commit(0)]))
    folder = partition_folder(tmp_path, {0: seal(batch.header, batch.payload[:-1])})
    with pytest.raises(CorruptLog, match=r"offset 0: BadRecords: records\[0\]: its sizes do not fit"):
        dump(find_logs(str(folder)), "text", write=lambda line: None, note=pytest.fail)
