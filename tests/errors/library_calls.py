"""A call for each error that the docstrings of the protocol library name: module -> (function, error, call)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kproto import output_file, registry
from kproto.client_connection import ClientConnection
from kproto.declaration import TaggedField
from kproto.errors import (
    ContentTooLarge,
    CorruptBatch,
    DecodeError,
    EncodeError,
    FrameTooLarge,
    MissingPackage,
    TooManyElements,
    UnsupportedVersion,
)
from kproto.framing import FrameReader
from kproto.headers import joined_response_frame, read_request_header, read_response, request_frame, response_frame
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.records import (
    batches,
    compression,
    consumer_group_records,
    consumer_protocol,
    control,
    coordinator,
    lz4_frame,
    message_set,
    offset_records,
    offsets_topic,
    record,
    record_batch,
    segment_files,
    share_group_state,
    transaction_state,
    varint,
)
from kproto.records.compression import Compression
from kproto.records.record import Record, RecordHeader

if TYPE_CHECKING:
    from collections.abc import Callable

GZIP_OF_TWO = compression.compress(Compression.GZIP, b"12")
RECORD = Record(b"k", b"v", timestamp=1)
BATCH = record_batch.build_record_batch([RECORD])
COMPRESSED = record_batch.build_record_batch([RECORD], compression=Compression.ZSTD)
WITH_HEADER = record.encode_records([RECORD._replace(headers=(record.RecordHeader("h", b""),))])
MESSAGE_SET = message_set.build_message_set([RECORD], magic=1)
MANY_TAGS = bytes.fromhex("000c 0004 00000001 ffff e907") + 1001 * b"\0\0"
"""A header of Heartbeat v4 with 1,001 tagged fields."""
FUTURE_MAGIC = BATCH[:16] + b"\7" + BATCH[17:]


def corrupt(data: bytes) -> bytes:
    """Return data whose last byte differs, so that its checksum does not match."""
    return data[:-1] + bytes([data[-1] ^ 1])


def without_packages(call: Callable[[], object]) -> Callable[[], object]:
    """Return a call that runs as if no compression package was installed."""

    def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "cramjam", None)
            call()

    return run


def wrapper(inner: bytes, attributes: int) -> message_set.LegacyBatch:
    """Return the compressed message set of these inner messages."""
    message = message_set.LegacyMessage(
        offset=0, message_size=0, crc=0, magic=1, attributes=attributes, timestamp=1, key=None, value=inner
    )
    return message_set.LegacyBatch(message, 0)


def received(data: bytes) -> list[object]:
    return list(ClientConnection("c").receive(data))


def frames(data: bytes) -> list[bytes]:
    reader = FrameReader()
    reader.feed(data)
    return list(reader.frames())


def damaged_member() -> object:
    """Return the classic metadata of a member whose tagged field is neither null nor a struct."""
    member = consumer_group_records.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="h",
        subscribed_topic_names=(),
        subscribed_topic_regex=None,
        server_assignor=None,
    )
    field = TaggedField(consumer_group_records.CLASSIC_MEMBER_METADATA, b"\x07")
    return member.replace(unknown_tagged_fields=(field,)).classic_member_metadata


NEGATIVE_SIZE = b"\xff" * 4
OFFSET_KEY = offset_records.OffsetCommitKey(group="g", topic="t", partition=0)
SUBSCRIPTION = consumer_protocol.ConsumerProtocolSubscription(topics=(), user_data=None)
MEMBER = consumer_group_records.ConsumerGroupMetadataValue(epoch=1)
TRANSACTION_KEY = coordinator.encode_key(transaction_state.TransactionLogKey(transactional_id="t"))
TOO_LARGE = 2**70
NO_FOLDER = "/no/such/folder/file"


def written(path: str) -> None:
    with output_file.completed(path) as partial:
        Path(partial).write_text("")


LIBRARY_CALLS: dict[str, tuple[tuple[str, type[BaseException], Callable[[], object]], ...]] = {
    "kproto.client_connection": (
        ("ClientConnection.send", EncodeError, lambda: ClientConnection("c" * 40_000).send(ListGroupsRequest(), 0)),
        ("ClientConnection.send", UnsupportedVersion, lambda: ClientConnection("c").send(ListGroupsRequest(), 99)),
        ("ClientConnection.receive", DecodeError, lambda: received(response_frame(1, 0, b""))),
        ("ClientConnection.receive", FrameTooLarge, lambda: received(NEGATIVE_SIZE)),
    ),
    "kproto.framing": (("FrameReader.frames", FrameTooLarge, lambda: frames(NEGATIVE_SIZE)),),
    "kproto.headers": (
        ("read_request_header", DecodeError, lambda: read_request_header(b"\0")),
        ("read_request_header", TooManyElements, lambda: read_request_header(MANY_TAGS)),
        ("response_frame", EncodeError, lambda: response_frame(TOO_LARGE, 0, b"")),
        ("joined_response_frame", EncodeError, lambda: joined_response_frame(TOO_LARGE, 0, [])),
        ("request_frame", EncodeError, lambda: request_frame(ListGroupsRequest(), 0, correlation_id=TOO_LARGE)),
        ("request_frame", UnsupportedVersion, lambda: request_frame(ListGroupsRequest(), 99, correlation_id=0)),
        ("read_response", DecodeError, lambda: read_response(b"\0" * 4, 16, 0)),
        ("read_response", UnsupportedVersion, lambda: read_response(b"\0" * 5, 16, 99)),
    ),
    "kproto.output_file": (
        ("check_writable", OSError, lambda: output_file.check_writable(NO_FOLDER)),
        ("write", OSError, lambda: output_file.write(NO_FOLDER, "")),
        ("opened_private", OSError, lambda: output_file.opened_private(NO_FOLDER, os.O_WRONLY)),
        ("completed", OSError, lambda: written(NO_FOLDER)),
    ),
    "kproto.message": (
        ("Message.encode", EncodeError, lambda: OFFSET_KEY.replace(partition=TOO_LARGE).encode(0)),
        ("Message.encode", UnsupportedVersion, lambda: ListGroupsRequest().encode(99)),
        ("Message.decode", DecodeError, lambda: ListGroupsRequest.decode(b"\0", 0)),
        ("Message.decode", UnsupportedVersion, lambda: ListGroupsRequest.decode(b"", 99)),
    ),
    "kproto.registry": (
        ("request_class", UnsupportedVersion, lambda: registry.request_class(999)),
        ("response_class", UnsupportedVersion, lambda: registry.response_class(999)),
        ("versions", UnsupportedVersion, lambda: registry.versions(999)),
        ("codec", UnsupportedVersion, lambda: registry.codec(16, 99)),
        ("interpreted", UnsupportedVersion, lambda: registry.interpreted(16, 99)),
        ("header_versions", UnsupportedVersion, lambda: registry.header_versions(999, 0)),
    ),
    "kproto.records.batches": (
        ("batch_end", DecodeError, lambda: batches.batch_end(bytes(61))),
        ("read_batch", CorruptBatch, lambda: batches.read_batch(corrupt(BATCH))),
        ("read_batch", DecodeError, lambda: batches.read_batch(FUTURE_MAGIC)),
        ("read_batches", CorruptBatch, lambda: list(batches.read_batches(corrupt(BATCH)))),
        ("read_batches", DecodeError, lambda: list(batches.read_batches(FUTURE_MAGIC))),
        ("read_records", CorruptBatch, lambda: list(batches.read_records(corrupt(BATCH)))),
        ("read_records", DecodeError, lambda: list(batches.read_records(FUTURE_MAGIC))),
        ("read_records", MissingPackage, without_packages(lambda: list(batches.read_records(COMPRESSED)))),
    ),
    "kproto.records.compression": (
        ("compression_of", DecodeError, lambda: compression.compression_of(7, "a", 0)),
        ("compress", MissingPackage, without_packages(lambda: compression.compress(Compression.ZSTD, b""))),
        ("decompress", DecodeError, lambda: compression.decompress(Compression.GZIP, b"\0")),
        ("decompress", ContentTooLarge, lambda: compression.decompress(Compression.GZIP, GZIP_OF_TWO, limit=1)),
        ("decompress", MissingPackage, without_packages(lambda: compression.decompress(Compression.ZSTD, b""))),
    ),
    "kproto.records.lz4_frame": (
        ("readable_frame", DecodeError, lambda: lz4_frame.readable_frame(b"", magic=2, blocks_max=1)),
    ),
    "kproto.records.consumer_group_records": (
        ("ConsumerGroupMemberMetadataValue.classic_member_metadata", DecodeError, damaged_member),
    ),
    "kproto.records.consumer_protocol": (
        ("read_subscription", DecodeError, lambda: consumer_protocol.read_subscription(b"")),
        ("read_assignment", DecodeError, lambda: consumer_protocol.read_assignment(b"")),
        (
            "encode_member_data",
            EncodeError,
            lambda: consumer_protocol.encode_member_data(SUBSCRIPTION.replace(topics=("t" * 40_000,)), 0),
        ),
        ("encode_member_data", UnsupportedVersion, lambda: consumer_protocol.encode_member_data(SUBSCRIPTION, 99)),
    ),
    "kproto.records.control": (
        ("control_type", DecodeError, lambda: control.control_type(None)),
        ("read_end_marker", DecodeError, lambda: control.read_end_marker(RECORD)),
    ),
    "kproto.records.coordinator": (
        ("read_record", DecodeError, lambda: coordinator.read_record({}, None, None)),
        ("value_version", DecodeError, lambda: coordinator.value_version(type(MEMBER), b"")),
        ("encode_key", EncodeError, lambda: coordinator.encode_key(OFFSET_KEY.replace(partition=TOO_LARGE))),
        ("encode_value", EncodeError, lambda: coordinator.encode_value(MEMBER.replace(epoch=TOO_LARGE), 0)),
        ("encode_value", UnsupportedVersion, lambda: coordinator.encode_value(MEMBER, 99)),
    ),
    "kproto.records.message_set": (
        (
            "LegacyBatch.records",
            CorruptBatch,
            lambda: wrapper(compression.compress(Compression.GZIP, corrupt(MESSAGE_SET)), Compression.GZIP).records(),
        ),
        ("LegacyBatch.records", DecodeError, lambda: wrapper(b"\0", Compression.GZIP).records()),
        ("LegacyBatch.content", DecodeError, lambda: wrapper(b"\0", Compression.GZIP).content(100)),
        ("LegacyBatch.content", MissingPackage, without_packages(lambda: wrapper(b"\0", Compression.LZ4).content(100))),
        ("LegacyBatch.records_of", CorruptBatch, lambda: wrapper(b"", 1).records_of(corrupt(MESSAGE_SET))),
        ("LegacyBatch.records_of", DecodeError, lambda: wrapper(b"", 1).records_of(bytes(26))),
        ("LegacyBatch.records_of", TooManyElements, lambda: wrapper(b"", 1).records_of(MESSAGE_SET, count_max=0)),
        (
            "LegacyBatch.records",
            TooManyElements,
            lambda: wrapper(compression.compress(Compression.GZIP, MESSAGE_SET), Compression.GZIP).records(count_max=0),
        ),
        ("LegacyBatch.records", MissingPackage, without_packages(lambda: wrapper(b"\0", Compression.LZ4).records())),
        ("read_legacy_batch", CorruptBatch, lambda: message_set.read_legacy_batch(corrupt(MESSAGE_SET))),
        ("read_legacy_batch", DecodeError, lambda: message_set.read_legacy_batch(BATCH)),
        (
            "seal_legacy",
            EncodeError,
            lambda: message_set.seal_legacy(wrapper(b"", 0).message.replace(offset=TOO_LARGE)),
        ),
        (
            "build_message_set",
            EncodeError,
            lambda: message_set.build_message_set([RECORD._replace(headers=(RecordHeader("h", None),))], magic=1),
        ),
        (
            "build_message_set",
            MissingPackage,
            without_packages(lambda: message_set.build_message_set([RECORD], magic=1, compression=Compression.LZ4)),
        ),
    ),
    "kproto.records.offsets_topic": (
        ("read_offsets_record", DecodeError, lambda: offsets_topic.read_offsets_record(None, None)),
    ),
    "kproto.records.record": (
        ("decode_records", DecodeError, lambda: record.decode_records(b"", 1)),
        ("decode_records", TooManyElements, lambda: record.decode_records(WITH_HEADER, 1, headers_max=0)),
        ("encode_records", EncodeError, lambda: record.encode_records([RECORD._replace(offset=TOO_LARGE)])),
    ),
    "kproto.records.record_batch": (
        ("read_header", DecodeError, lambda: record_batch.read_header(b"")),
        (
            "RecordBatch.records",
            DecodeError,
            lambda: record_batch.read_record_batch(BATCH)[0]._replace(payload=b"\0").records(),
        ),
        (
            "RecordBatch.records",
            TooManyElements,
            lambda: record_batch.read_record_batch(BATCH)[0]._replace(payload=WITH_HEADER).records(headers_max=0),
        ),
        (
            "RecordBatch.records",
            MissingPackage,
            without_packages(lambda: record_batch.read_record_batch(COMPRESSED)[0].records()),
        ),
        ("RecordBatch.records_of", DecodeError, lambda: record_batch.read_record_batch(BATCH)[0].records_of(b"\0")),
        (
            "RecordBatch.records_of",
            TooManyElements,
            lambda: record_batch.read_record_batch(BATCH)[0].records_of(WITH_HEADER, headers_max=0),
        ),
        (
            "RecordBatch.content",
            DecodeError,
            lambda: record_batch.read_record_batch(COMPRESSED)[0]._replace(payload=b"no zstd").content(100),
        ),
        (
            "RecordBatch.content",
            MissingPackage,
            without_packages(lambda: record_batch.read_record_batch(COMPRESSED)[0].content(100)),
        ),
        ("RecordBatch.pieces", DecodeError, lambda: list(record_batch.read_record_batch(BATCH)[0].pieces(b"", 1, 1))),
        ("read_record_batch", CorruptBatch, lambda: record_batch.read_record_batch(corrupt(BATCH))),
        ("read_record_batch", DecodeError, lambda: record_batch.read_record_batch(FUTURE_MAGIC)),
        ("read_checked_header", CorruptBatch, lambda: record_batch.read_checked_header(corrupt(BATCH))),
        ("read_checked_header", DecodeError, lambda: record_batch.read_checked_header(FUTURE_MAGIC)),
        (
            "seal",
            EncodeError,
            lambda: record_batch.seal(record_batch.read_header(BATCH).replace(base_offset=TOO_LARGE), b""),
        ),
        ("build_record_batch", EncodeError, lambda: record_batch.build_record_batch([RECORD], base_offset=1)),
        (
            "build_record_batch",
            MissingPackage,
            without_packages(lambda: record_batch.build_record_batch([RECORD], compression=Compression.ZSTD)),
        ),
    ),
    "kproto.records.segment_files": (
        ("read_leader_epochs", DecodeError, lambda: segment_files.read_leader_epochs("1")),
        ("offsets_in_checkpoint", DecodeError, lambda: segment_files.offsets_in_checkpoint("1", "f")),
        ("partitions_in_checkpoint", DecodeError, lambda: segment_files.partitions_in_checkpoint("1", "t")),
    ),
    "kproto.records.share_group_state": (
        ("read_share_state_record", DecodeError, lambda: share_group_state.read_share_state_record(None, None)),
    ),
    "kproto.records.transaction_state": (
        (
            "read_transaction_record",
            DecodeError,
            lambda: transaction_state.read_transaction_record(TRANSACTION_KEY, b""),
        ),
    ),
    "kproto.records.varint": (
        ("read_varint", DecodeError, lambda: varint.read_varint(b"", 0)),
        ("read_varlong", DecodeError, lambda: varint.read_varlong(b"", 0)),
        ("varint", EncodeError, lambda: varint.varint(TOO_LARGE)),
        ("varlong", EncodeError, lambda: varint.varlong(TOO_LARGE)),
    ),
}
