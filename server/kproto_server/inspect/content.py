"""The records of the coordinators' logs as plain values, for `kproto log dump` and `verify`.

Names are Kafka's, in snake case. A field that the version of a record does not have is left out.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from kproto.declaration import Struct, fields_of
from kproto.errors import DecodeError
from kproto.jvm.uuid_text import uuid_text
from kproto.records.consumer_group_records import ConsumerGroupMemberMetadataValue
from kproto.records.consumer_protocol import PROTOCOL_TYPE, read_assignment, read_subscription
from kproto.records.coordinator import CoordinatorKey, CoordinatorRecord, UnknownRecord
from kproto.records.group_records import GroupMetadataValue
from kproto.records.offsets_topic import read_offsets_record
from kproto.records.partitioning import SHARE_STATE_TOPIC, TRANSACTION_TOPIC, share_partition_name
from kproto.records.share_group_state import ShareSnapshotKey, ShareUpdateKey, read_share_state_record
from kproto.records.transaction_state import read_transaction_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    Read = Callable[[bytes | None, bytes | None], CoordinatorRecord | UnknownRecord]
    ProtocolMessage = tuple[int, ConsumerProtocolSubscription | ConsumerProtocolAssignment]

NEWEST_PROTOCOL_VERSION = 3
PROTOCOL_FIELDS: dict[str, Callable[[bytes], ProtocolMessage]] = {
    "subscription": read_subscription,
    "assignment": read_assignment,
}
"""Fields of a classic group's members that hold a message of the consumer protocol."""


READERS: dict[str, Read] = {TRANSACTION_TOPIC: read_transaction_record, SHARE_STATE_TOPIC: read_share_state_record}


def reader_of(topic: str) -> Read:
    """Return the function that decodes keys and values of a topic."""
    return READERS.get(topic, read_offsets_record)


def owner_of(key: CoordinatorKey) -> str:
    """Return the group id, transactional id or share partition that decides a record's partition."""
    if isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        return share_partition_name(key.group_id, key.topic_id, key.partition)
    owner: str = key[0]  # type: ignore[index]  # a struct is a tuple, and each key begins with its owner
    return owner


def type_name(key: CoordinatorKey) -> str:
    """Return Kafka's name of a record's type."""
    return type(key).__name__.removesuffix("Key")


def key_content(found: CoordinatorRecord | UnknownRecord) -> dict[str, Any]:
    """Return type, name and fields of a key; its bytes if the type is unknown."""
    if isinstance(found, UnknownRecord):
        return {"type": found.record_type, "base64": in_base64(found.key)}
    return {"type": type(found.key)._record_type, "name": type_name(found.key), "data": content(found.key, 0)}


def value_content(found: CoordinatorRecord | UnknownRecord) -> dict[str, Any] | None:
    """Return version and fields of a value; None for a tombstone."""
    if found.value is None:
        return None
    if isinstance(found, UnknownRecord):
        return {"base64": in_base64(found.value)}
    return {"version": found.value_version, "data": value_fields(found)}


def value_fields(found: CoordinatorRecord) -> dict[str, Any]:
    """Return the fields of a value that is not null, with the consumer protocol's messages of members decoded.

    Raises:
        DecodeError: a field that is decoded on demand is malformed.
    """
    value = found.value
    assert value is not None, "a tombstone has no fields"
    fields = content(value, found.value_version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == PROTOCOL_TYPE:
        for member, member_fields in zip(value.members, fields["members"], strict=True):
            member_fields |= {
                name: _protocol_message(read, getattr(member, name)) for name, read in PROTOCOL_FIELDS.items()
            }
    if isinstance(value, ConsumerGroupMemberMetadataValue):
        fields.pop("unknown_tagged_fields", None)
        classic = value.classic_member_metadata
        fields["classic_member_metadata"] = None if classic is None else content(classic, 0)
    return fields


def content(value: Struct, version: int) -> dict[str, Any]:
    """Return the fields that a version has, by name."""
    found = {
        field.name: _plain(field.name, getattr(value, field.name), version)
        for field in fields_of(type(value))
        if field.versions.covers(version)
    }
    if value.unknown_tagged_fields:
        found["unknown_tagged_fields"] = [
            {"tag": field.tag, "base64": in_base64(field.data)} for field in value.unknown_tagged_fields
        ]
    return found


def in_base64(data: bytes | None) -> str | None:
    """Return bytes as base64 text; None for None."""
    return None if data is None else base64.b64encode(data).decode()


def _plain(name: str, value: Any, version: int) -> Any:
    if isinstance(value, Struct):
        return content(value, version)
    if isinstance(value, tuple):
        return [_plain(name, item, version) for item in value]
    if isinstance(value, bytes):  # topic ids as Kafka's tools print them
        return uuid_text(value) if name.endswith("_id") else in_base64(value)
    return value


def _protocol_message(read: Callable[[bytes], ProtocolMessage], data: bytes) -> Any:
    """Return version and fields of a message of the consumer protocol; base64 if it cannot be decoded."""
    try:
        version, message = read(data)
    except DecodeError:
        return in_base64(data)
    return {"version": version, **content(message, min(version, NEWEST_PROTOCOL_VERSION))}
