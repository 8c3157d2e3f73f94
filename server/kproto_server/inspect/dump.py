"""`kproto log dump`: print every batch and record of a log, as text or JSON lines (fields: server/INSPECT.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kproto.errors import DecodeError
from kproto.records.batch_header import NO_PRODUCER_ID
from kproto.records.control import read_end_marker
from kproto.records.record import NO_TIMESTAMP
from kproto.records.record_batch import RecordBatch
from kproto_server.inspect.batches import SegmentBatches
from kproto_server.inspect.content import in_base64, key_content, reader_of, value_content
from kproto_server.inspect.directory import segments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kproto.logs.batches import PlacedBatch
    from kproto.logs.files import PartitionDirectory, SegmentFile
    from kproto.records.batches import Batch
    from kproto.records.record import Record
    from kproto_server.inspect.content import Read

    Line = dict[str, Any]

FORMATS = ("text", "jsonl")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HEADER_FIELDS = (
    "base_offset", "record_count", "crc", "base_timestamp", "max_timestamp", "partition_leader_epoch",
    "producer_id", "producer_epoch", "base_sequence",
)  # fmt: skip


def dump(
    logs: Iterable[PartitionDirectory], form: str, *, write: Callable[[str], object], note: Callable[[str], None]
) -> None:
    """Write the content of the logs; ``note`` receives torn tails.

    Raises:
        CorruptLog: the next bytes are not a valid batch; everything before them was written.
        MissingPackage: a compression needs a package that is not installed.
        OSError: a file cannot be read, or the output cannot be written.
    """
    show = as_text if form == "text" else as_json
    for log in logs:
        read = reader_of(log.topic)
        for segment in segments_of(log):
            batches = SegmentBatches(segment)
            for line in _lines(log, segment, read, batches):
                write(show(line))
            if batches.torn is not None:
                note(str(batches.torn))


def _lines(log: PartitionDirectory, segment: SegmentFile, read: Read, batches: SegmentBatches) -> Iterator[Line]:
    common = {"topic": log.topic, "partition": log.number, "segment": segment.path.name}
    for placed in batches:
        yield {"type": "batch", **common, **batch_line(placed)}
        for record in placed.records():
            yield {"type": "record", **common, "position": placed.position, **record_line(placed.batch, record, read)}


def batch_line(placed: PlacedBatch) -> Line:
    """Return the fields of a batch; fields that message sets do not have are null.

    Raises:
        BadCompression: the compression is unknown.
    """
    batch = placed.batch
    return {
        "position": placed.position,
        "size": batch.size,
        "magic": batch.magic,
        "last_offset": batch.last_offset,
        "compression": placed.compression().name.lower(),
        "timestamp_type": "append" if batch.has_append_time else "create",
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        **_header_fields(batch),
    }


def _header_fields(batch: Batch) -> Line:
    if isinstance(batch, RecordBatch):
        fields = {name: getattr(batch.header, name) for name in HEADER_FIELDS}
        return {**fields, "delete_horizon_ms": batch.delete_horizon_ms}
    known = {"crc": batch.message.crc, "max_timestamp": batch.message.timestamp}
    return {**dict.fromkeys((*HEADER_FIELDS, "delete_horizon_ms")), **known}


def record_line(batch: Batch, record: Record, read: Read) -> Line:
    """Return the fields of a record: offset, timestamp, and its decoded key and value or end marker."""
    header = batch.header if isinstance(batch, RecordBatch) else None
    line: Line = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "producer_id": None if header is None else header.producer_id,
        "producer_epoch": None if header is None else header.producer_epoch,
        "headers": [{"key": name, "base64": in_base64(value)} for name, value in record.headers],
        "key_size": -1 if record.key is None else len(record.key),
        "value_size": -1 if record.value is None else len(record.value),
    }
    try:
        return line | (_marker(record) if batch.is_control else _content(record, read))
    except DecodeError as error:
        raw = {"key_base64": in_base64(record.key), "value_base64": in_base64(record.value)}
        return {**line, "error": str(error), **raw}


def _marker(record: Record) -> Line:
    outcome, coordinator_epoch = read_end_marker(record)
    return {"marker": {"type": outcome.name, "coordinator_epoch": coordinator_epoch}}


def _content(record: Record, read: Read) -> Line:
    found = read(record.key, record.value)
    return {"key": key_content(found), "value": value_content(found), "tombstone": record.value is None}


def as_json(line: Line) -> str:
    """Return a line of JSON, in ASCII for every terminal."""
    return json.dumps(line, separators=(",", ":")) + "\n"


def as_text(line: Line) -> str:
    """Return a line of text. Strings are quoted and escaped: clients choose them."""
    return _batch_text(line) if line["type"] == "batch" else _record_text(line)


def _batch_text(line: Line) -> str:
    base = line["base_offset"]
    offsets = f"{'..' if base is None else base}{'' if base is None else '..'}{line['last_offset']}"
    number = "?" if line["partition"] is None else line["partition"]
    parts = [
        f"{line['topic']}-{number}/{line['segment']} at {line['position']}: offsets {offsets}",
        f"{line['size']} bytes, magic {line['magic']}, crc {line['crc']:08x}, {line['compression']}",
    ]
    if line["record_count"] is not None:
        parts.append(f"{line['record_count']} records, leader epoch {line['partition_leader_epoch']}")
        parts.append(f"sequence {line['base_sequence']}")
    if line["timestamp_type"] == "append":
        parts.append("append time")
    if line["delete_horizon_ms"] is not None:
        parts.append(f"delete horizon {_time(line['delete_horizon_ms'])}")
    return ", ".join(parts) + "\n"


def _record_text(line: Line) -> str:
    parts = [f"  {line['offset']}", _time(line["timestamp"]), _content_text(line)]
    if line["transactional"]:
        parts.append(f"(transactional, producer {line['producer_id']} epoch {line['producer_epoch']})")
    elif line["producer_id"] not in (None, NO_PRODUCER_ID):
        parts.append(f"(producer {line['producer_id']} epoch {line['producer_epoch']})")
    if line["headers"]:
        parts.append(f"headers {json.dumps(line['headers'])}")
    return " ".join(parts) + "\n"


def _content_text(line: Line) -> str:
    if "error" in line:
        return f"UNREADABLE {line['error']}; key {line['key_base64']}, value {line['value_base64']} (base64)"
    if line["control"]:
        return f"{line['marker']['type']} coordinator_epoch={line['marker']['coordinator_epoch']}"
    key, value = line["key"], line["value"]
    known = "data" in key
    subject = f"{key['name']} {_fields(key['data'])}" if known else f"type {key['type']}, unknown: {key['base64']}"
    if value is None:
        return f"{subject} -> tombstone"
    return f"{subject} -> " + (f"v{value['version']} {_fields(value['data'])}" if known else value["base64"])


def _fields(data: Line) -> str:
    return " ".join(f"{name}={json.dumps(value)}" for name, value in data.items())


def _time(timestamp: int) -> str:
    """Return a timestamp as UTC with milliseconds; as a number if it is outside of the years 1 to 9999."""
    if timestamp == NO_TIMESTAMP:
        return "(no time)"
    try:
        return (EPOCH + timedelta(milliseconds=timestamp)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return str(timestamp)
