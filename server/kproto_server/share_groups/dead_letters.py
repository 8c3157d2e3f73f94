"""Dead letter queues (KIP-1191): topics that get the records that a share group gives up.

Theory of operation. A group names its queue with `errors.deadletterqueue.topic.name`. Records that a member rejects, or
that were delivered too often, are written there before they are archived, each with headers that say where it was and
why. The topic must allow that (`errors.deadletterqueue.group.enable`); a missing one is created if
`errors.deadletterqueue.auto.create.topics.enable` says so. Records that cannot be written are archived all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.batches import read_batches
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import build_record_batch
from kproto_server.cluster.topics import Refusal
from kproto_server.configuration.topic_configs import topic_config

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.share_groups.group_settings import GroupSettings
    from kproto_server.share_groups.share_partition import DeadBatch
    from kproto_server.share_groups.share_states import SharePartitionKey

REJECTED = "Offset rejected by client."
DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."
ALLOWED = "errors.deadletterqueue.group.enable"
"""The config of a topic that may be a dead letter queue."""
CREATES_SETTING = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX_SETTING = "errors.deadletterqueue.topic.name.prefix"
READ_BYTES = 1 << 20


class DeadLetters:
    """Writes to the dead letter queues of all groups."""

    def __init__(self, cluster: Cluster, settings: DynamicSettings, log_manager: LogManager) -> None:
        self._cluster = cluster
        self._settings = settings
        self._log_manager = log_manager

    def write(self, key: SharePartitionKey, dead: DeadBatch, settings: GroupSettings, now_ms: int) -> None:
        """Append records to the dead letter queue of their group, if that is possible."""
        source, queue = self._cluster.topic_by_id(key.topic_id), self._queue(settings.dead_letter_topic, now_ms)
        if source is None or queue is None:
            return
        partition = queue.partitions[key.partition % len(queue.partitions)]
        of_source = source.partition(key.partition)
        found = _originals(of_source, dead) if of_source and settings.copies_dead_records else {}
        records = [
            _letter(source.name, key, offset, dead, found.get(offset))._replace(offset=index, timestamp=now_ms)
            for index, offset in enumerate(range(dead.first_offset, dead.last_offset + 1))
        ]
        batch = build_record_batch(records)
        try:
            data = self._log_manager.data_of(queue, partition)
            data.append(batch, len(records) - 1, now_ms, partition.leader_epoch)
        except OSError:
            return
        if data.is_in_memory:
            self._log_manager.wrote_to_memory(len(batch))

    def _queue(self, name: str, now_ms: int) -> Topic | None:
        """Return a topic that may be a dead letter queue; create it if it is missing and may be created."""
        settings = self._settings.current
        if not name.startswith(settings.str(PREFIX_SETTING)):
            return None
        topic = self._cluster.topics.get(name)
        if topic is None and settings.bool(CREATES_SETTING):
            made = self._cluster.create_topic(name, configs={ALLOWED: "true"}, now_ms=now_ms)
            topic = None if isinstance(made, Refusal) else made
        return topic if topic is not None and topic_config(settings, topic.configs, ALLOWED) == "true" else None


def _originals(partition: Partition, dead: DeadBatch) -> dict[int, Record]:
    """Return the records by offset, as far as they are in the log."""
    found: dict[int, Record] = {}
    offset = dead.first_offset
    while offset <= dead.last_offset:
        batches = list(read_batches(partition.data.read(offset, READ_BYTES, min_one_batch=True)))
        if not batches:
            break
        found |= {one.offset: one for batch in batches if not batch.is_control for one in batch.records()}
        offset = batches[-1].last_offset + 1
    return found


def _letter(topic: str, key: SharePartitionKey, offset: int, dead: DeadBatch, original: Record | None) -> Record:
    headers = {
        "__dlq.errors.topic": topic,
        "__dlq.errors.partition": str(key.partition),
        "__dlq.errors.offset": str(offset),
        "__dlq.errors.group": key.group_id,
        "__dlq.errors.delivery.count": str(dead.delivery_count),
        "__dlq.errors.message": REJECTED if dead.is_rejected else DELIVERED_TOO_OFTEN,
    }
    given = () if original is None else original.headers
    return Record(
        None if original is None else original.key,
        None if original is None else original.value,
        headers=(*given, *[RecordHeader(name, value.encode()) for name, value in headers.items()]),
    )
