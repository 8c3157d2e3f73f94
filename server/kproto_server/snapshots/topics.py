"""Topics in a snapshot: their configs, replicas and records; and the configs of brokers and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import LogError, UsageError
from kproto.records.batch_header import (
    CHECKED,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from kproto.records.batches import batch_end
from kproto.records.record import NO_TIMESTAMP
from kproto.records.record_batch import read_header
from kproto_server.coordinator.offsets_log.batches import with_checksum
from kproto_server.partition_log.partition_data import NO_DATA, PartitionData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.partition_log.partition_data import Append
    from kproto_server.quotas.entities import Quotas
    from kproto_server.security.acls import Acl
    from kproto_server.security.delegation_tokens import Token
    from kproto_server.security.users import Changes
    from kproto_server.state import BrokerState

ALL_BYTES = 1 << 62
GAP_MAX = 1 << 31


class PartitionImage(NamedTuple):
    """A partition."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    data: PartitionData | None
    """A copy of its records in memory; None: it has none, or they are made of what the coordinators have."""


class TopicImage(NamedTuple):
    """A topic."""

    name: str
    topic_id: bytes
    created_ms: int
    configs: Mapping[str, str]
    partitions: tuple[PartitionImage, ...]


class Topics(NamedTuple):
    """The topics of a cluster, and what else its metadata have."""

    nodes: frozenset[int]
    topics: tuple[TopicImage, ...]
    controller_id: int
    behind: frozenset[int]
    """Nodes that do not replicate."""
    producer_id: int
    """The newest producer id."""
    broker_configs: Mapping[str, Mapping[str, str]]
    group_configs: Mapping[str, Mapping[str, str]]
    client_metrics: Mapping[str, Mapping[str, str]]
    feature_levels: Mapping[str, int]
    scram_changes: Changes
    acls: tuple[Acl, ...]
    client_quotas: Quotas
    delegation_tokens: tuple[Token, ...]

    @classmethod
    def of(cls, state: BrokerState) -> Topics:
        """Return those of a broker."""
        cluster, settings = state.cluster, state.settings
        return cls(
            frozenset(cluster.nodes),
            tuple(_image(topic) for topic in cluster.topics.values()),
            cluster.controller_id,
            cluster.behind,
            cluster.last_producer_id,
            {name: dict(configs) for name, configs in settings.configs.items()},
            {group_id: dict(configs) for group_id, configs in settings.groups.items()},
            {name: dict(configs) for name, configs in settings.client_metrics.items()},
            dict(cluster.features.levels),
            cluster.scram_changes,
            () if cluster.authorizer is None else cluster.authorizer.acls,
            cluster.client_quotas,
            () if cluster.delegation_tokens is None else cluster.delegation_tokens.tokens,
        )

    def counts(self) -> tuple[int, int]:
        """Return the number of topics and of their records, without those of coordinators."""
        data = [[one.data for one in topic.partitions] for topic in self.topics if not topic.name.startswith("__")]
        records = sum(one.next_offset - one.start_offset for of_topic in data for one in of_topic if one is not None)
        return len(data), records

    def restore(self, state: BrokerState, drain: Callable[[], object]) -> None:
        """Replace the topics of a broker that was reset.

        Raises:
            LogError: a log does not take the records.
        """
        cluster, settings = state.cluster, state.settings
        for name in list(cluster.topics):
            cluster.delete_topic(name)
        state.coordinator.forget_groups()
        for name, configs in self.broker_configs.items():
            settings.change(name, dict(configs))
        for group_id, configs in self.group_configs.items():
            settings.change_group(group_id, dict(configs))
        for name, configs in self.client_metrics.items():
            settings.change_client_metrics(name, dict(configs))
        if self.feature_levels != cluster.features.levels:
            cluster.features.replace(self.feature_levels)
        if self.scram_changes:
            cluster.alter_scram_credentials(self.scram_changes)
        if cluster.authorizer is not None:
            cluster.authorizer.replace(self.acls)
        cluster.alter_client_quotas(self.client_quotas)
        if cluster.delegation_tokens is not None:
            cluster.change_delegation_tokens(self.delegation_tokens)
        cluster.restore_producer_ids(self.producer_id)
        for image in self.topics:
            replicas = [one.replicas for one in image.partitions]
            topic = cluster.restore_topic(image.name, image.topic_id, len(replicas), replicas, image.configs)
            topic.created_ms = image.created_ms
            for partition, one in zip(topic.partitions, image.partitions, strict=True):
                partition.leader_epoch = one.leader_epoch
        cluster.save()
        for topic, partition, data in self._with_data(state):
            _restore_data(state, topic, partition, data, drain)

    def finish(self, state: BrokerState) -> None:
        """Raise the log start offsets; give partitions their leaders and in-sync replicas.

        Raises:
            LogError: the log start offsets can't be saved.
        """
        cluster = state.cluster
        for topic, partition, data in self._with_data(state):
            state.log_manager.data_of(topic, partition).delete_before(data.start_offset)
        if not state.log_manager.save_start_offsets({}):
            raise LogError("the log start offsets can't be saved")
        for image in self.topics:
            for partition, one in zip(cluster.topics[image.name].partitions, image.partitions, strict=True):
                partition.leader, partition.leader_epoch = one.leader, one.leader_epoch
                partition.isr = list(one.isr)
        cluster.restore_roles(self.controller_id, self.behind)

    def _with_data(self, state: BrokerState) -> Iterator[tuple[Topic, Partition, PartitionData]]:
        for image in self.topics:
            topic = state.cluster.topics[image.name]
            for partition, one in zip(topic.partitions, image.partitions, strict=True):
                if one.data is not None:
                    yield topic, partition, one.data


def _image(topic: Topic) -> TopicImage:
    def partition_image(one: Partition) -> PartitionImage:
        data = None if topic.internal or one.data is NO_DATA else _in_memory(one.data)
        return PartitionImage(tuple(one.replicas), tuple(one.isr), one.leader, one.leader_epoch, data)

    partitions = tuple(partition_image(one) for one in topic.partitions)
    return TopicImage(topic.name, topic.topic_id, topic.created_ms, dict(topic.configs), partitions)


def _in_memory(data: PartitionData) -> PartitionData:
    """Return a copy of the records of a partition."""
    if data.is_in_memory:
        return data.copy()
    copy = PartitionData(data.start_offset)
    for batch in _batches(data):
        if batch[MAGIC_POSITION] != MAGIC:
            raise UsageError("a snapshot can't have the messages of a log from before 0.11")
        copy.add_stored(batch)
    copy.next_offset = data.next_offset
    return copy


def _batches(data: PartitionData) -> Iterator[bytes]:
    content = data.read(data.start_offset, ALL_BYTES, min_one_batch=True)
    position = 0
    while (end := batch_end(content, position)) is not None:
        yield content[position:end]
        position = end


def _restore_data(
    state: BrokerState, topic: Topic, partition: Partition, image: PartitionData, drain: Callable[[], object]
) -> None:
    """Give a new partition its records."""
    try:
        data = state.log_manager.data_of(topic, partition)
        if data.is_in_memory:
            partition.data = image.copy()
            state.log_manager.wrote_to_memory(image.size_bytes)
            return
        appends = [_append(data, batch) for batch in _without_gaps(image, partition.leader_epoch)]
    except OSError as error:
        raise LogError(f"{topic.name}-{partition.index} can't be written: {error}") from None
    drain()
    errors = {one.error for one in appends if one.error}
    if errors:
        raise LogError(f"{topic.name}-{partition.index} can't be written: error code {min(errors)}")


def _append(data: PartitionData, batch: bytes) -> Append:
    header = read_header(batch)
    epoch, delta = header.partition_leader_epoch, header.last_offset_delta
    return data.append(batch, delta, header.max_timestamp, epoch, header.producer_id)


def _without_gaps(image: PartitionData, epoch: int) -> Iterator[bytes]:
    """Yield the batches of a log from offset 0 on, with empty ones for offsets that have none.

    Such offsets are those of deleted records, or of batches that compaction has removed. Compaction makes empty batches
    itself, and clients skip them.
    """
    offset = 0
    for batch in _batches(image):
        header = read_header(batch)
        yield from _empty_batches(offset, header.base_offset, header.partition_leader_epoch)
        yield batch
        offset = header.base_offset + header.last_offset_delta + 1
    yield from _empty_batches(offset, image.next_offset, epoch)


def _empty_batches(offset: int, end_offset: int, epoch: int) -> Iterator[bytes]:
    while offset < end_offset:
        delta = min(end_offset - offset, GAP_MAX) - 1
        checked = CHECKED.pack(0, delta, NO_TIMESTAMP, NO_TIMESTAMP, NO_PRODUCER_ID, NO_EPOCH, NO_SEQUENCE, 0)
        batch = with_checksum(checked)
        yield batch[:LOG_OVERHEAD] + epoch.to_bytes(4, "big") + batch[LOG_OVERHEAD + 4 :]
        offset += delta + 1
