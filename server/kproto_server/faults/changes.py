"""Changes of whole responses: throttle times, wrong checksums, old message formats, unknown tagged fields, empty and
null fields, former or wrong leaders and coordinators, and a shorter list of API versions."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.declaration import Struct, TaggedField, fields_of
from kproto.messages.k03_metadata import MetadataResponseBroker
from kproto.records.batch_header import CRC_POSITION, MAGIC_POSITION
from kproto.records.partitioning import OFFSETS_TOPIC, TRANSACTION_TOPIC, partition_for
from kproto_server.partition_log.conversion import down_converted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kproto.message import Response
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.node import Node

CRC_POSITION_OF_MESSAGES = 12
BATCHES_MAGIC = 2
UNKNOWN_TAG = TaggedField(9_999, b"of a later release")
EMPTIED: Mapping[str, Any] = {"array": (), "records": b"", "bytes": b""}
"""The empty value of each kind of field that can be empty."""
COORDINATOR_TOPICS = {0: OFFSETS_TOPIC, 1: TRANSACTION_TOPIC}
"""By key type of FindCoordinator."""


@cache
def has_records(api_key: int) -> bool:
    """Return whether the response of an API has records."""
    return _has_records(registry.response_class(api_key))


def _has_records(cls: type[Struct]) -> bool:
    for field in fields_of(cls):
        inside = (field.type.element or field.type).struct
        if field.type.kind == "records" or (inside is not None and _has_records(inside)):
            return True
    return False


def with_wrong_checksums(response: Any) -> Any:
    """Return a response in which the first batch of each partition's records has a wrong checksum."""
    return _with_records(response, _with_wrong_checksum)


def _with_records(response: Any, changed: Callable[[bytes], bytes]) -> Any:
    """Return a response with other records in each partition that has a batch."""
    changes: dict[str, Any] = {}
    for field in fields_of(type(response)):
        value, inside = getattr(response, field.name), (field.type.element or field.type).struct
        if field.type.kind == "records" and value and len(value) > CRC_POSITION:
            changes[field.name] = changed(bytes(value))
        elif inside is not None and value is not None and _has_records(inside):
            if field.type.kind == "array":
                changes[field.name] = tuple(_with_records(one, changed) for one in value)
            else:
                changes[field.name] = _with_records(value, changed)
    return response.replace(**changes) if changes else response


def _with_wrong_checksum(records: bytes) -> bytes:
    position = CRC_POSITION if records[MAGIC_POSITION] >= BATCHES_MAGIC else CRC_POSITION_OF_MESSAGES
    return records[:position] + bytes([records[position] ^ 0xFF]) + records[position + 1 :]


def with_unknown_tags(value: Any) -> Any:
    """Return a response of a flexible version with `UNKNOWN_TAG` in each of its structs."""
    changes: dict[str, Any] = {"unknown_tagged_fields": (*value.unknown_tagged_fields, UNKNOWN_TAG)}
    for field in fields_of(type(value)):
        found = getattr(value, field.name)
        if isinstance(found, Struct) and found != field.default:
            changes[field.name] = with_unknown_tags(found)
        elif isinstance(found, tuple) and found and isinstance(found[0], Struct):
            changes[field.name] = tuple(map(with_unknown_tags, found))
    return value.replace(**changes)


def with_magic(response: Any, magic: int) -> Any:
    """Return a response with records in message sets of this message format version."""
    return _with_records(response, lambda records: down_converted(records, 0, magic=magic) or records)


def emptied_fields(cls: type[Struct], api_version: int, *, is_null: bool) -> frozenset[str]:
    """Return the names of the fields that can be empty, or null, in a response of a version, at any depth."""
    found = set()
    for field in fields_of(cls):
        if field.versions.covers(api_version):
            inside = (field.type.element or field.type).struct
            if field.type.kind in EMPTIED and (not is_null or field.nullable_versions.covers(api_version)):
                found.add(field.name)
            if inside is not None:
                found |= emptied_fields(inside, api_version, is_null=is_null)
    return frozenset(found)


def with_emptied(response: Any, name: str, api_version: int, *, is_null: bool) -> Any:
    """Return a response in which all fields of a name are empty, or null where the version allows it."""
    if name not in emptied_fields(type(response), api_version, is_null=is_null):
        return response
    changes: dict[str, Any] = {}
    for field in fields_of(type(response)):
        value = getattr(response, field.name)
        if field.name == name and (not is_null or field.nullable_versions.covers(api_version)):
            changes[name] = None if is_null else EMPTIED[field.type.kind]
        elif isinstance(value, Struct):
            changes[field.name] = with_emptied(value, name, api_version, is_null=is_null)
        elif isinstance(value, tuple) and value and isinstance(value[0], Struct):
            changes[field.name] = tuple(with_emptied(one, name, api_version, is_null=is_null) for one in value)
    return response.replace(**changes)


def throttled(response: Response, throttle_ms: int) -> Response:
    """Return a response with a throttle time, if it has a field for it."""
    if any(field.name == "throttle_time_ms" for field in fields_of(type(response))):
        return response.replace(throttle_time_ms=throttle_ms)
    return response


def with_max_versions(response: Any, max_versions: Mapping[int, int | None]) -> Any:
    """Return an ApiVersions response with other greatest versions by API key; None: the API is not listed."""
    listed = []
    for one in response.api_keys:
        greatest = max_versions.get(one.api_key, one.max_version)
        if greatest is not None and greatest >= one.min_version:
            listed.append(one.replace(max_version=min(greatest, one.max_version)))
    return response.replace(api_keys=tuple(listed))


class Leaders(NamedTuple):
    """The leaders of all partitions at one time."""

    of: Mapping[tuple[str, int], tuple[int, int]]
    """(Topic, partition) -> (node id, leader epoch)."""
    partition_counts: Mapping[str, int]
    nodes: tuple[Node, ...]
    """The nodes that Metadata listed."""

    @classmethod
    def now(cls, cluster: Cluster) -> Leaders:
        """Return the leaders as they are."""
        topics = cluster.topics
        return cls(
            {(name, one.index): (one.leader, one.leader_epoch) for name in topics for one in topics[name].partitions},
            {name: len(topic.partitions) for name, topic in topics.items()},
            tuple(cluster.alive_nodes()),
        )

    def coordinator(self, key: str, key_type: int) -> int | None:
        """Return the id of the node that coordinated a group or a transactional id; None: there was none."""
        topic = COORDINATOR_TOPICS.get(key_type, "")
        count = self.partition_counts.get(topic)
        return None if not count else self.of[topic, partition_for(key, count)][0]


def with_leaders(
    response: Any, is_about: Callable[[str, int], bool], leader_of: Callable[[str, int], tuple[int, int] | None]
) -> Any:
    """Return a response about topics (Metadata, DescribeTopicPartitions) with other leaders.

    ``leader_of``: returns node id and leader epoch; None: the response keeps what it has. -1: the epoch, too.
    """

    def partition(topic: str, one: Any) -> Any:
        found = leader_of(topic, one.partition_index) if is_about(topic, one.partition_index) else None
        if found is None:
            return one
        leader_id, epoch = found
        return one.replace(leader_id=leader_id, leader_epoch=one.leader_epoch if epoch < 0 else epoch)

    def topic(one: Any) -> Any:
        return one.replace(partitions=tuple(partition(one.name or "", inside) for inside in one.partitions))

    return response.replace(topics=tuple(map(topic, response.topics)))


def with_nodes(response: Any, nodes: Iterable[Node], listener: str) -> Any:
    """Return a Metadata response that lists these nodes, too; a client ignores a leader that is not listed."""
    listed = {one.node_id for one in getattr(response, "brokers", ())}
    if not listed:  # DescribeTopicPartitions names leaders by id only
        return response
    added = (
        MetadataResponseBroker(node_id=node.node_id, host=host, port=port, rack=node.rack)
        for node in nodes
        for host, port in (node.address(listener),)
        if node.node_id not in listed
    )
    return response.replace(brokers=(*response.brokers, *added))


def with_coordinators(
    response: Any, request: Any, api_version: int, listener: str, node_of: Callable[[str, int], Node | None]
) -> Any:
    """Return a FindCoordinator response with other coordinators; ``node_of``: by key and key type, None: keep it."""

    def changed(one: Any, key: str) -> Any:
        node = None if one.error_code else node_of(key, request.key_type)
        if node is None:
            return one
        host, port = node.address(listener)
        return one.replace(node_id=node.node_id, host=host, port=port)

    if api_version < 4:
        return changed(response, request.key)
    return response.replace(coordinators=tuple(changed(one, one.key) for one in response.coordinators))
