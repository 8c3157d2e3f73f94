"""Random producers, fetchers and admins of two topics: requests are right, or wrong in one way or two."""

from __future__ import annotations

import re
import time
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
from kproto.records.compression import Compression
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import CONTROL, TRANSACTIONAL
from tests.differential.batches import Batch, readable
from tests.differential.history import Configs, History, make_topics, named, topic_id
from tests.differential.pair import CLOSED, Difference, Side
from tests.waiting import wait_until

DAY_MS = 86_400_000
NOW_MS = int(time.time() * 1000)
NEAR_MS = 3_600_000
"""A time this near is one of the brokers' clocks."""
CLOCK_TIMES = re.compile(r"-?\d{12,}")
ONE_SEGMENT: Configs = {"segment.ms": "9000000000000"}
"""So that answers do not end with segments (DEVIATIONS)."""
SETTINGS = {"offsets.topic.num.partitions": "1", "auto.create.topics.enable": "false"}
ALL_BYTES = 1 << 20
BATCHES_SINCE = 4
"""The version of Fetch from which on records are not converted."""
Wanted = dict[tuple[str, int], tuple[int, int, int]]
"""Topic and partition: offset, the leader epoch that the fetcher knows, and the one in which it has read last."""


class RecordHistory(History):
    def prepare(self) -> None:
        kinds: list[Configs] = [
            {},
            {"cleanup.policy": "compact"},
            {"message.timestamp.type": "LogAppendTime"},
            {"max.message.bytes": "400"},
            {"compression.type": self.random.choice(["gzip", "uncompressed", "lz4", "snappy"])},
            {f"message.timestamp.{'before' if self.release >= (3, 6) else 'difference'}.max.ms": "60000"},
        ]
        self.topics = {f"t{self.seed}-{each}": self.random.choice(kinds) for each in range(2)}
        for side in self.pair.sides:
            topics = {name: (2, {**configs, **ONE_SEGMENT}) for name, configs in self.topics.items()}
            make_topics(side, topics, self.versions)
            if self.serves(22):
                wait_until(lambda side=side: not self._ask_for_id(side).error_code, "a producer id")  # type: ignore[misc]
        self.producers: list[str] = []
        self.next_sequence: dict[tuple[str, str, int], int] = {}
        self.sent: dict[tuple[str, str, int, int], tuple[Record, ...]] = {}
        """What went with a sequence number, to be sent again."""
        self.session: tuple[int, bool] | None = None
        """The epoch that comes next, and whether topics go by id."""

    def _ask_for_id(self, side: Side) -> Any:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        return side.connection(0).ask(asked, self.versions[22][0])

    def step(self) -> None:
        actions = {
            self.produce: 40,
            self.fetch: 26,
            self.fetch_in_a_session: 10,
            self.list_offsets: 12,
            self.delete: 5,
            self.end_of_epoch: 5,
            self.become_idempotent: 6,
        }
        self.random.choices(list(actions), list(actions.values()))[0]()

    def shown(self, struct: Struct, fields: dict[str, Any]) -> None:
        match struct:
            case PartitionData():
                fields["records"] = None if struct.records is None else readable(struct.records)
            case ProduceResponse() | FetchResponse():
                fields["responses"] = flat(fields["responses"])
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

    def excuses(self, difference: Difference) -> bool:
        """Whether it is where records that were converted are cut off: ours are whole (DEVIATIONS)."""
        question = difference.question
        return (
            question.api == "Fetch"
            and question.version < BATCHES_SINCE
            and all(
                path.endswith(".records") and tested and real is not None and tested[: len(real)] == real
                for path, tested, real in difference.parts
            )
        )

    # Of what.

    def _topic(self) -> str:
        return str(self.mostly(self.random.choice(list(self.topics)), "nope", percent=95))

    def _partition(self) -> int:
        return int(self.mostly(self.random.choice([0, 0, 0, 1]), 2, -1, percent=94))

    def _kinds(self, *names: str) -> str:
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
        damage = self.mostly("", "checksum", "twice", "cut off", "empty", "magic", percent=95)
        batch = Batch(topic, partition, self._records(magic), compression, damage=damage, magic=magic)
        if magic == 2 and pick.random() < 0.02:
            return batch._replace(flags=pick.choice([TRANSACTIONAL, CONTROL]))
        if magic == 2 and self.producers and pick.random() < 0.35:
            return self._numbered(batch)
        return batch

    def _numbered(self, batch: Batch) -> Batch:
        """The batch as an idempotent producer's: the next one, one sent again, or one out of order."""
        producer = self.random.choice(self.producers)
        following = self.next_sequence.get((producer, batch.topic, batch.partition), 0)
        again = max(0, following - len(batch.records))
        sequence = self.mostly(following, again, following + 3, 0, percent=80)
        at = (producer, batch.topic, batch.partition, sequence)
        records = self.sent.get(at, batch.records) if self.random.random() < 0.6 else batch.records
        self.sent[at] = records
        return batch._replace(
            records=records, producer=producer, epoch=self.mostly(0, 1, percent=97), sequence=sequence
        )

    # What is asked.

    def produce(self) -> None:
        version = self.version(0)
        acks = self.random.choices([1, -1, 2], [45, 50, 5])[0]
        places = {(self._topic(), self._partition()) for _ in range(self.mostly(1, 2, 3, percent=60))}
        batches = [self._batch(version, *place) for place in sorted(places)]

        def build(side: Side) -> ProduceRequest:
            topics = [
                TopicProduceData(
                    **named(side, topic, "name", by_id=version >= 13),
                    partition_data=tuple(
                        PartitionProduceData(index=each.partition, records=each.encode(side))
                        for each in batches
                        if each.topic == topic
                    ),
                )
                for topic in dict.fromkeys(each.topic for each in batches)
            ]
            return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=tuple(topics))

        told = ", ".join(f"{each.damage or 'good'} {each.compression.name} {each.flags}" for each in batches)
        (answers,) = self.pair.ask(0, build, version, f"{told} for {self._kinds(*(b.topic for b in batches))}").values()
        if answers.real is not CLOSED:
            self._note_sequences(batches, answers.real)

    def _note_sequences(self, batches: list[Batch], answer: Any) -> None:
        name_of = {topic_id(self.pair.sides[1], name): name for name in self.topics}
        taken = {
            (topic.name or name_of.get(topic.topic_id, ""), partition.index)
            for topic in answer.responses
            for partition in topic.partition_responses
            if partition.error_code == 0
        }
        for batch in batches:
            place = batch.producer, batch.topic, batch.partition
            if batch.producer and place[1:] in taken:
                after = batch.sequence + len(batch.records)
                self.next_sequence[place] = max(self.next_sequence.get(place, 0), after)

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

        def build(side: Side) -> FetchRequest:
            return FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=ALL_BYTES,
                isolation_level=isolation_level,
                topics=self._fetched(side, wanted, version),
            )

        self.pair.ask(0, build, version, self._kinds(*(topic for topic, _ in wanted)))

    def _fetched(self, side: Side, wanted: Wanted, version: int) -> tuple[FetchTopic, ...]:
        return tuple(
            FetchTopic(
                **named(side, topic, "topic", by_id=version >= 13),
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

    def fetch_in_a_session(self) -> None:
        if self.versions[1][1] < 7:
            return
        kind = self.random.choices(["new", "unknown", "end", "jump", "go on"], [20, 5, 5, 5, 65])[0]
        if self.session is None:
            kind = "new"
        following, by_id = self.session or (0, self.random.random() < 0.5)
        version = self.version(1, 13 if by_id else 12)
        if not by_id:
            version = min(version, 12)
        epoch = {"new": 0, "unknown": 1, "end": -1, "jump": following + 5, "go on": following}[kind]
        wanted = {} if kind == "go on" and self.random.random() < 0.5 else self._wanted(3)
        forgotten = [(self._topic(), self._partition())] if epoch > 0 and self.random.random() < 0.2 else []

        def build(side: Side) -> FetchRequest:
            known = side.value("session")
            session_id = {"new": 0, "unknown": 777}.get(kind, known if isinstance(known, int) else 0)
            return FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=ALL_BYTES,
                session_id=session_id,
                session_epoch=epoch,
                topics=self._fetched(side, wanted, version),
                forgotten_topics_data=tuple(
                    ForgottenTopic(**named(side, topic, "topic", by_id=version >= 13), partitions=(partition,))
                    for topic, partition in forgotten
                ),
            )

        (answers,) = self.pair.ask(0, build, version, kind).values()
        if answers.real is CLOSED or answers.real.error_code:
            return
        if kind == "new":
            for side, answer in zip(self.pair.sides, answers, strict=True):
                side.note("session", answer.session_id, is_shown=False)
            self.session = (1, version >= 13) if answers.real.session_id else None
        elif kind == "go on":
            self.session = (following + 1, by_id) if answers.real.session_id else None
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
        asked = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
        self.pair.ask(0, lambda side: asked, version, self._kinds(*(topic for topic, _ in wanted)))

    def delete(self) -> None:
        if not self.serves(21):
            return
        topic, offset = self._topic(), self.random.choice([-1, 0, 1, 2, 4, 500, -3])
        partition = DeleteRecordsPartition(partition_index=self._partition(), offset=offset)
        asked = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(partition,)),), timeout_ms=5000)
        self.pair.ask(0, lambda side: asked, self.version(21), self._kinds(topic))

    def end_of_epoch(self) -> None:
        if not self.serves(23):
            return
        version = self.version(23)
        partition = OffsetForLeaderPartition(
            partition=self._partition(),
            leader_epoch=self.random.choice([0, 1, -1, 5]),
            current_leader_epoch=self.mostly(-1, 0, 4, percent=50) if version >= 2 else -1,
        )
        topic = OffsetForLeaderTopic(topic=self._topic(), partitions=(partition,))
        self.pair.ask(0, lambda side: OffsetForLeaderEpochRequest(replica_id=-1, topics=(topic,)), version)

    def become_idempotent(self) -> None:
        if not self.serves(22):
            return
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        (answers,) = self.pair.ask(0, lambda side: asked, self.version(22)).values()
        name = f"producer {len(self.producers)}"
        for side, answer in zip(self.pair.sides, answers, strict=True):
            side.note(name, answer.producer_id, is_shown=False)
        self.producers.append(name)


def flat(responses: list[dict[str, Any]]) -> list[list[Any]]:
    """Partitions by themselves: an answer may name a topic more than once, and has no order."""
    found = [
        [topic.get("topic", topic.get("name")), topic["topic_id"], partition]
        for topic in responses
        for partition in topic.get("partitions", topic.get("partition_responses", ()))
    ]
    return sorted(found, key=repr)
