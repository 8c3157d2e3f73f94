"""Keys and values of the coordinators' topics, `__consumer_offsets` and `__transaction_state` (LF-10).

Wire:
    key: int16 record type, then the key's fields, never flexible; value: int16 version, then the value's fields.

A record without a value is a tombstone: it deletes the state of its key. An unknown type is not an error, because newer
brokers write new types. A value that cannot be read is an error, because state would be missing (LF-36).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import DecodeError, EncodeError
from kproto.message import Message
from kproto.message_codec import decode_exactly

if TYPE_CHECKING:
    from typing import ClassVar

PREFIX_SIZE = 2
"""Bytes of a key's type, and of a value's version."""
KEY_VERSION = 0


class CoordinatorKey(Message):
    """The key of a record; ``record_type`` is Kafka's number for its type."""

    if TYPE_CHECKING:
        _record_type: ClassVar[int]

    def __init_subclass__(cls, *, record_type: int = -1) -> None:
        super().__init_subclass__()
        cls._record_type = record_type


class CoordinatorValue(Message):
    """The value of a record."""


RecordTypes = Mapping[int, tuple[type[CoordinatorKey], type[CoordinatorValue]]]
"""Record type -> classes of key and value."""


class CoordinatorRecord(NamedTuple):
    """A record of a known type."""

    key: CoordinatorKey
    value: CoordinatorValue | None
    """None for a tombstone."""
    value_version: int
    """-1 for a tombstone."""


class UnknownRecord(NamedTuple):
    """A record of a type that is not declared."""

    record_type: int
    key: bytes
    value: bytes | None


def read_record(types: RecordTypes, key: bytes | None, value: bytes | None) -> CoordinatorRecord | UnknownRecord:
    """Return the decoded key and value of a record.

    Raises:
        DecodeError: the key is missing, the version of the value is unknown, or one of them does not have its layout
            or continues after it.
    """
    if key is None or len(key) < PREFIX_SIZE:
        raise DecodeError("record key", 0, "null" if key is None else "truncated before its type")
    record_type = int.from_bytes(key[:PREFIX_SIZE], "big", signed=True)
    classes = types.get(record_type)
    if classes is None:
        return UnknownRecord(record_type, key, value)
    decoded_key = decode_exactly(classes[0], key, KEY_VERSION, PREFIX_SIZE)
    if value is None:
        return CoordinatorRecord(decoded_key, None, -1)
    version = value_version(classes[1], value)
    return CoordinatorRecord(decoded_key, decode_exactly(classes[1], value, version, PREFIX_SIZE), version)


def value_version(cls: type[CoordinatorValue], value: bytes) -> int:
    """Return the version of an encoded value.

    Raises:
        DecodeError: the value is too short, or its version is unknown.
    """
    if len(value) < PREFIX_SIZE:
        raise DecodeError(cls.__name__, 0, "truncated before its version")
    version = int.from_bytes(value[:PREFIX_SIZE], "big", signed=True)
    first, last = cls._versions
    if not first <= version <= last:
        raise DecodeError(cls.__name__, 0, f"version {version}, only {first} to {last} are known")
    return version


def encode_key(key: CoordinatorKey) -> bytes:
    """Return an encoded key, with its type before it.

    Raises:
        EncodeError: a field's value does not fit, or the class has no record type.
    """
    record_type = type(key)._record_type
    if record_type < 0:
        raise EncodeError(type(key).__name__, "has no record type")
    return record_type.to_bytes(PREFIX_SIZE, "big") + key.encode(KEY_VERSION)


def encode_value(value: CoordinatorValue, version: int) -> bytes:
    """Return an encoded value, with its version before it.

    Raises:
        EncodeError: a field's value cannot be written in this version.
        UnsupportedVersion: the version is not declared.
    """
    body = value.encode(version)
    return version.to_bytes(PREFIX_SIZE, "big") + body
