"""Every exception in a ``Raises:`` section of the library is raised by a call.

Method. The docstrings of all public functions and methods below `kproto` are parsed, except for the packages that have
tests of their own. `CASES` has one call for each documented exception; a missing or superfluous case fails.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kproto
from kproto import registry
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
from kproto.generate import Module
from kproto.headers import (
    RequestHeader,
    joined_response_frame,
    read_request_header,
    read_response,
    request_frame,
    response_frame,
)
from kproto.interpret import InterpretedCodec, construct_of
from kproto.message_codec import decode_exactly, message_codec
from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.offset_commit_v4 import decode_v4
from kproto.properties import PropertiesError, read_properties
from kproto.records import (
    batches,
    compression,
    consumer_protocol,
    control,
    coordinator,
    lz4_frame,
    message_set,
    offsets_topic,
    record,
    record_batch,
    segment_files,
    share_group_state,
    transaction_state,
    varint,
)
from kproto.records.compression import Compression
from kproto.records.consumer_group_records import ConsumerGroupMemberMetadataValue
from kproto.records.control import ControlType
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.record import Record, RecordHeader
from tests.records.made import COMMIT_BATCH

OTHER_PACKAGES = ("kproto.output_file", "kproto.arrow", "kproto.client.", "kproto.logs", "kproto.spark", "kproto._")

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
WRONG: Any = HEARTBEAT.replace(generation_id="one")
SUBSCRIPTION = consumer_protocol.ConsumerProtocolSubscription(topics=("t",))
BAD_CRC = COMMIT_BATCH[:-1] + b"\1"
BAD_MAGIC = COMMIT_BATCH[:16] + b"\3" + COMMIT_BATCH[17:]
LEGACY = message_set.build_message_set([Record(b"k", b"v")], magic=0)
WITH_HEADER = record.encode_records([Record(b"k", b"v", (RecordHeader("h", b""),))])
KEY = OffsetCommitKey(group="g", topic="t", partition=0)
VALUE = OffsetCommitValue(offset=1, metadata="", commit_timestamp=1)
MEMBER = ConsumerGroupMemberMetadataValue(
    instance_id=None,
    rack_id=None,
    client_id="c",
    client_host="/127.0.0.1",
    subscribed_topic_names=(),
    subscribed_topic_regex=None,
    server_assignor=None,
).replace(unknown_tagged_fields=(TaggedField(0, b"\2"),))
GZIP = record_batch.build_record_batch([Record(None, b"v")], compression=Compression.GZIP)
ZSTD = record_batch.build_record_batch([Record(None, b"v")], compression=Compression.ZSTD)
LZ4_SET = message_set.build_message_set([Record(None, b"v")], magic=1, compression=Compression.LZ4)


def wrapper_of(content: bytes) -> message_set.LegacyBatch:
    """Return a gzip wrapper of magic 0 around a content."""
    data = message_set.build_message_set([Record(None, b"v")], magic=0, compression=Compression.GZIP)
    batch = message_set.read_legacy_batch(data)[0]
    value = compression.compress(Compression.GZIP, content, magic=0)
    return batch._replace(message=batch.message.replace(value=value))


def encoded_header() -> bytes:
    """Return the header of a request in a flexible version, up to its tagged fields."""
    return RequestHeader(request_api_key=12, request_api_version=4, correlation_id=1, client_id="").encode(2)[:-1]


Call = Callable[[], Any]
CASES: dict[tuple[str, type[Exception]], Call] = {
    ("client_connection.ClientConnection.send", EncodeError): lambda: ClientConnection().send(WRONG, 0),
    ("client_connection.ClientConnection.send", UnsupportedVersion): lambda: ClientConnection().send(HEARTBEAT, 77),
    ("client_connection.ClientConnection.receive", DecodeError): lambda: list(ClientConnection().receive(bytes(4))),
    ("client_connection.ClientConnection.receive", FrameTooLarge): lambda: list(
        ClientConnection().receive(b"\xff" * 4)
    ),
    ("framing.FrameReader.frames", FrameTooLarge): lambda: list(fed(b"\xff" * 4).frames()),
    ("generate.module.Module.add", UnsupportedVersion): lambda: Module().add(HeartbeatRequest, 77),
    ("headers.read_request_header", DecodeError): lambda: read_request_header(b""),
    ("headers.read_request_header", TooManyElements): lambda: read_request_header(
        encoded_header() + b"\xe9\7" + 1001 * b"\0\0"
    ),
    ("headers.response_frame", EncodeError): lambda: response_frame(2**31, 0, b""),
    ("headers.joined_response_frame", EncodeError): lambda: joined_response_frame(2**31, 0, []),
    ("headers.request_frame", EncodeError): lambda: request_frame(WRONG, 0, correlation_id=1),
    ("headers.request_frame", UnsupportedVersion): lambda: request_frame(HEARTBEAT, 77, correlation_id=1),
    ("headers.read_response", DecodeError): lambda: read_response(bytes(4), 12, 0),
    ("headers.read_response", UnsupportedVersion): lambda: read_response(bytes(6), 12, 77),
    ("interpret.construct_of", UnsupportedVersion): lambda: construct_of(HeartbeatRequest, 77),
    ("interpret.InterpretedCodec.decode", DecodeError): lambda: InterpretedCodec(HeartbeatRequest, 0).decode(b""),
    ("interpret.InterpretedCodec.decode", TooManyElements): lambda: InterpretedCodec(DescribeGroupsRequest, 0).decode(
        b"\0\0\0\2" + bytes(4), 0, 1
    ),
    ("interpret.InterpretedCodec.encode", EncodeError): lambda: InterpretedCodec(HeartbeatRequest, 0).encode(WRONG),
    ("message.Message.encode", EncodeError): lambda: WRONG.encode(0),
    ("message.Message.encode", UnsupportedVersion): lambda: HEARTBEAT.encode(77),
    ("message.Message.decode", DecodeError): lambda: HeartbeatResponse.decode(bytes(3), 0),
    ("message.Message.decode", UnsupportedVersion): lambda: HeartbeatResponse.decode(bytes(2), 77),
    ("message_codec.message_codec", UnsupportedVersion): lambda: message_codec(HeartbeatRequest, 77),
    ("message_codec.decode_exactly", DecodeError): lambda: decode_exactly(HeartbeatResponse, bytes(3), 0),
    ("message_codec.decode_exactly", UnsupportedVersion): lambda: decode_exactly(HeartbeatResponse, bytes(2), 77),
    ("offset_commit_v4.decode_v4", DecodeError): lambda: decode_v4(b"", 0),
    ("offset_commit_v4.decode_v4", TooManyElements): lambda: decode_v4(
        OffsetCommitRequest(group_id="", topics=2 * (OffsetCommitRequestTopic(name="t", partitions=()),)).encode(4),
        position=0,
        elements_max=1,
    ),
    ("properties.read_properties", PropertiesError): lambda: read_properties("a=\\u12"),
    ("records.batches.batch_end", DecodeError): lambda: batches.batch_end(bytes(20)),
    ("records.batches.read_batch", CorruptBatch): lambda: batches.read_batch(BAD_CRC),
    ("records.batches.read_batch", DecodeError): lambda: batches.read_batch(BAD_MAGIC),
    ("records.batches.read_batches", CorruptBatch): lambda: list(batches.read_batches(BAD_CRC)),
    ("records.batches.read_batches", DecodeError): lambda: list(batches.read_batches(BAD_MAGIC)),
    ("records.batches.read_records", CorruptBatch): lambda: list(batches.read_records(BAD_CRC)),
    ("records.batches.read_records", DecodeError): lambda: list(batches.read_records(BAD_MAGIC)),
    ("records.batches.read_records", MissingPackage): lambda: list(batches.read_records(ZSTD)),
    ("records.compression.compression_of", DecodeError): lambda: compression.compression_of(7, "attributes", 0),
    ("records.compression.compress", MissingPackage): lambda: compression.compress(Compression.ZSTD, b""),
    ("records.compression.decompress", DecodeError): lambda: compression.decompress(Compression.GZIP, b"no gzip"),
    ("records.compression.decompress", ContentTooLarge): lambda: compression.decompress(
        Compression.GZIP, compression.compress(Compression.GZIP, b"12"), limit=1
    ),
    ("records.compression.decompress", MissingPackage): lambda: compression.decompress(Compression.ZSTD, b""),
    ("records.lz4_frame.readable_frame", DecodeError): lambda: lz4_frame.readable_frame(b"", magic=2, blocks_max=1),
    ("records.consumer_protocol.read_subscription", DecodeError): lambda: consumer_protocol.read_subscription(b""),
    ("records.consumer_protocol.read_assignment", DecodeError): lambda: consumer_protocol.read_assignment(b""),
    ("records.consumer_protocol.encode_member_data", EncodeError): lambda: consumer_protocol.encode_member_data(
        SUBSCRIPTION.replace(user_data=1), 0
    ),
    ("records.consumer_protocol.encode_member_data", UnsupportedVersion): lambda: (
        consumer_protocol.encode_member_data(SUBSCRIPTION, 77)
    ),
    ("records.control.control_type", DecodeError): lambda: control.control_type(None),
    ("records.control.read_end_marker", DecodeError): lambda: control.read_end_marker(
        Record(b"\0\0" + ControlType.LEADER_CHANGE.to_bytes(2, "big"), None)
    ),
    ("records.coordinator.read_record", DecodeError): lambda: coordinator.read_record({}, None, None),
    ("records.coordinator.value_version", DecodeError): lambda: coordinator.value_version(OffsetCommitValue, b""),
    ("records.coordinator.encode_key", EncodeError): lambda: coordinator.encode_key(KEY.replace(group=1)),
    ("records.coordinator.encode_value", EncodeError): lambda: coordinator.encode_value(VALUE.replace(offset=""), 0),
    ("records.coordinator.encode_value", UnsupportedVersion): lambda: coordinator.encode_value(VALUE, 77),
    ("records.message_set.LegacyBatch.records", CorruptBatch): lambda: wrapper_of(LEGACY[:-1] + b"!").records(),
    ("records.message_set.LegacyBatch.records", DecodeError): lambda: wrapper_of(bytes(26)).records(),
    ("records.message_set.LegacyBatch.records", MissingPackage): lambda: (
        message_set.read_legacy_batch(LZ4_SET)[0].records()
    ),
    ("records.message_set.LegacyBatch.records", TooManyElements): lambda: wrapper_of(LEGACY + LEGACY).records(
        count_max=1
    ),
    ("records.message_set.LegacyBatch.content", DecodeError): lambda: (
        wrapper_of(b"")._replace(message=wrapper_of(b"").message.replace(value=b"no gzip")).content(100)
    ),
    ("records.message_set.LegacyBatch.content", MissingPackage): lambda: (
        message_set.read_legacy_batch(LZ4_SET)[0].content(100)
    ),
    ("records.message_set.LegacyBatch.records_of", CorruptBatch): lambda: (
        wrapper_of(b"").records_of(LEGACY[:-1] + b"!")
    ),
    ("records.message_set.LegacyBatch.records_of", DecodeError): lambda: wrapper_of(b"").records_of(bytes(26)),
    ("records.message_set.LegacyBatch.records_of", TooManyElements): lambda: (
        wrapper_of(b"").records_of(LEGACY + LEGACY, count_max=1)
    ),
    ("records.message_set.read_legacy_batch", CorruptBatch): lambda: message_set.read_legacy_batch(LEGACY[:-1] + b"!"),
    ("records.message_set.read_legacy_batch", DecodeError): lambda: message_set.read_legacy_batch(b""),
    ("records.message_set.seal_legacy", EncodeError): lambda: message_set.seal_legacy(
        message_set.read_legacy_batch(LEGACY)[0].message.replace(timestamp=5)
    ),
    ("records.message_set.build_message_set", EncodeError): lambda: message_set.build_message_set(
        [Record(None, None, (RecordHeader("h", None),))], magic=1
    ),
    ("records.message_set.build_message_set", MissingPackage): lambda: message_set.build_message_set(
        [Record(None, b"v")], magic=1, compression=Compression.LZ4
    ),
    ("records.offsets_topic.read_offsets_record", DecodeError): lambda: offsets_topic.read_offsets_record(None, None),
    ("records.record.decode_records", DecodeError): lambda: record.decode_records(b"", 1),
    ("records.record.decode_records", TooManyElements): lambda: record.decode_records(WITH_HEADER, 1, headers_max=0),
    ("records.record.encode_records", EncodeError): lambda: record.encode_records([Record(None, None, offset=2**40)]),
    ("records.record_batch.RecordBatch.records", DecodeError): lambda: (
        record_batch.read_record_batch(BAD_CRC, check_crc=False)[0].records()
    ),
    ("records.record_batch.RecordBatch.records", TooManyElements): lambda: (
        record_batch.read_record_batch(COMMIT_BATCH)[0]._replace(payload=WITH_HEADER).records(headers_max=0)
    ),
    ("records.record_batch.RecordBatch.records", MissingPackage): lambda: (
        record_batch.read_record_batch(ZSTD)[0].records()
    ),
    ("records.record_batch.RecordBatch.records_of", DecodeError): lambda: (
        record_batch.read_record_batch(COMMIT_BATCH)[0].records_of(b"")
    ),
    ("records.record_batch.RecordBatch.records_of", TooManyElements): lambda: (
        record_batch.read_record_batch(COMMIT_BATCH)[0].records_of(WITH_HEADER, headers_max=0)
    ),
    ("records.record_batch.RecordBatch.content", DecodeError): lambda: (
        record_batch.read_record_batch(GZIP)[0]._replace(payload=b"no gzip").content(100)
    ),
    ("records.record_batch.RecordBatch.content", MissingPackage): lambda: (
        record_batch.read_record_batch(ZSTD)[0].content(100)
    ),
    ("records.record_batch.RecordBatch.pieces", DecodeError): lambda: list(
        record_batch.read_record_batch(COMMIT_BATCH)[0].pieces(b"", 1, 1)
    ),
    ("records.record_batch.read_header", DecodeError): lambda: record_batch.read_header(b""),
    ("records.record_batch.read_record_batch", CorruptBatch): lambda: record_batch.read_record_batch(BAD_CRC),
    ("records.record_batch.read_record_batch", DecodeError): lambda: record_batch.read_record_batch(b""),
    ("records.record_batch.seal", EncodeError): lambda: record_batch.seal(
        record_batch.read_header(COMMIT_BATCH).replace(base_offset=2**63), b""
    ),
    ("records.record_batch.build_record_batch", EncodeError): lambda: record_batch.build_record_batch(
        [Record(None, None)], base_offset=1
    ),
    ("records.record_batch.build_record_batch", MissingPackage): lambda: record_batch.build_record_batch(
        [Record(None, b"v")], compression=Compression.ZSTD
    ),
    ("records.segment_files.read_leader_epochs", DecodeError): lambda: segment_files.read_leader_epochs("1"),
    ("records.segment_files.partitions_in_checkpoint", DecodeError): lambda: segment_files.partitions_in_checkpoint(
        "1", "t"
    ),
    ("records.segment_files.offsets_in_checkpoint", DecodeError): lambda: segment_files.offsets_in_checkpoint("1", "f"),
    ("records.share_group_state.read_share_state_record", DecodeError): lambda: (
        share_group_state.read_share_state_record(None, None)
    ),
    ("records.transaction_state.read_transaction_record", DecodeError): lambda: (
        transaction_state.read_transaction_record(None, None)
    ),
    ("records.varint.read_varint", DecodeError): lambda: varint.read_varint(b"", 0),
    ("records.varint.read_varlong", DecodeError): lambda: varint.read_varlong(b"", 0),
    ("records.varint.varint", EncodeError): lambda: varint.varint(2**31),
    ("records.varint.varlong", EncodeError): lambda: varint.varlong(2**63),
    ("records.consumer_group_records.ConsumerGroupMemberMetadataValue.classic_member_metadata", DecodeError): lambda: (
        MEMBER.classic_member_metadata
    ),
    ("registry.request_class", UnsupportedVersion): lambda: registry.request_class(9999),
    ("registry.response_class", UnsupportedVersion): lambda: registry.response_class(9999),
    ("registry.versions", UnsupportedVersion): lambda: registry.versions(9999),
    ("registry.codec", UnsupportedVersion): lambda: registry.codec(12, 77),
    ("registry.interpreted", UnsupportedVersion): lambda: registry.interpreted(12, 77),
    ("registry.header_versions", UnsupportedVersion): lambda: registry.header_versions(9999, 0),
}  # fmt: skip


def fed(data: bytes) -> FrameReader:
    reader = FrameReader()
    reader.feed(data)
    return reader


def documented() -> Iterator[tuple[str, str]]:
    """Yield (qualified name, exception) for each line of a ``Raises:`` section."""
    for found in pkgutil.walk_packages(kproto.__path__, "kproto."):
        if found.name.startswith(OTHER_PACKAGES) or found.name == "kproto.client":
            continue
        module = importlib.import_module(found.name)
        for name, member in vars(module).items():
            if getattr(member, "__module__", None) != module.__name__ or name.startswith("_"):
                continue
            members = {name: member}
            if inspect.isclass(member):
                members = {f"{name}.{inner}": value for inner, value in vars(member).items() if inner[0] != "_"}
            for qualified, value in members.items():
                text = inspect.getdoc(getattr(value, "__func__", value)) or ""
                section = re.search(r"^Raises:\n((?:    .*\n?)+)", text, re.M)
                for line in re.findall(r"^    (\w+):", section[1], re.M) if section else ():
                    yield f"{module.__name__.removeprefix('kproto.')}.{qualified}", line


def test_every_documented_exception_has_a_case() -> None:
    assert set(documented()) == {(name, error.__name__) for name, error in CASES}


@pytest.mark.parametrize(("name", "error"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_the_documented_exception_is_raised(name: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    if error is MissingPackage:
        monkeypatch.setattr("kproto.records.compression.PACKAGE", "a_package_that_does_not_exist")
    with pytest.raises(error) as caught:
        CASES[name, error]()
    assert type(caught.value) is error
