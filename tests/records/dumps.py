"""The output of Kafka's DumpLogSegments: parsed, and computed from the records that kproto decodes.

A line has fields ("offset: 3"), then key and payload in a format that depends on the tool's release: text for offsets
and groups up to 2.x, JSON in 4.x.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kproto.declaration import Struct, fields_of
from kproto.message import Message
from kproto.records.batches import read_batches
from kproto.records.consumer_group_records import ConsumerGroupMemberMetadataValue
from kproto.records.consumer_protocol import read_assignment, read_subscription
from kproto.records.control import read_end_marker
from kproto.records.coordinator import CoordinatorRecord, UnknownRecord
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.record import Record
from kproto.records.record_batch import RecordBatch
from kproto.records.transaction_state import TransactionLogKey, TransactionLogValue, TransactionStatus

Read = Callable[[bytes | None, bytes | None], CoordinatorRecord | UnknownRecord]
FIELD = re.compile(r"(\w+): (\S+)")
BEGINNINGS = ("baseOffset: ", "| offset: ", "offset: ")


class Line(NamedTuple):
    """A line of a dump; names and values of its fields are in lower case, because releases differ."""

    fields: dict[str, str]
    key: str | None
    payload: str | None

    @property
    def is_batch(self) -> bool:
        return "count" in self.fields


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines about batches and records; of a line in which the tool crashed, the fields before that."""
    for line in text.splitlines():
        if line.startswith(BEGINNINGS):
            fields, _, content = line.partition("Exception in thread")[0].partition(" key: ")
            key, payload = content.split(" payload: ", 1) if content else (None, None)
            yield Line({name.lower(): value.lower() for name, value in FIELD.findall(fields)}, key, payload)


class PlacedRecord(NamedTuple):
    """A record with its batch, and the position of the batch in the file."""

    position: int
    batch: RecordBatch
    record: Record


def decoded(data: bytes) -> Iterator[tuple[int, RecordBatch, list[PlacedRecord]]]:
    """Yield ``(position, batch, records)`` of a segment."""
    position = 0
    for batch in read_batches(data):
        assert isinstance(batch, RecordBatch)
        yield position, batch, [PlacedRecord(position, batch, record) for record in batch.records()]
        position += batch.size
    assert position == len(data)


def batch_fields(position: int, batch: RecordBatch) -> dict[str, str]:
    """Return the fields that a dump prints for a batch, in lower case."""
    header = batch.header
    horizon = batch.delete_horizon_ms
    fields = {
        "baseoffset": batch.base_offset,
        "lastoffset": batch.last_offset,
        "count": header.record_count,
        "basesequence": header.base_sequence,
        "lastsequence": sequence(batch, batch.last_offset),
        "producerid": header.producer_id,
        "producerepoch": header.producer_epoch,
        "partitionleaderepoch": header.partition_leader_epoch,
        "istransactional": batch.is_transactional,
        "iscontrol": batch.is_control,
        "deletehorizonms": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": position,
        "createtime": header.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": batch.compression.name,
        "crc": header.crc,
        "isvalid": True,
    }
    return {name: str(value).lower() for name, value in fields.items()}


def record_fields(placed: PlacedRecord) -> dict[str, str]:
    """Return the fields that a dump prints for a record, without key and payload, in lower case."""
    position, batch, record = placed
    fields = {
        "offset": record.offset,
        "createtime": record.timestamp,
        "keysize": -1 if record.key is None else len(record.key),
        "valuesize": -1 if record.value is None else len(record.value),
        "sequence": sequence(batch, record.offset),
        "headerkeys": f"[{','.join(header.key for header in record.headers)}]",
        "batchsize": batch.size,
        "compresstype": batch.compression.name,
        "crc": None,
    }
    if batch.is_control:
        outcome, epoch = read_end_marker(record)
        fields |= {"endtxnmarker": outcome.name, "coordinatorepoch": epoch}
    return batch_fields(position, batch) | {name: printed(value) for name, value in fields.items()}


def sequence(batch: RecordBatch, offset: int) -> int:
    first = batch.header.base_sequence
    return -1 if first < 0 else first + offset - batch.base_offset


def printed(value: object) -> str:
    return "null" if value is None else str(value).lower()


def as_json(found: CoordinatorRecord) -> tuple[Any, Any]:
    """Return key and payload in the format of 4.x."""
    key = {"type": str(type(found.key)._record_type), "data": struct_json(found.key, 0)}
    if found.value is None:
        return key, "<DELETE>"
    return key, {"version": str(found.value_version), "data": struct_json(found.value, found.value_version)}


def payload_json(text: str) -> Any:
    """Return a payload in the format of 4.x; 4.4.0 prints the state of a transaction, older tools its number."""
    return text if text == "<DELETE>" else json.loads(text, object_hook=_with_numbered_state)


def _with_numbered_state(value: dict[str, Any]) -> dict[str, Any]:
    state = value.get("transactionStatus")
    if isinstance(state, str):
        value["transactionStatus"] = _status(state)
    return value


def _status(state: str) -> int:
    named = {state_name(status): status.value for status in TransactionStatus}
    return named[state] if state in named else int(state)


def struct_json(value: Struct, version: int) -> dict[str, Any]:
    """Return a value with Kafka's names; tagged fields only if they differ from their default."""
    found: dict[str, Any] = {}
    for field in fields_of(type(value)):
        content = getattr(value, field.name)
        tagged = field.tag is not None and field.tag.versions.covers(version)
        if field.versions.covers(version) and not (tagged and content == field.default):
            found[camel(field.name)] = field_json(field.name, content, version)
    if isinstance(value, ConsumerGroupMemberMetadataValue) and value.unknown_tagged_fields:
        classic = value.classic_member_metadata
        found["classicMemberMetadata"] = None if classic is None else struct_json(classic, 0)
    return found


def field_json(name: str, content: Any, version: int) -> Any:
    if isinstance(content, Struct):
        return struct_json(content, version)
    if isinstance(content, tuple):
        return [field_json(name, item, version) for item in content]
    if isinstance(content, bytes):
        return bytes_json(name, content)
    return content


def bytes_json(name: str, content: bytes) -> Any:
    """Return topic ids as 22 characters, data of members decoded, and other bytes as base64."""
    if name == "subscription":
        return member_data_json(read_subscription(content))
    if name == "assignment":
        return member_data_json(read_assignment(content))
    return base64.urlsafe_b64encode(content).decode().rstrip("=") if name.endswith("_id") else as_base64(content)


def as_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def member_data_json(member_data: tuple[int, Message]) -> dict[str, Any]:
    """Return a subscription or assignment with the fields of its version."""
    version, value = member_data
    found = (
        (field.name, getattr(value, field.name)) for field in fields_of(type(value)) if field.versions.covers(version)
    )
    return {camel(name): as_base64(v) if isinstance(v, bytes) else member_field_json(v) for name, v in found}


def member_field_json(content: Any) -> Any:
    if isinstance(content, tuple):
        return [struct_json(item, 0) if isinstance(item, Struct) else item for item in content]
    return content


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def as_text_of_2_8(found: CoordinatorRecord) -> tuple[str, str]:
    """Return key and payload in the format of 2.8."""
    match found.key, found.value:
        case OffsetCommitKey() as key, value:
            text = f"offset_commit::group={key.group},partition={key.topic}-{key.partition}"
            if value is None:
                return text, "<DELETE>"
            assert isinstance(value, OffsetCommitValue)
            metadata = f",metadata={value.metadata}" if value.metadata else ""
            return text, f"offset={value.offset}{metadata}"
        case GroupMetadataKey() as key, value:
            return f"group_metadata::group={key.group}", "<DELETE>" if value is None else group_text_of_2_8(value)
    raise AssertionError(f"2.8 prints no {found.key!r}")


def group_text_of_2_8(value: Message) -> str:
    assert isinstance(value, GroupMetadataValue)
    parts = []
    for member in value.members:
        assigned = read_assignment(member.assignment)[1].assigned_partitions
        partitions = ", ".join(f"{topic.topic}-{p}" for topic in assigned for p in topic.partitions)
        parts.append(f"{member.member_id}=[{partitions}]")
    group = {
        "protocolType": value.protocol_type,
        "protocol": value.protocol,
        "generationId": value.generation,
        "assignment": f"{{{', '.join(parts)}}}",
    }
    return json.dumps(group, separators=(",", ":"))


def as_text_of_2_0(found: CoordinatorRecord) -> tuple[str, str]:
    """Return key and payload in the format of 2.0 and 2.1."""
    match found.key, found.value:
        case OffsetCommitKey() as key, OffsetCommitValue() as value:
            metadata = f":{value.metadata}" if value.metadata else ""
            return f"offset::{key.group}:{key.topic}:{key.partition}", f"{value.offset}{metadata}"
        case TransactionLogKey() as key, TransactionLogValue() as value:
            return f"transactionalId={key.transactional_id}", transaction_text(value)
    raise AssertionError(f"2.0 prints no {found.key!r}")


def state_name(status: TransactionStatus) -> str:
    return "".join(word.capitalize() for word in status.name.split("_"))


def transaction_text(value: TransactionLogValue) -> str:
    state = state_name(TransactionStatus(value.transaction_status))
    topics = value.transaction_partitions or ()
    partitions = ", ".join(f"{topic.topic}-{number}" for topic in topics for number in topic.partition_ids)
    fields = [
        f"producerId:{value.producer_id}",
        f"producerEpoch:{value.producer_epoch}",
        f"state={state}",
        f"partitions=Set({partitions})",
        f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms}",
        f"txnTimeoutMs={value.transaction_timeout_ms}",
    ]
    return ",".join(fields)
