"""Test data: logs of an offsets partition, built batch by batch, and their loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.control import ControlType, build_end_marker
from kproto.records.coordinator import CoordinatorKey, CoordinatorValue, encode_key, encode_value
from kproto.records.group_records import GroupMetadataKey
from kproto.records.message_set import build_message_set
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.coordinator.loading.load import PartitionLoad
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.offsets_log.commits import commit_batch
from kproto_server.coordinator.offsets_log.deletions import deletion_batch
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.broker_state import new_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto_server.coordinator.offsets import CommitEntries, DeletionEntries
    from kproto_server.state import BrokerState

NOW = 1_700_000_000_000
LATEST = KafkaVersion.named("latest")

Pair = tuple[CoordinatorKey, "tuple[CoordinatorValue, int] | None"]


def stored(offset: int, metadata: str = "", **others: Any) -> OffsetAndMetadata:
    fields = {"leader_epoch": -1, "commit_timestamp_ms": NOW, "expire_timestamp_ms": None, "topic_id": bytes(16)}
    return OffsetAndMetadata(offset=offset, metadata=metadata, **{**fields, **others})


class Log:
    """The log of one partition. Each method appends one batch."""

    def __init__(self, kafka_version: KafkaVersion = LATEST) -> None:
        self.kafka_version = kafka_version
        self.batches: list[bytes] = []
        self.next_offset = 0

    @property
    def data(self) -> bytes:
        return b"".join(self.batches)

    def append(self, batch: bytes, record_count: int) -> None:
        self.batches.append(self.next_offset.to_bytes(8, "big") + batch[8:])
        self.next_offset += record_count

    def commit(
        self, group_id: str, entries: CommitEntries, now_ms: int = NOW, compression: Compression = Compression.NONE
    ) -> None:
        self.append(
            *commit_batch(group_id, entries, now_ms, self.kafka_version.behavior(CoordinatorBehavior), compression)
        )

    def delete(self, group_id: str, entries: DeletionEntries = (), *, removes_group: bool = False) -> None:
        self.append(
            *deletion_batch(group_id, entries, removes_group, NOW, self.kafka_version.behavior(CoordinatorBehavior))
        )

    def records(self, *pairs: Pair, **header: Any) -> None:
        """Append any records; ``header``: arguments of `build_record_batch`."""
        self.append(
            build_record_batch([_record(pair, delta) for delta, pair in enumerate(pairs)], **header), len(pairs)
        )

    def raw(self, key: bytes | None, value: bytes | None, **header: Any) -> None:
        self.append(build_record_batch([Record(key, value, timestamp=NOW)], **header), 1)

    def transaction(self, producer_id: int, *pairs: Pair) -> None:
        self.records(*pairs, producer_id=producer_id, producer_epoch=0, flags=TRANSACTIONAL)

    def marker(self, producer_id: int, outcome: ControlType) -> None:
        self.append(
            build_end_marker(
                outcome,
                offset=0,
                timestamp=NOW,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                partition_leader_epoch=0,
            ),
            1,
        )

    def message_set(self, magic: int, *pairs: Pair, compression: Compression = Compression.NONE) -> None:
        timestamp = NOW if magic else -1
        records = [
            _record(pair, self.next_offset + delta)._replace(timestamp=timestamp) for delta, pair in enumerate(pairs)
        ]
        self.batches.append(build_message_set(records, magic=magic, compression=compression))
        self.next_offset += len(pairs)

    def remove_group(self, group_id: str) -> None:
        self.records((GroupMetadataKey(group=group_id), None))


def _record(pair: Pair, offset: int) -> Record:
    key, value = pair
    return Record(encode_key(key), None if value is None else encode_value(*value), timestamp=NOW, offset=offset)


def offset(
    number: int, *, group: str = "g", topic: str = "t", partition: int = 0, version: int = 3, **others: Any
) -> Pair:
    """Return the record of an offset."""
    value = OffsetCommitValue(offset=number, metadata="", commit_timestamp=NOW, **others)
    return OffsetCommitKey(group=group, topic=topic, partition=partition), (value, version)


class Loaded(NamedTuple):
    """The result of a load."""

    load: PartitionLoad
    state: BrokerState

    @property
    def offsets(self) -> dict[str, dict[str, dict[int, OffsetAndMetadata]]]:
        of_group = self.state.coordinator.offsets.of_group
        found = {
            group_id: {topic: dict(partitions) for topic, partitions in of_group(group_id).items()}
            for group_id in sorted(self.load.group_ids)
        }
        return {group_id: topics for group_id, topics in found.items() if topics}

    def offsets_as_dicts(self) -> dict[str, dict[str, dict[int, int]]]:
        return {group_id: _numbers(topics) for group_id, topics in self.offsets.items()}


def _numbers(topics: Mapping[str, Mapping[int, OffsetAndMetadata]]) -> dict[str, dict[int, int]]:
    return {topic: {index: one.offset for index, one in partitions.items()} for topic, partitions in topics.items()}


def loaded(
    data: bytes,
    kafka_version: str = "latest",
    *,
    slice_size: int = 1 << 18,
    state: BrokerState | None = None,
    **options: Any,
) -> Loaded:
    """Load a log; the load has to succeed."""
    found = attempted(data, kafka_version, slice_size=slice_size, state=state, **options)
    assert found.load.failed is None
    assert found.load.read_size_bytes == len(data)
    return found


def attempted(
    data: bytes,
    kafka_version: str = "latest",
    *,
    slice_size: int = 1 << 18,
    state: BrokerState | None = None,
    **options: Any,
) -> Loaded:
    state = state or new_state(kafka_version)
    load = PartitionLoad(state.coordinator, slices(data, slice_size), NOW, **options)
    load.run()
    return Loaded(load, state)


def slices(data: bytes, size: int) -> Iterable[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def numbers(log: Log, kafka_version: str = "latest", **options: Any) -> dict[str, dict[str, dict[int, int]]]:
    """Return the loaded offsets of a log by group, topic and partition."""
    return loaded(log.data, kafka_version, **options).offsets_as_dicts()


both_ways = pytest.mark.parametrize("decodes_all", [True, False], ids=["reference", "fast"])
