"""The records of a topic, decoded, as a test reads them.

Theory of operation. The broker's thread indexes partitions on disk and copies the bytes of whole batches, a part at a
time. The caller's thread decodes the batches: a large topic delays no client. No fetch session, no offset and no limit
of a client takes part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from kproto.codes import ErrorCode
from kproto.records.batches import read_batches
from kproto.records.control import ControlType, control_type
from kproto.records.record_batch import RecordBatch
from kproto_server.broker.own_requests import RequestRefused
from kproto_server.broker.thread import run_in_turns
from kproto_server.log_manager.log_manager import index_in_steps

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from kproto.records.batches import Batch
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.network.server import Server
    from kproto_server.partition_log.transactions import AbortedTransaction

IsolationLevel = Literal["read_uncommitted", "read_committed"]

READ_SIZE_BYTES = 1 << 20
"""What one turn in the broker's thread copies: 1 ms."""


class TopicRecord(NamedTuple):
    """A record of a topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    compression: str = "none"
    """Of its batch: ``"none"``, ``"gzip"``, ``"snappy"``, ``"lz4"`` or ``"zstd"``."""
    producer_id: int = -1
    """-1: the producer is not idempotent."""
    producer_epoch: int = -1
    is_transactional: bool = False
    control: str | None = None
    """Of a marker of the broker, ``"commit"`` or ``"abort"``; None: a record of a producer."""


class _Part(NamedTuple):
    """Batches of a partition, as bytes."""

    data: bytes
    start_offset: int
    """The least offset that a record may have."""
    aborted: Sequence[AbortedTransaction]


def topic_named(server: Server, name: str) -> Topic:
    """Return a topic.

    Raises:
        RequestRefused: it does not exist.
    """
    topic = server.state.cluster.topic(name)
    if topic is None:
        raise RequestRefused(f"topic {name!r}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
    return topic


def indexed_partitions(
    server: Server, name: str, index: int | None = None
) -> Generator[None, None, Sequence[Partition]]:
    """Return a partition of a topic, or all if ``index`` is None; those on disk are indexed in steps before.

    Raises:
        RequestRefused: the topic or the partition does not exist, or no longer.
    """

    def chosen() -> Sequence[Partition]:
        topic = topic_named(server, name)
        return topic.partitions if index is None else [partition_of(topic, index)]

    yield from index_in_steps([one.data for one in chosen()])
    return chosen()


def partition_of(topic: Topic, index: int) -> Partition:
    """Return a partition.

    Raises:
        RequestRefused: it does not exist.
    """
    partition = topic.partition(index)
    if partition is None:
        counted = f"the topic has partitions 0 to {len(topic.partitions) - 1}"
        raise RequestRefused(f"{topic.name}-{index}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, counted)
    return partition


class RecordReader:
    """Reads the partitions of one topic."""

    def __init__(
        self, run: RunInBrokerThread, topic: str, isolation_level: IsolationLevel, *, has_control: bool
    ) -> None:
        """``has_control``: with the markers of the broker."""
        self._run = run
        self._topic = topic
        self._is_committed = isolation_level == "read_committed"
        self._has_control = has_control

    def ends(self, partition: int | None) -> dict[int, tuple[int, int]]:
        """Return the first offset and the end offset of a partition, or of all.

        Raises:
            RequestRefused: the topic or the partition does not exist.
        """

        def look(server: Server) -> Generator[None, None, dict[int, tuple[int, int]]]:
            chosen = yield from indexed_partitions(server, self._topic, partition)
            return {one.index: (one.log_start_offset, self._end(one)) for one in chosen}

        return run_in_turns(self._run, look)

    def _end(self, partition: Partition) -> int:
        return partition.data.last_stable_offset if self._is_committed else partition.high_watermark

    def read(self, partition: int, offset: int) -> Iterator[TopicRecord]:
        """Yield the records of a partition from an offset on.

        Raises:
            RequestRefused: while iterating: the topic or the partition does not exist.
            DecodeError: while iterating: a batch does not have its layout.
            MissingPackage: while iterating: a compression needs a package that is not installed.
        """
        while True:
            part = self._run(lambda server: self._part(server, partition, offset))  # noqa: B023 - called at once
            if not part.data:
                return
            for batch in read_batches(part.data):
                offset = batch.last_offset + 1
                if self._is_wanted(batch, part.aborted):
                    yield from (one for one in _records(partition, batch) if one.offset >= part.start_offset)

    def _part(self, server: Server, index: int, offset: int) -> _Part:
        partition = partition_of(topic_named(server, self._topic), index)
        end = self._end(partition)
        start = max(offset, partition.log_start_offset)
        if start >= end:
            return _Part(b"", start, ())
        data = partition.data.read(start, READ_SIZE_BYTES, min_one_batch=True, end_offset=end)
        aborted = partition.data.transactions.aborted_in(start, end) if self._is_committed else ()
        return _Part(data, start, aborted)

    def _is_wanted(self, batch: Batch, aborted: Sequence[AbortedTransaction]) -> bool:
        if batch.is_control:
            return self._has_control
        if not batch.is_transactional or not isinstance(batch, RecordBatch):
            return True
        return not any(
            one.producer_id == batch.header.producer_id and one.first_offset <= batch.base_offset < one.last_offset
            for one in aborted
        )


def _records(partition: int, batch: Batch) -> Iterator[TopicRecord]:
    producer = (batch.header.producer_id, batch.header.producer_epoch) if isinstance(batch, RecordBatch) else (-1, -1)
    compression = batch.compression.name.lower()
    for record in batch.records():
        yield TopicRecord(
            partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            tuple((header.key, header.value) for header in record.headers),
            compression,
            *producer,
            batch.is_transactional,
            _control(record.key) if batch.is_control else None,
        )


def _control(key: bytes | None) -> str:
    number = control_type(key)
    return ControlType(number).name.lower() if number in ControlType._value2member_map_ else str(number)


def read_oldest(reader: RecordReader, partition: int | None, offset: int, limit: int | None) -> list[TopicRecord]:
    """Return records by partition and offset, ``limit`` at most of all partitions together.

    Raises:
        RequestRefused: the topic or the partition does not exist.
        DecodeError: a batch does not have its layout.
        MissingPackage: a compression needs a package that is not installed.
    """
    found: list[TopicRecord] = []
    for index in reader.ends(partition):
        for record in reader.read(index, offset):
            if len(found) == limit:
                return found
            found.append(record)
    return found


def read_newest(reader: RecordReader, partition: int | None, offset: int, limit: int) -> list[TopicRecord]:
    """Return the newest records by timestamp, ordered by partition and offset.

    Raises:
        RequestRefused: the topic or the partition does not exist.
        DecodeError: a batch does not have its layout.
        MissingPackage: a compression needs a package that is not installed.
    """
    found: list[TopicRecord] = []
    for index, (start, end) in reader.ends(partition).items():
        first, span, part = max(start, offset), limit, list[TopicRecord]()
        while first < end:
            begin = max(first, end - span)
            part = list(reader.read(index, begin))[-limit:]
            if len(part) >= limit or begin == first:
                break
            span *= 4  # markers, and what compaction or an abort has removed
        found += part
    newest = sorted(found, key=lambda one: (one.timestamp_ms, one.offset))[-limit:] if limit else []
    return sorted(newest, key=lambda one: (one.partition, one.offset))
