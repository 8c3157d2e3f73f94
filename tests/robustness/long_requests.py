"""Requests with one long array, for every array of every API: the requests that cost a broker most for their size."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from kproto import registry
from kproto.declaration import Field, Struct, WireType, fields_of
from kproto.message import Request
from kproto.messages import APIS
from tests.codec.strategies import made


class Content(StrEnum):
    """What the elements of the long array name."""

    EXISTING = "existing"
    """Topics, partitions and groups that exist, each once."""
    MISSING = "missing"
    """Distinct ones that do not exist."""
    REPEATED = "repeated"
    """One that exists, again and again."""
    EMPTY = "empty"
    """The smallest elements that there are."""


FIRST_MISSING = 10_000_000
"""Index of elements that do not exist."""

ACCEPTED: dict[str, Any] = {
    "acks": 1,
    "timeout_ms": 1000,
    "timestamp": -1,
    "replica_id": -1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 20,
    "max_num_offsets": 1,
    "session_epoch": -1,
    "session_id": 0,
    "current_leader_epoch": -1,
    "last_fetched_epoch": -1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "member_epoch": -1,
    "retention_time_ms": -1,
    "commit_timestamp": -1,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 1_000,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "resource_type": 2,
    "key_type": 0,
    "config_operation": 0,
    "leader_epoch": 0,
    "broker_ids": 1,
    "response_partition_limit": 2_000,
    "election_type": 0,
    "transactional_id": None,
    "member_id": "",
    "group_instance_id": None,
    "protocol_type": "consumer",
    "configs.name": "retention.ms",
    "configs.value": "1000",
    "configuration_keys": "retention.ms",
    "records": None,
    "cursor": None,
    "metadata": b"",
    "topic_id": bytes(16),
}
"""Field -> a value that is accepted, where 0 and "" are not; for fields that are not of the long array."""


class LongArray(NamedTuple):
    """An array of a request in one version."""

    api_key: int
    version: int
    path: str
    """Names of fields, from the outermost array: ``topics.partitions``."""

    def __str__(self) -> str:
        return f"{APIS[self.api_key]} v{self.version} {self.path}"

    def request(self, count: int, content: Content) -> Request:
        """Return the request whose array has this many elements. All other arrays have one."""
        cls = registry.request_class(self.api_key)
        value: Request = Builder(self, count, content).struct(cls, "", 0)
        return value


def long_arrays(api_key: int, version: int) -> list[LongArray]:
    """Return the arrays of a request."""
    paths = _array_paths(registry.request_class(api_key), version, "")
    return [LongArray(api_key, version, path) for path in paths]


def _array_paths(cls: type[Struct], version: int, prefix: str) -> Iterator[str]:
    for field in fields_of(cls):
        if field.versions.covers(version):
            element = field.type.element
            if element is not None:
                yield prefix + field.name
            inner = field.type.struct if element is None else element.struct
            if inner is not None:
                yield from _array_paths(inner, version, f"{prefix}{field.name}.")


class Builder:
    def __init__(self, array: LongArray, count: int, content: Content) -> None:
        self.array = array
        self.count = count
        self.content = content

    def struct(self, cls: type[Struct], prefix: str, index: int) -> Any:
        return made(cls, (*(self._field(field, prefix, index) for field in fields_of(cls)), ()))

    def _field(self, field: Field, prefix: str, index: int) -> Any:
        if not field.versions.covers(self.array.version):
            return field.default
        path = prefix + field.name
        element = field.type.element
        if element is not None:
            if path == self.array.path:
                return tuple(self._value(element, path, self._named(number)) for number in range(self.count))
            is_above = self.array.path.startswith(f"{path}.")
            if self.content is Content.EMPTY and not is_above:
                return ()
            return (self._value(element, path, index),)
        if field.name in ACCEPTED and ACCEPTED[field.name] is None:
            return None if field.nullable_versions.covers(self.array.version) else field.default
        return self._value(field.type, path, index)

    def _named(self, number: int) -> int:
        match self.content:
            case Content.EXISTING:
                return number
            case Content.MISSING:
                return FIRST_MISSING + number
            case _:
                return 0

    def _value(self, kind: WireType, path: str, index: int) -> Any:
        if kind.struct is not None:
            return self.struct(kind.struct, f"{path}.", index)
        name = path.rpartition(".")[2]
        is_of_array = path.startswith(self.array.path)
        if self.content is Content.EMPTY and is_of_array and kind.kind in ("string", "bytes"):
            return "" if kind.kind == "string" else b""
        for known in (".".join(path.split(".")[-2:]), name):
            # In the long array itself, each element names another one.
            if known in ACCEPTED and not (path == self.array.path and kind.kind == "string"):
                return ACCEPTED[known]
        match kind.kind:
            case "string":
                return existing_name(index)
            case "bytes" | "records":
                return b""
            case "uuid":
                return index.to_bytes(16, "big")
            case "bool":
                return False
            case "float64":
                return 0.0
            case "int8":
                return index % 128
            case "int16" | "uint16":
                return 0
            case _:
                return index if "partition" in name or is_of_array else 0


def existing_name(index: int) -> str:
    """Return the name of a topic and group; those with a number below `FIRST_MISSING` exist if they were created."""
    return f"x.{index}"  # a name that others may collide with
