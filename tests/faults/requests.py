"""Requests of any API in any version, made by its declaration."""

from __future__ import annotations

from typing import Any

from kproto import registry
from kproto.declaration import fields_of
from kproto.message import Request

VALUES: dict[str, Any] = {"string": "orders", "uuid": bytes(range(16)), "bool": False, "bytes": b"", "records": b""}
NUMBERS = {
    "acks": 1, "timeout_ms": 100, "key_type": 0, "resource_type": 2, "resource_type_filter": 2, "operation": 3,
    "permission_type": 3, "resource_pattern_type": 3, "pattern_type_filter": 3,
}  # fmt: skip


def request_of(api_key: int, version: int) -> Request:
    """Return a request that names the topic, group, member and transactional id "orders", and partition 0."""
    request: Request = filled(registry.request_class(api_key), version)
    return request


def filled(cls: Any, version: int) -> Any:
    """Return a struct with one item in each array of the version, and with the least other values."""
    values: dict[str, Any] = {}
    for field in fields_of(cls):
        if field.versions.covers(version) or field.name not in vars(cls)["_defaults"]:
            values[field.name] = value_of(field.name, field.type, version)
    return cls(**values)


def value_of(name: str, kind: Any, version: int) -> Any:
    if kind.kind == "array":
        return (value_of(name, kind.element, version),)
    if kind.struct is not None:
        return filled(kind.struct, version)
    return VALUES.get(kind.kind, NUMBERS.get(name, 0))
