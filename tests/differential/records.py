"""Random producers, fetchers and admin clients of two topics: valid requests, and requests with one or two errors."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from kproto.declaration import Struct
from kproto.messages.k00_produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kproto.messages.k01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kproto.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kproto.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.records.batch_header import CONTROL, TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.record import Record, RecordHeader
from tests.differential.batches import Batch, comparable_batches
from tests.differential.broker_pair import CLOSED, ComparedBroker, Difference
from tests.differential.history import Configs, History, create_topics, topic_fields, topic_id
from tests.waiting import wait_until

DAY_MS = 86_400_000
NOW_MS = int(time.time() * 1000)
NEAR_MS = 3_600_000
"""A timestamp this close to now is from a broker's clock."""
CLOCK_TIMES = re.compile(r"-?\d{12,}")
ONE_SEGMENT: Configs = {"segment.ms": "9000000000000"}
"""A real broker's Fetch response ends with its segment (DEVIATIONS)."""
SETTINGS = {"offsets.topic.num.partitions": "1", "auto.create.topics.enable": "false"}
ALL_BYTES = 1 << 20
RECORD_BATCHES_SINCE = 4
"""The first version of Fetch without down-conversion."""
Wanted = dict[tuple[str, int], tuple[int, int, int]]
"""By topic and partition: fetch offset, current leader epoch, last fetched epoch."""


class RecordHistory(History):
    transactional_id: str | None = None
    """Of all Produce requests."""

    def prepare(self) -> None:
        choices: list[Configs] = [
            {},
            {"cleanup.policy": "compact"},
            {"message.timestamp.type": "LogAppendTime"},
            {"max.message.bytes": "400"},
            {"compression.type": self.random.choice(["gzip", "uncompressed", "lz4", "snappy"])},
            {f"message.timestamp.{'before' if self.release >= (3, 6) else 'difference'}.max.ms": "60000"},
        ]
        self.topics = {f"t{self.seed}-{each}": self.random.choice(choices) for each in range(2)}
        for broker in self.pair.brokers:
            topics = {name: (2, {**configs, **ONE_SEGMENT}) for name, configs in self.topics.items()}
            create_topics(broker, topics, self.versions)
            if self.serves(22):
                wait_until(lambda broker=broker: not self._request_producer_id(broker).error_code, "a producer id")  # type: ignore[misc]
        self.producers: list[str] = []
        self.next_sequence: dict[tuple[str, str, int], int] = {}
        self.sent: dict[tuple[str, str, int, int], tuple[Record, ...]] = {}
        """The records of each sequence number, to send them again."""
        self.session: tuple[int, bool] | None = None
        """The next epoch of the fetch session, and whether it names topics by id."""

    def _request_producer_id(self, broker: ComparedBroker) -> Any:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return broker.connection(0).ask(request, self.versions[22][0])

    def step(self) -> None:
        actions = self.actions()
        self.random.choices(list(actions), list(actions.values()))[0]()

    def actions(self) -> dict[Callable[[], None], int]:
        """Return the requests, each with its weight."""
        return {
            self.produce: 40,
            self.fetch: 26,
            self.fetch_in_session: 10,
            self.list_offsets: 12,
            self.delete: 5,
            self.offset_for_leader_epoch: 5,
            self.init_producer_id: 6,
        }

    def normalize(self, struct: Struct, fields: dict[str, Any]) -> None:
        match struct:
            case PartitionData():
                fields["records"] = None if struct.records is None else comparable_batches(struct.records)
            case ProduceResponse() | FetchResponse():
                fields["responses"] = flatten(fields["responses"])
                fields["node_endpoints"] = len(fields["node_endpoints"])
                fields["session_id"] = bool(getattr(struct, "session_id", 0))
            case InitProducerIdResponse():
                fields["producer_id"] = struct.producer_id >= 0
            case PartitionProduceResponse():
                fields["log_append_time_ms"] = struct.log_append_time_ms > 0
                fields["error_message"] = struct.error_message and CLOCK_TIMES.sub("TIME", struct.error_message)
            case BatchIndexAndErrorMessage():
                text = struct.batch_index_error_message
                fields["batch_index_error_message"] = text and CLOCK_TIMES.sub("TIME", text)
            case ListOffsetsPartitionResponse() if 0 <= struct.timestamp - NOW_MS < NEAR_MS:
                fields["timestamp"] = "now"

    def is_allowed(self, difference: Difference) -> bool:
        """Return whether real Kafka truncates converted records: kproto returns whole batches (DEVIATIONS)."""
        request = difference.request
        return (
            request.api == "Fetch"
            and request.version < RECORD_BATCHES_SINCE
            and all(
                path.endswith(".records") and tested and real is not None and tested[: len(real)] == real
                for path, tested, real in difference.parts
            )
        )

    # -- targets

    def _topic(self) -> str:
        return str(self.mostly(self.random.choice(list(self.topics)), "nope", percent=95))

    def _partition(self) -> int:
        return int(self.mostly(self.random.choice([0, 0, 0, 1]), 2, -1, percent=94))

    def _topic_configs(self, *names: str) -> str:
        return str([self.topics.get(name) for name in names])

    def _records(self, magic: int) -> tuple[Record, ...]:
        pick = self.random
        start_ms = self.mostly(NOW_MS - pick.choice([0, 5000, DAY_MS, 30 * DAY_MS]), NOW_MS + 3 * DAY_MS, percent=97)
        apart_ms = pick.choice([0, 1, 1000])
        found = []
        for offset in range(pick.choice([1, 1, 2, 3, 5])):
            key = self.mostly(pick.choice([b"k1", b"k2"]), None, b"k", percent=75)
            value = pick.choice([b"v%d" % pick.randint(0, 99), b"x" * pick.choice([10, 300]), None, b""])
            headers = (RecordHeader("h", b"1"),) if magic == 2 and pick.random() < 0.1 else ()
            timestamp = start_ms + apart_ms * offset if magic else -1
            found.append(Record(key, value, headers, timestamp, offset))
        return tuple(found)

    def _batch(self, version: int, topic: str, partition: int) -> Batch:
        pick = self.random
        magic = 2 if version >= 3 else pick.choice([0, 1] if version == 2 else [0])
        codecs = [Compression.GZIP, Compression.SNAPPY] + [Compression.LZ4] * (magic > 0)
        codecs += [Compression.ZSTD] * (version >= 7)
        compression = self.mostly(Compression.NONE, *codecs, percent=70)
        corruption = self.mostly("", "checksum", "twice", "truncated", "empty", "magic", percent=95)
        batch = Batch(topic, partition, self._records(magic), compression, corruption=corruption, magic=magic)
        if magic == 2 and pick.random() < 0.02:
            return batch._replace(flags=pick.choice([TRANSACTIONAL, CONTROL]))
        if magic == 2 and self.producers and pick.random() < 0.35:
            return self._with_sequence(batch)
        return batch

    def _with_sequence(self, batch: Batch) -> Batch:
        """Return the batch as an idempotent producer's: the next one, a duplicate, or one out of order."""
        producer = self.random.choice(self.producers)
        next_sequence = self.next_sequence.get((producer, batch.topic, batch.partition), 0)
        duplicate = max(0, next_sequence - len(batch.records))
        sequence = self.mostly(next_sequence, duplicate, next_sequence + 3, 0, percent=80)
        key = (producer, batch.topic, batch.partition, sequence)
        records = self.sent.get(key, batch.records) if self.random.random() < 0.6 else batch.records
        self.sent[key] = records
        return batch._replace(
            records=records, producer=producer, epoch=self.mostly(0, 1, percent=97), sequence=sequence
        )

    # -- requests

    def produce(self) -> None:
        version = self.version(0)
        acks = self.random.choices([1, -1, 2], [45, 50, 5])[0]
        partitions = {(self._topic(), self._partition()) for _ in range(self.mostly(1, 2, 3, percent=60))}
        batches = [self._batch(version, *partition) for partition in sorted(partitions)]

        def build(broker: ComparedBroker) -> ProduceRequest:
            topics = [
                TopicProduceData(
                    **topic_fields(broker, topic, "name", by_id=version >= 13),
                    partition_data=tuple(
                        PartitionProduceData(index=each.partition, records=each.encode(broker))
                        for each in batches
                        if each.topic == topic
                    ),
                )
                for topic in dict.fromkeys(each.topic for each in batches)
            ]
            return ProduceRequest(
                transactional_id=self.transactional_id if version >= 3 else None,
                acks=acks,
                timeout_ms=5000,
                topic_data=tuple(topics),
            )

        note = ", ".join(f"{each.corruption or 'good'} {each.compression.name} {each.flags}" for each in batches)
        (responses,) = self.pair.send(
            0, build, version, f"{note} for {self._topic_configs(*(b.topic for b in batches))}"
        ).values()
        if responses.real is not CLOSED:
            self._note_sequences(batches, responses.real)

    def _note_sequences(self, batches: list[Batch], response: Any) -> None:
        name_of = {topic_id(self.pair.brokers[1], name): name for name in self.topics}
        appended = {
            (topic.name or name_of.get(topic.topic_id, ""), partition.index)
            for topic in response.responses
            for partition in topic.partition_responses
            if partition.error_code == 0
        }
        for batch in batches:
            key = batch.producer, batch.topic, batch.partition
            if batch.producer and key[1:] in appended:
                after = batch.sequence + len(batch.records)
                self.next_sequence[key] = max(self.next_sequence.get(key, 0), after)

    def _wanted(self, most: int) -> Wanted:
        return {
            (self._topic(), self._partition()): (
                self.mostly(self.random.choice([0, self.random.randint(0, 12)]), 1000, -1, percent=94),
                self.mostly(-1, 0, 1, 5, percent=85),
                self.mostly(-1, 0, 3, percent=90),
            )
            for _ in range(self.random.randint(1, most))
        }

    def fetch(self) -> None:
        version, wanted = self.version(1), self._wanted(2)
        isolation_level = self.random.choice([0, 1]) if version >= 4 else 0

        def build(broker: ComparedBroker) -> FetchRequest:
            return FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=ALL_BYTES,
                isolation_level=isolation_level,
                topics=self._fetched(broker, wanted, version),
            )

        self.pair.send(0, build, version, self._topic_configs(*(topic for topic, _ in wanted)))

    def _fetched(self, broker: ComparedBroker, wanted: Wanted, version: int) -> tuple[FetchTopic, ...]:
        return tuple(
            FetchTopic(
                **topic_fields(broker, topic, "topic", by_id=version >= 13),
                partitions=tuple(
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=ALL_BYTES,
                        current_leader_epoch=epoch if version >= 9 else -1,
                        last_fetched_epoch=last_epoch if version >= 12 else -1,
                    )
                    for (name, partition), (offset, epoch, last_epoch) in wanted.items()
                    if name == topic
                ),
            )
            for topic in dict.fromkeys(topic for topic, _ in wanted)
        )

    def fetch_in_session(self) -> None:
        if self.versions[1][1] < 7:
            return
        kind = self.random.choices(["new", "unknown", "end", "jump", "continue"], [20, 5, 5, 5, 65])[0]
        if self.session is None:
            kind = "new"
        next_epoch, by_id = self.session or (0, self.random.random() < 0.5)
        version = self.version(1, 13 if by_id else 12)
        if not by_id:
            version = min(version, 12)
        epoch = {"new": 0, "unknown": 1, "end": -1, "jump": next_epoch + 5, "continue": next_epoch}[kind]
        wanted = {} if kind == "continue" and self.random.random() < 0.5 else self._wanted(3)
        forgotten = [(self._topic(), self._partition())] if epoch > 0 and self.random.random() < 0.2 else []

        def build(broker: ComparedBroker) -> FetchRequest:
            known = broker.value("session")
            session_id = {"new": 0, "unknown": 777}.get(kind, known if isinstance(known, int) else 0)
            return FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=ALL_BYTES,
                session_id=session_id,
                session_epoch=epoch,
                topics=self._fetched(broker, wanted, version),
                forgotten_topics_data=tuple(
                    ForgottenTopic(**topic_fields(broker, topic, "topic", by_id=version >= 13), partitions=(partition,))
                    for topic, partition in forgotten
                ),
            )

        (responses,) = self.pair.send(0, build, version, kind).values()
        if responses.real is CLOSED or responses.real.error_code:
            return
        if kind == "new":
            for broker, response in zip(self.pair.brokers, responses, strict=True):
                broker.note("session", response.session_id, is_shown=False)
            self.session = (1, version >= 13) if responses.real.session_id else None
        elif kind == "continue":
            self.session = (next_epoch + 1, by_id) if responses.real.session_id else None
        elif kind == "end":
            self.session = None

    def list_offsets(self) -> None:
        version = self.version(2, 1)
        times = [-1, -2, -1, -2, 0, NOW_MS, NOW_MS - 5000, NOW_MS - DAY_MS, NOW_MS + 10 * DAY_MS, -4, -5, -6, -7]
        wanted = {
            (self._topic(), self._partition()): (self.random.choice(times), self.mostly(-1, 0, 3))
            for _ in range(self.random.randint(1, 3))
        }
        isolation_level = self.random.choice([0, 1]) if version >= 2 else 0
        topics = tuple(
            ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsPartition(
                        partition_index=partition,
                        timestamp=timestamp,
                        current_leader_epoch=epoch if version >= 4 else -1,
                    )
                    for (name, partition), (timestamp, epoch) in wanted.items()
                    if name == topic
                ),
            )
            for topic in dict.fromkeys(topic for topic, _ in wanted)
        )
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
        self.pair.send(0, lambda broker: request, version, self._topic_configs(*(topic for topic, _ in wanted)))

    def delete(self) -> None:
        if not self.serves(21):
            return
        topic, offset = self._topic(), self.random.choice([-1, 0, 1, 2, 4, 500, -3])
        partition = DeleteRecordsPartition(partition_index=self._partition(), offset=offset)
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=topic, partitions=(partition,)),), timeout_ms=5000
        )
        self.pair.send(0, lambda broker: request, self.version(21), self._topic_configs(topic))

    def offset_for_leader_epoch(self) -> None:
        if not self.serves(23):
            return
        version = self.version(23)
        partition = OffsetForLeaderPartition(
            partition=self._partition(),
            leader_epoch=self.random.choice([0, 1, -1, 5]),
            current_leader_epoch=self.mostly(-1, 0, 4, percent=50) if version >= 2 else -1,
        )
        topic = OffsetForLeaderTopic(topic=self._topic(), partitions=(partition,))
        self.pair.send(0, lambda broker: OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,)), version)

    def init_producer_id(self) -> None:
        if not self.serves(22):
            return
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        (responses,) = self.pair.send(0, lambda broker: request, self.version(22)).values()
        name = f"producer {len(self.producers)}"
        for broker, response in zip(self.pair.brokers, responses, strict=True):
            broker.note(name, response.producer_id, is_shown=False)
        self.producers.append(name)


def flatten(responses: list[dict[str, Any]]) -> list[list[Any]]:
    """Return the partitions of all topics, sorted: a response may name a topic several times, in any order."""
    found = [
        [topic.get("topic", topic.get("name")), topic["topic_id"], partition]
        for topic in responses
        for partition in topic.get("partitions", topic.get("partition_responses", ()))
    ]
    return sorted(found, key=repr)
