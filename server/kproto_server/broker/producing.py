"""The records that a test produces: partitions, batches and transactions as those of a Java producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.records.batch_header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.partitioning import TRANSACTION_TOPIC
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import build_record_batch
from kproto_server.broker.own_requests import RequestRefused, ask, check, coordinator_of
from kproto_server.broker.records import partition_of, topic_named
from kproto_server.cluster.auto_creation import missing_topic_error, save_if_possible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kproto_server.cluster.topics import Topic
    from kproto_server.network.server import Server

Text = str | bytes | None
"""Key, value or header of a record; a str is encoded in UTF-8."""
CompressionName = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Outcome = Literal["commit", "abort", "open"]

PRODUCE = 0
BATCHES_SINCE = 3
"""The version of Produce from which on it has record batches; before, it has message sets."""
MAGIC_1_SINCE = 2
NAMES_UNTIL = 12
"""The last version of Produce that names topics."""
ALL_ACKS = -1
TIMEOUT_MS = 30_000
TRANSACTION_TIMEOUT_MS = 60_000
BATCH_SIZE_BYTES = 16_384
"""`batch.size` of producers: a batch has more only if one record has more."""
RECORD_OVERHEAD_BYTES = 24
INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN = 4, 3, 4
"""The newest versions to use: later ones have another layout, or belong to other clients."""
CONCURRENT_TRIES = 3
"""InitProducerId is repeated while it ends the transaction that the transactional id has."""


class NewRecord(NamedTuple):
    """A record that a test produces."""

    value: Text = None
    key: Text = None
    headers: Mapping[str, Text] | Sequence[tuple[str, Text]] = ()
    timestamp_ms: int | None = None
    """None: the broker's time."""
    partition: int | None = None
    """None: as the key says; without key, the partition with the fewest records."""


class ProducedRecord(NamedTuple):
    """Where a record is."""

    partition: int
    offset: int


class _Batch(NamedTuple):
    """Records of one partition, with their numbers among all records."""

    partition: int
    numbers: list[int]
    records: list[Record]


class _Producer(NamedTuple):
    """The producer of a transaction."""

    transactional_id: str
    producer_id: int
    epoch: int
    coordinator_id: int


def produce(
    server: Server,
    topic_name: str,
    records: Sequence[NewRecord],
    compression: Compression,
    outcome: Outcome | None,
    transactional_id: str,
) -> tuple[ProducedRecord, ...]:
    """Append records; return where they are, in the order of the records.

    ``outcome``: how their transaction ends; None: they are in none.

    Raises:
        RequestRefused: the broker refuses them, or the topic does not exist and is not created.
        EncodeError: the release has no such records.
        MissingPackage: the compression needs a package that is not installed.
        UsageError: the release has no transactions.
    """
    topic = _topic(server, topic_name)
    batches = list(_batches(topic, records, server.state.clock.now_ms()))
    producer = None if outcome is None else _begin(server, transactional_id, topic, batches)
    sequences: dict[int, int] = {}
    found: dict[int, ProducedRecord] = {}
    try:
        for batch in batches:
            sequence = sequences.get(batch.partition, 0)
            base_offset = _append(server, topic, batch, compression, producer, sequence)
            sequences[batch.partition] = sequence + len(batch.records)
            found |= {
                number: ProducedRecord(batch.partition, base_offset + delta)
                for delta, number in enumerate(batch.numbers)
            }
    except Exception:
        if producer is not None:
            _end(server, producer, commits=False)
        raise
    if producer is not None and outcome != "open":
        _end(server, producer, commits=outcome == "commit")
    return tuple(found[number] for number in range(len(records)))


def _topic(server: Server, name: str) -> Topic:
    """Return a topic; create it as a producer's request for metadata does."""
    cluster = server.state.cluster
    if cluster.topic(name) is None:
        error = missing_topic_error(cluster, name, True, server.state.clock.now_ms())
        save_if_possible(cluster)
        if cluster.topic(name) is None and error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise RequestRefused(f"topic {name!r}", error)
    return topic_named(server, name)


def _batches(topic: Topic, records: Sequence[NewRecord], now_ms: int) -> Iterator[_Batch]:
    """Yield the records by partition, in batches of about `BATCH_SIZE_BYTES`."""
    counts = {one.index: one.high_watermark - one.log_start_offset for one in topic.partitions}
    open_batches: dict[int, tuple[_Batch, int]] = {}
    for number, given in enumerate(records):
        key = _bytes(given.key)
        if given.partition is not None:
            partition = partition_of(topic, given.partition).index
        elif key is not None:
            partition = (murmur2(key) & 0x7FFFFFFF) % len(topic.partitions)
        else:
            partition = min(counts, key=lambda index: (counts[index], index))
        counts[partition] += 1
        timestamp_ms = now_ms if given.timestamp_ms is None else given.timestamp_ms
        record = Record(key, _bytes(given.value), tuple(_headers(given.headers)), timestamp_ms)
        size = RECORD_OVERHEAD_BYTES + sum(len(one or b"") for one in (record.key, record.value))
        batch, batch_size = open_batches.get(partition, (_Batch(partition, [], []), 0))
        if batch.records and batch_size + size > BATCH_SIZE_BYTES:
            yield batch
            batch, batch_size = _Batch(partition, [], []), 0
        batch.records.append(record._replace(offset=len(batch.records)))
        batch.numbers.append(number)
        open_batches[partition] = batch, batch_size + size
    yield from (batch for batch, _ in open_batches.values())


def _bytes(text: Text) -> bytes | None:
    if text is None or isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise UsageError(f"a key, value or header is text, bytes or None, not {text!r}")
    return text.encode()


def _headers(given: Mapping[str, Text] | Sequence[tuple[str, Text]]) -> Iterator[RecordHeader]:
    pairs: Iterable[tuple[str, Text]] = given if isinstance(given, (list, tuple)) else dict(given).items()
    return (RecordHeader(name, _bytes(value)) for name, value in pairs)


def _append(
    server: Server, topic: Topic, batch: _Batch, compression: Compression, producer: _Producer | None, sequence: int
) -> int:
    """Append a batch and return its base offset."""
    version = _produce_version(server)
    if version < BATCHES_SINCE:
        encoded = _message_set(batch.records, 1 if version >= MAGIC_1_SINCE else 0, compression)
    else:
        encoded = build_record_batch(
            batch.records,
            producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
            producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.epoch,
            base_sequence=NO_SEQUENCE if producer is None else sequence,
            compression=compression,
            flags=0 if producer is None else TRANSACTIONAL,
        )
    request = ProduceRequest(
        transactional_id=None if producer is None else producer.transactional_id,
        acks=ALL_ACKS,
        timeout_ms=TIMEOUT_MS,
        topic_data=(
            TopicProduceData(
                name=topic.name, partition_data=(PartitionProduceData(index=batch.partition, records=encoded),)
            ),
        ),
    )
    subject = f"{topic.name}-{batch.partition}"
    leader = topic.partitions[batch.partition].leader
    if leader not in server.state.cluster.nodes:
        raise RequestRefused(subject, ErrorCode.LEADER_NOT_AVAILABLE)
    ((response,),) = (one.partition_responses for one in ask(server, request, version, leader).responses)
    check(subject, response.error_code, response.error_message)
    base_offset: int = response.base_offset
    return base_offset


def _produce_version(server: Server) -> int:
    return min(NAMES_UNTIL, server.state.kafka_version.api_versions[PRODUCE][1])


def _message_set(records: list[Record], magic: int, compression: Compression) -> bytes:
    plain = [record._replace(timestamp=record.timestamp if magic else -1) for record in records]
    return build_message_set(plain, magic=magic, compression=compression)


def _begin(server: Server, transactional_id: str, topic: Topic, batches: list[_Batch]) -> _Producer:
    """Begin a transaction with the partitions of the batches. An earlier one of the id is aborted, and fenced."""
    from kproto.messages.k22_init_producer_id import InitProducerIdRequest
    from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic

    if InitProducerIdRequest._api_key not in server.state.kafka_version.api_versions:
        raise UsageError(f"Kafka version {server.state.kafka_version.name} has no transactions")
    subject = f"transactional id {transactional_id!r}"
    node = coordinator_of(server, TRANSACTION_TOPIC, transactional_id, subject)
    begin = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    for _ in range(CONCURRENT_TRIES):
        begun: Any = ask(server, begin, INIT_PRODUCER_ID, node.node_id)
        if begun.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
            break
    check(subject, begun.error_code)
    producer = _Producer(transactional_id, begun.producer_id, begun.producer_epoch, node.node_id)
    partitions = tuple(sorted({batch.partition for batch in batches}))
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic.name, partitions=partitions),),
    )
    for of_topic in ask(server, add, ADD_PARTITIONS, node.node_id).results_by_topic_v3_and_below:
        for one in of_topic.results_by_partition:
            check(f"{subject}, {topic.name}-{one.partition_index}", one.partition_error_code)
    return producer


def _end(server: Server, producer: _Producer, *, commits: bool) -> None:
    from kproto.messages.k26_end_txn import EndTxnRequest

    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commits,
    )
    error = ask(server, request, END_TXN, producer.coordinator_id).error_code
    check(f"transactional id {producer.transactional_id!r}", error)


def murmur2(data: bytes) -> int:
    """Return the hash by which Java's producer chooses the partition of a key, as an unsigned number."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        part = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        part = (part ^ part >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ part
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15
