"""A request of any API in any version with one item in each of its arrays: made from the declaration."""

from __future__ import annotations

from typing import Any

from kproto import registry
from kproto.declaration import Field, Struct, WireType, fields_of
from kproto.message import Request

PLAIN: dict[str, Any] = {
    "bool": True,
    "int8": 1,
    "int16": 1,
    "uint16": 1,
    "int32": 1,
    "uint32": 1,
    "int64": 1,
    "float64": 1.0,
    "string": "x",
    "bytes": b"x",
    "records": None,
    "uuid": bytes(15) + b"\x07",
}


def sample_request(api_key: int, api_version: int) -> Request:
    request: Request = _sample(registry.request_class(api_key), api_version)
    return request


def _sample(cls: type[Struct], api_version: int) -> Any:
    returned = {
        field.name: _value(field, field.type, api_version)
        for field in fields_of(cls)
        if field.versions.covers(api_version)
    }
    return cls(**returned)


def _value(field: Field, wire_type: WireType, api_version: int) -> Any:
    if wire_type.element is not None:
        return (_value(field, wire_type.element, api_version),)
    if wire_type.struct is not None:
        return _sample(wire_type.struct, api_version)
    return PLAIN[wire_type.kind]
