"""kio decodes kproto's bytes and kproto decodes kio's: every message and version that both know.

kio builds its entities from kproto's bytes, and the test compares them leaf by leaf. kio's fields have the order of the
wire and Kafka's names, except that times have no unit in their name.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import uuid
from typing import Any

import pytest
from kio.index import UnknownEntity, load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from kproto.declaration import Struct, fields_of
from kproto.message import Message, Request
from kproto.message_codec import message_codec
from tests.codec.distinct_values import values
from tests.codec.strategies import LAYOUTS
from tests.fixture_files import definitions


def kio_class(cls: type[Message], version: int) -> Any:
    """Return kio's class of this layout, or None."""
    load = load_request_schema if issubclass(cls, Request) else load_response_schema
    key = cls._api_key
    if key not in api_key_map:
        return None
    try:
        return load(key, version)
    except UnknownEntity:
        return None


NEWER_THAN_KIO = {
    ("ApiVersions", 5),
    ("TxnOffsetCommit", 6),
    ("DeleteGroups", 3),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupDescribe", 1),
    ("StreamsGroupTopologyDescriptionUpdate", 0),
    ("UnregisterController", 0),
}
"""Layouts of Kafka 4.3 and 4.4, which kio 0.6.5 lacks."""


def wire_value(value: Any, kind: str) -> Any:
    """Return a leaf of kio's entity as its value on the wire."""
    match value:
        case datetime.timedelta():
            return round(value.total_seconds() * 1000)
        case datetime.datetime():
            return round(value.timestamp() * 1000)
        case uuid.UUID():
            return value.bytes
        case bytes():
            return bytes(value)
        case None if kind == "uuid":
            return bytes(16)
    return value


def same(ours: Any, theirs: Any, version: int, path: str) -> None:
    if isinstance(ours, Struct):
        fields = [field for field in fields_of(type(ours)) if field.versions.covers(version)]
        names = [field.name for field in dataclasses.fields(theirs)]
        assert len(names) == len(fields), path
        for field, name in zip(fields, names, strict=True):
            assert field.name.replace("_", "").startswith(name.replace("_", "")), f"{path}.{field.name} is {name}"
            leaf = field.type.element or field.type
            compare(getattr(ours, field.name), getattr(theirs, name), version, f"{path}.{field.name}", leaf.kind)


def compare(ours: Any, theirs: Any, version: int, path: str, kind: str) -> None:
    if isinstance(ours, Struct):
        same(ours, theirs, version, path)
    elif isinstance(ours, tuple):
        assert len(ours) == len(theirs), path
        for our, their in zip(ours, theirs, strict=True):
            compare(our, their, version, path, kind)
    else:
        assert ours == wire_value(theirs, kind), path


@pytest.mark.parametrize("cls", dict.fromkeys(cls for cls, _ in LAYOUTS), ids=lambda cls: cls.__name__)
def test_kio_agrees_in_each_version_that_it_knows(cls: type[Message]) -> None:
    for _, version in [layout for layout in LAYOUTS if layout[0] is cls]:
        kios = kio_class(cls, version)
        if kios is None:
            continue  # the test below says which
        codec = message_codec(cls, version)
        for value in values(cls, version):
            body = codec.encode(value)
            entity, size = entity_reader(kios)(body, 0)
            assert size == len(body), version
            same(value, entity, version, f"{cls.__name__} v{version}")
            stream = io.BytesIO()
            entity_writer(kios)(stream, entity)
            assert stream.getvalue() == body, version
            assert codec.decode(stream.getvalue(), 0) == (value, len(body)), version


def test_kio_lacks_only_retired_and_newer_layouts() -> None:
    for cls, version in LAYOUTS:
        if kio_class(cls, version) is None:
            today = definitions("4.4.0").get(cls.__name__)
            retired = today is None or version not in today.valid_versions
            api = cls.__name__.removesuffix("Request").removesuffix("Response")
            assert retired or (api, version) in NEWER_THAN_KIO, f"{cls.__name__} v{version}"
