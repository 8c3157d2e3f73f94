"""What members of a group with protocol type "consumer" tell each other: subscriptions and assignments.

Wire:
    int16 version, then the fields. These stand in JoinGroup's and SyncGroup's opaque bytes; the broker passes them on,
    and reads them only to tell which topics a group uses.

Source:
    Kafka's own reader takes a version above its newest for the newest, and ignores what follows the fields: a newer
    member adds fields at the end. So does this one.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from kproto.declaration import Array, Int32, NullableBytes, NullableString, String, Struct, ignorable, since
from kproto.errors import DecodeError
from kproto.message import Message
from kproto.message_codec import message_codec

PROTOCOL_TYPE = "consumer"
PREFIX_SIZE = 2
"""Octets of the version before the fields."""


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
        DecodeError: cut off, a negative version, or not this layout.
    """
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> tuple[int, ConsumerProtocolAssignment]:
    """Return ``(version as written, assignment)``.

    Raises:
        DecodeError: cut off, a negative version, or not this layout.
    """
    return _read(ConsumerProtocolAssignment, data)


def _read(cls: type[M], data: bytes) -> tuple[int, M]:
    if len(data) < PREFIX_SIZE:
        raise DecodeError(cls.__name__, 0, "cut off before its version")
    version = int.from_bytes(data[:PREFIX_SIZE], "big", signed=True)
    first, last = cls._versions
    if version < first:
        raise DecodeError(cls.__name__, 0, f"version {version}")
    decoded: tuple[Any, int] = message_codec(cls, min(version, last)).decode(data, PREFIX_SIZE)
    return version, decoded[0]


def encode_member_data(value: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """Return a subscription or an assignment with its version before it.

    Raises:
        EncodeError: a field's value does not fit.
        UnsupportedVersion: the version is not declared.
    """
    body = value.encode(version)
    return version.to_bytes(PREFIX_SIZE, "big") + body
