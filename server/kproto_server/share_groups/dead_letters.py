"""Dead letter queues (KIP-1191): topics that get the records that a share group gives up.

Theory of operation. A group names its queue with `errors.deadletterqueue.topic.name`. Records that a member rejects, or
that were delivered too often, are written there before they are archived, each with headers that say where it was and
why. The topic must allow that (`errors.deadletterqueue.group.enable`); a missing one is created if
`errors.deadletterqueue.auto.create.topics.enable` says so. Records that cannot be written are archived all the same.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kproto.records.batch_header import HEADER_SIZE
from kproto.records.batches import read_batches
from kproto.records.record import INT64_MAX, Record, RecordHeader, encode_records
from kproto.records.record_batch import RecordBatch, build_record_batch
from kproto_server.cluster.topics import Refusal
from kproto_server.configuration.topic_configs import topic_config
from kproto_server.partition_log.decoding import decoded
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto.records.batches import Batch
    from kproto_server.clock import Clock
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.partition_log.decoding import DecodingBudget
    from kproto_server.share_groups.group_settings import GroupSettings
    from kproto_server.share_groups.share_partition import DeadBatch
    from kproto_server.share_groups.share_states import SharePartitionKey

logger = logging.getLogger("kproto.log")

REJECTED = "Offset rejected by client."
DELIVERED_TOO_OFTEN = "Offset delivery count exceeded the threshold."
ALLOWED = "errors.deadletterqueue.group.enable"
"""The config of a topic that may be a dead letter queue."""
CREATES_SETTING = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX_SETTING = "errors.deadletterqueue.topic.name.prefix"
COPIED_RECORDS_MAX = 20_000
"""Records of a batch that are decoded, 20 ms. DEVIATION: a real broker copies the records of any batch."""


class DeadLetters:
    """Writes to the dead letter queues of all groups."""

    def __init__(self, cluster: Cluster, clock: Clock, settings: DynamicSettings, log_manager: LogManager) -> None:
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._log_manager = log_manager

    def write(
        self, key: SharePartitionKey, dead: Iterable[DeadBatch], settings: GroupSettings, budget: DecodingBudget
    ) -> Iterator[None]:
        """Append records to the dead letter queue of their group, if that is possible. Yields between slices.

        As in Kafka 4.4.0, a batch has at most `max.message.bytes` of the queue, and a record that is larger is
        written without its contents. ``dead``: in the order of offsets.
        """
        source = self._cluster.topic_by_id(key.topic_id)
        queue = self._queue(settings.dead_letter_topic, self._clock.now_ms())
        if source is None or queue is None:
            return
        size_max = int(topic_config(self._settings.current, queue.configs, "max.message.bytes")) - HEADER_SIZE
        partition = source.partition(key.partition) if settings.copies_dead_records else None
        originals = _Originals(source.name, partition, budget)
        letters: list[Record] = []
        size = 0
        for batch in dead:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                yield from originals.read(offset)
                letter, letter_size = _fitting(source.name, key, offset, batch, originals.records.get(offset), size_max)
                if size + letter_size > size_max and letters:
                    if not self._append(letters, queue, key.partition):
                        return
                    letters, size = [], 0
                if letter_size <= size_max:
                    letters.append(letter)
                    size += letter_size
                budget.take(1)
                if budget.ends_slice():
                    yield
        self._append(letters, queue, key.partition)

    def _append(self, records: list[Record], queue: Topic, source_partition: int) -> bool:
        """Append a batch; return whether that was possible."""
        if self._cluster.topics.get(queue.name) is not queue:
            return False  # deleted meanwhile
        if records:
            now_ms = self._clock.now_ms()
            partition = queue.partitions[source_partition % len(queue.partitions)]
            numbered = [record._replace(offset=index, timestamp=now_ms) for index, record in enumerate(records)]
            batch = build_record_batch(numbered)
            try:
                data = self._log_manager.data_of(queue, partition)
                data.append(batch, len(records) - 1, now_ms, partition.leader_epoch)
            except OSError:
                return False
            if data.is_in_memory:
                self._log_manager.wrote_to_memory(len(batch))
        return True

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


class _Originals:
    """The records of a partition, one batch at a time."""

    def __init__(self, topic: str, partition: Partition | None, budget: DecodingBudget) -> None:
        """``partition``: None: there are no records."""
        self.records: dict[int, Record] = {}
        """The records of the batch with the offset that was read last, by offset; none if they cannot be read."""
        self._topic = topic
        self._partition = partition
        self._budget = budget
        self._end_offset = 0
        """The offsets before it are those of the batch, or of earlier ones."""

    def read(self, offset: int) -> Iterator[None]:
        """Read the batch with an offset, unless it is there, or the next batch. Yields between slices."""
        if offset < self._end_offset or self._partition is None:
            return
        self.records = {}
        try:
            encoded = self._partition.data.read(offset, 1, min_one_batch=True)
            batch = next(read_batches(encoded), None)
            self._end_offset = INT64_MAX if batch is None else batch.last_offset + 1
            if batch is None or batch.is_control or _is_long(batch):
                return
            for records in decoded(batch, self._budget):
                self.records |= {record.offset: record for record in records}
                if self._budget.ends_slice():
                    yield
        except UNREADABLE as error:
            self._end_offset = max(self._end_offset, offset + 1)
            logger.warning(
                "%s-%d: dead records from offset %d on are written without contents: %s",
                self._topic,
                self._partition.index,
                offset,
                error,
            )


def _is_long(batch: Batch) -> bool:
    return isinstance(batch, RecordBatch) and batch.header.record_count > COPIED_RECORDS_MAX


def _fitting(
    topic: str, key: SharePartitionKey, offset: int, dead: DeadBatch, original: Record | None, size_max: int
) -> tuple[Record, int]:
    """Return what is written of a record, without its contents if it is too large with them, and the encoded size."""
    letter = _letter(topic, key, offset, dead, original)
    size = len(encode_records([letter]))
    if original is not None and size > size_max:
        return _fitting(topic, key, offset, dead, None, size_max)
    return letter, size


def _letter(topic: str, key: SharePartitionKey, offset: int, dead: DeadBatch, original: Record | None) -> Record:
    # As in Kafka 4.4.0, the record's own headers are not copied.
    headers = {
        "__dlq.errors.topic": topic,
        "__dlq.errors.partition": str(key.partition),
        "__dlq.errors.offset": str(offset),
        "__dlq.errors.group": key.group_id,
        "__dlq.errors.delivery.count": str(dead.delivery_count),
        "__dlq.errors.message": REJECTED if dead.is_rejected else DELIVERED_TOO_OFTEN,
    }
    return Record(
        None if original is None else original.key,
        None if original is None else original.value,
        headers=tuple([RecordHeader(name, value.encode()) for name, value in headers.items()]),
    )
