"""The fast path of Produce is never semantics: with and without it, random requests have equal responses and results.

Two brokers get the same requests, mostly such as producers send them, with one thing in each of them that may be wrong.
One broker has no fast path.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from kproto.declaration import fields_of
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.records.batch_header import (
    APPEND_TIME,
    CHECKED_FROM,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    RecordBatchHeader,
)
from kproto.records.checksum import crc32c
from kproto.records.compression import Compression
from kproto.records.partitioning import TRANSACTION_TOPIC
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.handlers import k00_produce
from kproto_server.handlers._plain_batches import plain_batches
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import START_MS, ConnectedPair

TOPICS = {"plain": 3, "compacted": 1, "stamped": 1, "small": 1, "bounded": 1, "replicated": 1, "elsewhere": 1}
CONFIGS = {
    "compacted": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "small": {"max.message.bytes": "120"},
    "bounded": {"message.timestamp.before.max.ms": "1000"},
    "replicated": {"min.insync.replicas": "2"},
    TRANSACTION_TOPIC: {"cleanup.policy": "delete", "compression.type": "producer", "min.insync.replicas": "1"},
}
REQUESTS = 300
TRANSACTIONAL_IDS = ("id",) * 6 + (None, "other")
TRANSACTION = 2
"""The index of the producer that has transactions; the others have a producer id, or none."""


class Producers:
    """What the producers of one broker know, and the requests that they send."""

    def __init__(self, release: str, random: Random) -> None:
        self._random = random
        self.broker = InMemoryBroker(kafka_version=release, topics=TOPICS)
        self.client: ConnectedPair = self.broker.connect()
        self.responses: list[Any] = []
        self.client.ask(FindCoordinatorRequest(key="id", key_type=1), 1)
        for topic, configs in CONFIGS.items():
            self.broker.state.cluster.topics[topic].configs.update(configs)
        self.broker.state.cluster.topics["elsewhere"].partitions[0].leader = NO_LEADER
        self.ids = [(NO_PRODUCER_ID, -1)]
        for transactional_id in (None, "id"):
            made: Any = self.client.ask(
                InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 0
            )
            self.ids.append((made.producer_id, made.producer_epoch))
        self.sequences: dict[tuple[int, str, int], int] = {}
        """The next sequence of a producer in a partition."""
        self._sent: list[tuple[tuple[int, str, int], int]] = []

    def step(self) -> None:
        """Send a random request."""
        random, (producer_id, epoch) = self._random, self.ids[TRANSACTION]
        kind = random.random()
        if kind < 0.12:
            partitions = random.choice(((0, 1, 2), (random.randrange(3),)))
            topics = (AddPartitionsToTxnTopic(name="plain", partitions=partitions),)
            request: Any = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="id",
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
            )
            self.responses.append(self.client.ask(request, 0))
        elif kind < 0.2:
            request = EndTxnRequest(
                transactional_id="id", producer_id=producer_id, producer_epoch=epoch, committed=random.random() < 0.5
            )
            self.responses.append(self.client.ask(request, 0))
        else:
            self._produce()

    def _produce(self) -> None:
        random = self._random
        producer = random.choice((0, 1, 2, 2))
        topic = random.choice(("plain", "plain", "plain", *TOPICS, TRANSACTION_TOPIC, "missing"))
        data = []
        self._sent = []
        choices = (0, 1, 2, 0, 1, 2, 3, -1) if topic == "plain" else (0,)
        for index in {random.choice(choices) for _ in range(random.choice((1, 1, 2, 4)))}:
            data.append(PartitionProduceData(index=index, records=self._records(producer, topic, index)))
        self._send(
            ProduceRequest(
                transactional_id=random.choice(TRANSACTIONAL_IDS) if producer == TRANSACTION else None,
                acks=random.choice((-1, -1, -1, -1, -1, 1, 1, 7)),
                timeout_ms=1000,
                topic_data=(TopicProduceData(name=topic, partition_data=tuple(data)),),
            ),
            random.choice((3, 7, 8)) if self.broker.state.kafka_version.serves(0, 8) else 3,
        )

    def send(self, records: bytes) -> None:
        """Send one batch without a producer."""
        self._sent = []
        data = TopicProduceData(name="plain", partition_data=(PartitionProduceData(index=0, records=records),))
        self._send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,)), 3)

    def _send(self, request: ProduceRequest, version: int) -> None:
        try:
            response: Any = self.client.ask(request, version)
        except TimeoutError:
            response = self.client.close_reason
            self.client = self.broker.connect()
        else:
            results = response.responses[0].partition_responses
            self.sequences |= {
                at: after for (at, after), one in zip(self._sent, results, strict=False) if not one.error_code
            }
        self.responses.append(response)

    def _records(self, producer: int, topic: str, index: int) -> bytes:
        """Return a batch; some of them with one of many things that are unusual."""
        random, (producer_id, epoch) = self._random, self.ids[producer]
        unusual = random.choice((*range(17), *[None] * 40))
        count = random.choice((1, 1, 2, 40))
        at = producer, topic, index
        sequence = self.sequences.get(at, 0)
        late_ms = 10_000_000 if unusual == 1 else -5000 if unusual == 2 else 0
        timestamp = -1 if unusual == 3 else START_MS + late_ms
        records = [
            Record(
                offset=offset,
                timestamp=timestamp,
                key=random.choice((None, b"k")),
                value=bytes(random.choice((0, 5, 90))),
            )
            for offset in range(count)
        ]
        flags = TRANSACTIONAL if producer == TRANSACTION else 0
        encoded = build_record_batch(
            records,
            base_offset=0 if unusual != 5 else -1,
            producer_id=producer_id,
            producer_epoch=epoch if unusual != 6 else epoch + random.choice((-1, 1)),
            base_sequence=-1
            if producer_id == NO_PRODUCER_ID
            else max(0, sequence - count)
            if unusual == 7
            else sequence + 1
            if unusual == 8
            else sequence,
            compression=Compression.GZIP if unusual == 9 else Compression.NONE,
            flags=flags ^ TRANSACTIONAL if unusual == 10 else flags | APPEND_TIME if unusual == 11 else flags,
        )
        self._sent.append((at, sequence + count))
        position = random.randrange(len(encoded))
        if unusual == 12:
            return encoded[:position]
        if unusual == 13:
            return encoded + encoded[: random.choice((20, 70, len(encoded)))]
        if unusual == 14:
            return encoded[:position] + bytes([encoded[position] ^ 1 << random.randrange(8)]) + encoded[position + 1 :]
        if unusual == 15:  # the checksum is right, but the records are not
            return _resealed(encoded, HEADER_SIZE + random.randrange(len(encoded) - HEADER_SIZE), random)
        if unusual == 16:  # the same with the header
            return _resealed(encoded, random.randrange(21, HEADER_SIZE), random)
        return encoded

    def contents(self) -> list[Any]:
        """Return what the partitions have."""
        return [
            (
                name,
                partition.index,
                partition.data.read(0, 1 << 30, min_one_batch=True),
                [
                    (one, *(getattr(state, slot) for slot in state.__slots__))
                    for one, state in partition.data.producers.items()
                ],
                partition.data.transactions.open,
                len(partition.data.producers),
            )
            for name in TOPICS
            for partition in self.broker.state.cluster.topics[name].partitions
        ]


def _resealed(encoded: bytes, position: int, random: Random) -> bytes:
    """Return a batch with one byte changed, and the checksum of that."""
    return _with_checksum(encoded[:position] + bytes([random.randrange(256)]) + encoded[position + 1 :])


def _with_checksum(encoded: bytes) -> bytes:
    checked = encoded[CHECKED_FROM:]
    return encoded[:CRC_POSITION] + crc32c(checked).to_bytes(4, "big") + checked


class _Taken:
    """Counts what the fast path takes and leaves, as its stand-in."""

    def __init__(self) -> None:
        self.counts = Counter[bool]()

    def __call__(self, *arguments: Any) -> Any:
        append = plain_batches(*arguments)

        def count(*arguments: Any) -> Any:
            result = append(*arguments) if append else None
            self.counts[result is not None] += 1
            return result

        return count


def _without_fast_path(*arguments: Any) -> None:
    return None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("release", ["1.1", "2.8", "3.9", "latest"])
def test_requests_have_the_same_responses_and_results_without_the_fast_path(
    release: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = _Taken()
    both: list[Producers] = []
    for fast_path in (taken, _without_fast_path):
        monkeypatch.setattr(k00_produce, "plain_batches", fast_path)
        producers = Producers(release, Random(seed))  # noqa: S311 - reproducible
        for _ in range(REQUESTS):
            producers.step()
        both.append(producers)
    _check_equal(*both)
    assert taken.counts[True] > REQUESTS / 15, "the fast path is for most batches"


@pytest.mark.parametrize("release", ["1.1", "latest"])
def test_headers_have_the_same_responses_and_results_without_the_fast_path(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field of the header has the least, the greatest and other values, with the right checksum."""
    taken = _Taken()
    both: list[Producers] = []
    for fast_path in (taken, _without_fast_path):
        monkeypatch.setattr(k00_produce, "plain_batches", fast_path)
        producers = Producers(release, Random(0))  # noqa: S311 - reproducible
        for at, field in enumerate(fields_of(RecordBatchHeader)):
            bits = {"int8": 8, "int16": 16, "int32": 32, "uint32": 32, "int64": 64}[field.type.kind]
            half = 0 if field.type.kind == "uint32" else 1 << bits - 1
            for value in {-half, -2, -1, 0, 1, 2, START_MS, (1 << bits) - half - 1}:
                if -half <= value < (1 << bits) - half:
                    producers.send(_with_header(at, value, is_plain=field.name == "crc"))
        both.append(producers)
    _check_equal(*both)
    assert taken.counts[True] > 20
    assert taken.counts[False] > 20


def _with_header(at: int, value: int, *, is_plain: bool) -> bytes:
    record = Record(offset=0, timestamp=START_MS, key=b"k", value=b"v")
    encoded = build_record_batch([record], base_offset=0)
    values = list(HEADER.unpack_from(encoded))
    values[at] = value
    changed = HEADER.pack(*values) + encoded[HEADER_SIZE:]
    return changed if is_plain else _with_checksum(changed)


def _check_equal(one: Producers, other: Producers) -> None:
    for number, (response, other_response) in enumerate(zip(one.responses, other.responses, strict=True)):
        assert response == other_response, number
    assert one.contents() == other.contents()
