"""The subscriptions and assignments that members of a group with protocol type "consumer" send each other.

Wire:
    int16 version, then the fields. They are the opaque bytes of JoinGroup and SyncGroup; the broker forwards them, and
    reads them only to find out which topics a group uses.

Source:
    As Kafka's own reader, this one reads a version above its newest as the newest, and ignores bytes after the fields:
    newer members add fields at the end.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from kproto.declaration import Array, Int32, NullableBytes, NullableString, String, Struct, ignorable, since
from kproto.errors import DecodeError
from kproto.message import Message
from kproto.message_codec import message_codec

PROTOCOL_TYPE = "consumer"
PREFIX_SIZE = 2
"""Bytes of the version before the fields."""


class TopicPartition(Struct):
    topic: String
    partitions: Array[Int32]


class ConsumerProtocolSubscription(Message, versions=(0, 3)):
    """v1: + owned_partitions
    v2: + generation_id
    v3: + rack_id?
    """

    topics: Array[String]
    user_data: NullableBytes = None
    owned_partitions: Annotated[Array[TopicPartition], since(1), ignorable] = ()
    generation_id: Annotated[Int32, since(2), ignorable] = -1
    rack_id: Annotated[NullableString, since(3), ignorable] = None


class ConsumerProtocolAssignment(Message, versions=(0, 3)):
    """v1-v3: layout of v0"""

    assigned_partitions: Array[TopicPartition]
    user_data: NullableBytes = None


M = TypeVar("M", bound=Message)


def read_subscription(data: bytes) -> tuple[int, ConsumerProtocolSubscription]:
    """Return ``(version as written, subscription)``.

    Raises:
        DecodeError: the data is truncated, has a negative version, or does not have this layout.
    """
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> tuple[int, ConsumerProtocolAssignment]:
    """Return ``(version as written, assignment)``.

    Raises:
        DecodeError: the data is truncated, has a negative version, or does not have this layout.
    """
    return _read(ConsumerProtocolAssignment, data)


def _read(cls: type[M], data: bytes) -> tuple[int, M]:
    if len(data) < PREFIX_SIZE:
        raise DecodeError(cls.__name__, 0, "truncated before its version")
    version = int.from_bytes(data[:PREFIX_SIZE], "big", signed=True)
    first, last = cls._versions
    if version < first:
        raise DecodeError(cls.__name__, 0, f"version {version}")
    decoded: tuple[Any, int] = message_codec(cls, min(version, last)).decode(data, PREFIX_SIZE)
    return version, decoded[0]


def encode_member_data(value: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """Return an encoded subscription or assignment, with its version before it.

    Raises:
        EncodeError: a field's value does not fit.
        UnsupportedVersion: the version is not declared.
    """
    body = value.encode(version)
    return version.to_bytes(PREFIX_SIZE, "big") + body
