"""kafka-python decodes kproto's bytes and kproto decodes kafka-python's: every message and version that both know.

kafka-python has retired versions that kio lacks. It builds its objects from kproto's bytes, and the test compares them
field by field; nearly all fields have Kafka's names.
"""

from __future__ import annotations

import importlib
import uuid
from typing import Any

import pytest

from kproto.declaration import Field, Struct, fields_of
from kproto.message import Message
from kproto.message_codec import message_codec
from kproto.messages.k18_api_versions import ApiVersionsResponse
from tests.codec.distinct_values import values
from tests.codec.strategies import LAYOUTS

PACKAGES = ("admin", "consumer", "metadata", "producer", "sasl")
MODULES = [importlib.import_module(f"kafka.protocol.{package}") for package in PACKAGES]


def kafka_python_class(cls: type[Message]) -> Any:
    """Return kafka-python's class of this message, or None."""
    return next((getattr(module, cls.__name__) for module in MODULES if hasattr(module, cls.__name__)), None)


def known() -> list[tuple[type[Message], int, Any]]:
    found = []
    for cls, version in LAYOUTS:
        peer = kafka_python_class(cls)
        if peer is not None and version <= peer.max_version:
            found.append((cls, version, peer))
    return found


KNOWN = known()


RENAMED = {
    "cluster_authorized_operations": "authorized_operations",
    "topic_authorized_operations": "authorized_operations",
    "generation_id_or_member_epoch": "generation_id",
}
"""Field in kproto -> field in kafka-python, if the names differ."""


def field_of(theirs: Any, name: str) -> Any:
    return getattr(theirs, name if name in theirs.fields else RENAMED[name])


def wire_value(value: Any) -> Any:
    """Return a leaf of kafka-python's object as its value on the wire."""
    match value:
        case uuid.UUID():
            return value.bytes
        case memoryview():
            return bytes(value)
        case set():
            return sum(1 << bit for bit in value)
    return value


def same(ours: Any, theirs: Any, version: int, path: str) -> None:
    if isinstance(ours, Struct):
        for field in fields_of(type(ours)):
            if field.versions.covers(version):
                same_field(field, getattr(ours, field.name), field_of(theirs, field.name), version, path)
    elif isinstance(ours, tuple):
        assert len(ours) == len(theirs), path
        for our, their in zip(ours, theirs, strict=True):
            same(our, their, version, path)
    else:
        assert ours == wire_value(theirs), path


def same_field(field: Field, ours: Any, theirs: Any, version: int, path: str) -> None:
    """Compare a field. A tagged field that was not sent may be None in kafka-python, and has its default in kproto."""
    if theirs is not None or field.tag is None or ours != field.default:
        same(ours, theirs, version, f"{path}.{field.name}")


@pytest.mark.parametrize(
    ("cls", "version", "peer"), KNOWN, ids=[f"{cls.__name__} v{version}" for cls, version, _ in KNOWN]
)
def test_kafka_python_agrees(cls: type[Message], version: int, peer: Any) -> None:
    codec = message_codec(cls, version)
    for value in values(cls, version):
        if cls is ApiVersionsResponse:  # kafka-python expects the layout of v0 after an error
            value = value.replace(error_code=0)
        body = codec.encode(value)
        message = peer.decode(body, version=version)
        same(value, message, version, cls.__name__)
        message._header = None  # kafka-python encodes a decoded message only without a header
        again = message.encode()
        assert again == body
        assert codec.decode(again, 0) == (value, len(body))


def test_kafka_python_knows_versions_that_kio_lacks() -> None:
    layouts = {(cls.__name__, version) for cls, version, _ in KNOWN}
    assert {("OffsetCommitRequest", version) for version in range(11)} <= layouts
    assert {("FetchResponse", 0), ("ProduceRequest", 0), ("ListOffsetsResponse", 0)} <= layouts
