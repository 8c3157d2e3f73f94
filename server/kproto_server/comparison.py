"""Bring responses into a form that can be compared with those of another broker: what varies by nature is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.declaration import Struct, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

VARIES = frozenset(
    [
        "throttle_time_ms",
        "node_id",
        "host",
        "port",
        "rack",
        "cluster_id",
        "controller_id",
        "topic_id",
        "leader_id",
        "replica_nodes",
        "isr_nodes",
        "leader_epoch",
        "current_leader",
        "error_message",
        "supported_features",
        "finalized_features",
        "finalized_features_epoch",
        "zk_migration_ready",
        "session_id",
        "node_endpoints",
        "brokers",
    ]
)
"""Fields that vary from cluster to cluster, or with the wording of a release."""
VARIES_BY_RUN = VARIES | {
    "member_id",
    "leader",
    "generation_id",
    "member_epoch",
    "member_ids",
    "producer_id",
    "producer_epoch",
    "offline_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "log_append_time_ms",
    "errors_by_replica",
    "auth_bytes",
    "broker_id",
    "client_host",
    "current_leader_epoch",
    "timestamp",
    "token_id",
    "hmac",
    "issue_timestamp_ms",
    "expiry_timestamp_ms",
    "max_timestamp_ms",
}
"""Fields that also vary from one run of a client to the next: ids and epochs that a broker gives, and times."""
IDENTITIES = (
    "name",
    "topic",
    "group_id",
    "key",
    "api_key",
    "partition_index",
    "partition",
    "index",
    "resource_name",
    "error_code",
)
"""Fields that identify the elements of an array, which brokers send in any order."""


def comparable(value: Any, renamed: Callable[[str], str], varies: Collection[str] = VARIES) -> Any:
    """Return a message as dicts and lists, without defaults and what varies.

    Args:
        renamed: replaces names that belong to a run.
        varies: the fields that are left out.
    """
    if isinstance(value, Struct):
        if type(value).__name__ == "ApiVersion":
            return f"{value.api_key}:{value.min_version}-{value.max_version}"  # type: ignore[attr-defined]
        return {
            field.name: comparable(found, renamed, varies)
            for field in fields_of(type(value))
            if field.name not in varies and (found := getattr(value, field.name)) != field.default
        }
    if isinstance(value, tuple | list):
        items: Sequence[Any] = [comparable(item, renamed, varies) for item in value]
        return sorted(items) if items and isinstance(items[0], str) else items
    if isinstance(value, str):
        return renamed(value)
    return value if isinstance(value, int | float | None) else f"{len(value)} bytes"


def differences(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield path, value and other value where two comparable messages differ; None: a field has its default.

    The elements of arrays are compared in the order of `IDENTITIES`.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for name in (*one, *(name for name in other if name not in one)):
            yield from differences(one.get(name), other.get(name), f"{path}.{name}" if path else name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (element, another) in enumerate(zip(_ordered(one), _ordered(other), strict=True)):
            yield from differences(element, another, f"{path}[{index}]")
    elif _are_texts(one) and _are_texts(other):
        yield path, [text for text in one if text not in other], [text for text in other if text not in one]
    elif one != other:
        yield path, one, other


def _are_texts(value: Any) -> bool:
    """Return whether a value is an array of different texts, of which only those that the other lacks are shown."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value)


def _ordered(elements: list[Any]) -> list[Any]:
    return sorted(elements, key=_identity) if elements and isinstance(elements[0], dict) else elements


def _identity(element: dict[str, Any]) -> list[str]:
    return [repr(element[name]) if name in element else "" for name in IDENTITIES]
