"""`kproto log dump`: every batch and record of a log, as text or lines of JSON (server/LOG.md tells their fields)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kproto.errors import DecodeError
from kproto.records.control import read_end_marker
from kproto.records.record import NO_TIMESTAMP
from kproto.records.record_batch import NO_PRODUCER_ID, RecordBatch
from kproto_server.inspect.content import in_base64, key_content, reader_of, value_content
from kproto_server.inspect.walk import SegmentWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kproto.records.batches import Batch
    from kproto.records.record import Record
    from kproto.records.segment import PlacedBatch
    from kproto_server.inspect.content import Read
    from kproto_server.inspect.directory import PartitionLog, Segment

    Line = dict[str, Any]

FORMATS = ("text", "jsonl")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HEADER_FACTS = (
    "base_offset", "record_count", "crc", "base_timestamp", "max_timestamp", "partition_leader_epoch",
    "producer_id", "producer_epoch", "base_sequence",
)  # fmt: skip


def dump(
    logs: Iterable[PartitionLog], form: str, *, write: Callable[[str], object], note: Callable[[str], None]
) -> None:
    """Write what the logs hold; ``note`` is told of torn tails.

    Raises:
        CorruptLog: what comes next is no batch; all before it was written.
        MissingPackage: a compression needs a package that is not installed.
        OSError: a file can't be read, or nothing more be written.
    """
    show = as_text if form == "text" else as_json
    for log in logs:
        read = reader_of(log.topic)
        for segment in log.segments:
            walk = SegmentWalk(segment)
            for line in _lines(log, segment, read, walk):
                write(show(line))
            if walk.torn is not None:
                note(str(walk.torn))


def _lines(log: PartitionLog, segment: Segment, read: Read, walk: SegmentWalk) -> Iterator[Line]:
    place = {"topic": log.topic, "partition": log.partition, "segment": segment.path.name}
    for placed in walk:
        yield {"type": "batch", **place, **batch_line(placed)}
        try:
            records = placed.batch.records()
        except DecodeError as error:
            raise walk.corrupt(placed.position, placed.batch.last_offset, str(error)) from None
        for record in records:
            yield {"type": "record", **place, "position": placed.position, **record_line(placed.batch, record, read)}


def batch_line(placed: PlacedBatch) -> Line:
    """Return the facts of a batch; those that message sets lack are null there."""
    batch = placed.batch
    return {
        "position": placed.position,
        "size": batch.size,
        "magic": batch.magic,
        "last_offset": batch.last_offset,
        "compression": batch.compression.name.lower(),
        "timestamp_type": "append" if batch.has_append_time else "create",
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        **_header_facts(batch),
    }


def _header_facts(batch: Batch) -> Line:
    if isinstance(batch, RecordBatch):
        facts = {name: getattr(batch.header, name) for name in HEADER_FACTS}
        return {**facts, "delete_horizon_ms": batch.delete_horizon_ms}
    told = {"crc": batch.message.crc, "max_timestamp": batch.message.timestamp}
    return {**dict.fromkeys((*HEADER_FACTS, "delete_horizon_ms")), **told}


def record_line(batch: Batch, record: Record, read: Read) -> Line:
    """Return the facts of a record: offset and timestamp, its key and value taken apart or what a marker says."""
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
    """Return a line of JSON, in ASCII whatever the terminal."""
    return json.dumps(line, separators=(",", ":")) + "\n"


def as_text(line: Line) -> str:
    """Return a line for people; strings are quoted and escaped, as a client may have put anything in them."""
    return _batch_text(line) if line["type"] == "batch" else _record_text(line)


def _batch_text(line: Line) -> str:
    base = line["base_offset"]
    offsets = f"{'..' if base is None else base}{'' if base is None else '..'}{line['last_offset']}"
    number = "?" if line["partition"] is None else line["partition"]
    facts = [
        f"{line['topic']}-{number}/{line['segment']} at {line['position']}: offsets {offsets}",
        f"{line['size']} bytes, magic {line['magic']}, crc {line['crc']:08x}, {line['compression']}",
    ]
    if line["record_count"] is not None:
        facts.append(f"{line['record_count']} records, leader epoch {line['partition_leader_epoch']}")
        facts.append(f"sequence {line['base_sequence']}")
    if line["timestamp_type"] == "append":
        facts.append("append time")
    if line["delete_horizon_ms"] is not None:
        facts.append(f"delete horizon {_moment(line['delete_horizon_ms'])}")
    return ", ".join(facts) + "\n"


def _record_text(line: Line) -> str:
    words = [f"  {line['offset']}", _moment(line["timestamp"]), _content_text(line)]
    if line["transactional"]:
        words.append(f"(transactional, producer {line['producer_id']} epoch {line['producer_epoch']})")
    elif line["producer_id"] not in (None, NO_PRODUCER_ID):
        words.append(f"(producer {line['producer_id']} epoch {line['producer_epoch']})")
    if line["headers"]:
        words.append(f"headers {json.dumps(line['headers'])}")
    return " ".join(words) + "\n"


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


def _moment(timestamp: int) -> str:
    """Return UTC in milliseconds; a timestamp that no calendar has stays a number."""
    if timestamp == NO_TIMESTAMP:
        return "(no time)"
    try:
        return (EPOCH + timedelta(milliseconds=timestamp)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return str(timestamp)
