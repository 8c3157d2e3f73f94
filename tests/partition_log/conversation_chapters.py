"""The questions of `conversation`, by chapter; each makes the topics that it asks about."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Alteration
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as AlteredResource
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from kproto.records.batch_header import CONTROL, HEADER_SIZE, TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch, read_record_batch, seal

if TYPE_CHECKING:
    from tests.partition_log.conversation import Chapter, Talk

T0 = 1_700_000_000_000


def records(count: int, *, key: bytes | None = b"k", size: int = 3, timestamp: int = T0) -> list[Record]:
    return [Record(key, b"v" * size, timestamp=timestamp + 10 * n, offset=n) for n in range(count)]


def batch(count: int = 1, *, key: bytes | None = b"k", size: int = 3, timestamp: int = T0, **fields: Any) -> bytes:
    return build_record_batch(records(count, key=key, size=size, timestamp=timestamp), **fields)


def message_set(count: int = 1, magic: int = 1, *, key: bytes | None = b"k", **fields: Any) -> bytes:
    made = [r._replace(timestamp=r.timestamp if magic else -1) for r in records(count, key=key)]
    return build_message_set(made, magic=magic, **fields)


def with_header(encoded: bytes, **fields: Any) -> bytes:
    header = read_record_batch(encoded)[0].header.replace(**fields)
    return seal(header, encoded[HEADER_SIZE:])


def produce(
    talk: Talk,
    note: str,
    topic: str,
    encoded: bytes | None,
    version: int,
    *,
    acks: int = 1,
    partition: int = 0,
    client_id: str = "oracle",
    transactional_id: str | None = None,
) -> Any:
    data = TopicProduceData(
        name=topic if version < 13 else "",
        topic_id=talk.topic_ids.get(topic, bytes(15) + b"\x07") if version >= 13 else bytes(16),
        partition_data=(PartitionProduceData(index=partition, records=encoded),),
    )
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=(data,))
    return talk.ask(note, request, version, client_id=client_id, has_response=acks != 0)


def fetch(
    talk: Talk,
    note: str,
    wanted: dict[str, dict[int, int]],
    version: int,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, -1),
    forgotten: dict[str, list[int]] | None = None,
    epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> Any:
    """``wanted``: topic, partition, offset."""
    by_id = version >= 13

    def named(topic: str) -> dict[str, Any]:
        return {"topic_id": talk.topic_ids.get(topic, bytes(15) + b"\x07")} if by_id else {"topic": topic}

    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level if version >= 4 else 0,
        session_id=session[0] if version >= 7 else 0,
        session_epoch=session[1] if version >= 7 else -1,
        topics=tuple(
            FetchTopic(
                **named(topic),
                partitions=tuple(
                    FetchPartition(
                        partition=number,
                        fetch_offset=offset,
                        partition_max_bytes=partition_max_bytes,
                        current_leader_epoch=epoch if version >= 9 else -1,
                        last_fetched_epoch=last_fetched_epoch if version >= 12 else -1,
                    )
                    for number, offset in partitions.items()
                ),
            )
            for topic, partitions in wanted.items()
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(**named(topic), partitions=tuple(partitions))
            for topic, partitions in (forgotten or {}).items()
        ),
    )
    return talk.ask(note, request, version)


def newest(talk: Talk, api_key: int) -> int:
    return int(talk.versions[api_key][1])


def writing(talk: Talk) -> None:
    """BA-60 to BA-63: what is written and what is refused, in all versions from 3 on."""
    talk.create("v", 2)
    talk.create("broken")
    talk.create("c", cleanup_policy="compact")
    talk.create("small", max_message_bytes="300")
    talk.create("append", message_timestamp_type="LogAppendTime")
    talk.create("gzip", compression_type="gzip")
    talk.create("plain", compression_type="uncompressed")
    talk.has_offsets_topic()
    for version in talk.every(0, 3):
        produce(talk, "good", "v", batch(2), version)
        produce(talk, "good, all acks", "v", batch(2), version, acks=-1)
        produce(talk, "two batches", "v", batch() + batch(), version)
        produce(talk, "empty", "v", b"", version)
        produce(talk, "wrong checksum", "v", batch()[:-1] + b"x", version)
        produce(talk, "base offset 5", "v", with_header(batch(), base_offset=5), version)
        produce(talk, "magic 1", "v", message_set(2), version)
        produce(talk, "control", "v", with_header(batch(), attributes=CONTROL), version)
        produce(talk, "transactional, no id", "v", with_header(batch(), attributes=TRANSACTIONAL), version)
        produce(talk, "too large", "small", batch(size=400), version)
        produce(talk, "acks 2", "v", batch(), version, acks=2)
        produce(talk, "internal", "__consumer_offsets", batch(), version)
        produce(
            talk, "internal, by the admin client", "__consumer_offsets", batch(), version, client_id="__admin_client"
        )
        produce(talk, "unknown topic", "nowhere", batch(), version)
        produce(talk, "unknown partition", "v", batch(), version, partition=9)
        produce(talk, "no key", "c", batch(2, key=None), version)
        produce(talk, "no key, compressed", "c", batch(2, key=None, compression=Compression.GZIP), version)
        some = build_record_batch([Record(b"k", b"v", offset=0), Record(None, b"v", offset=1)])
        produce(talk, "no key in one", "c", some, version)
        produce(talk, "append time", "append", batch(2), version)
        produce(talk, "zstd", "v", batch(2, compression=Compression.ZSTD), version)
        produce(talk, "no acks", "v", batch(), version, acks=0)
        produce(talk, "no acks, unknown topic", "nowhere", batch(), version, acks=0)
        produce(talk, "no acks, too large", "small", batch(size=400), version, acks=0)
    version = newest(talk, 0)
    produce(talk, "delta larger than the count", "v", with_header(batch(2), last_offset_delta=4), version)
    produce(talk, "no records in it", "v", with_header(batch(2), record_count=0), version)
    produce(
        talk, "count and delta 0", "v", seal(read_record_batch(batch())[0].header.replace(record_count=0), b""), version
    )
    produce(
        talk,
        "fewer records than it says",
        "broken",
        with_header(batch(2), record_count=3, last_offset_delta=2),
        version,
    )
    produce(talk, "null", "broken", None, version)
    produce(talk, "torn", "broken", batch(2)[:-3], version)
    produce(talk, "not a batch", "broken", b"\0" * 20, version)
    produce(talk, "gzip that is none", "broken", with_header(batch(2), attributes=1), version)
    produce(talk, "codec 7", "v", with_header(batch(2), attributes=7), version)
    produce(talk, "good, for a gzip topic", "gzip", batch(20), version)
    produce(talk, "snappy, for a plain topic", "plain", batch(20, compression=Compression.SNAPPY), version)
    produce(
        talk,
        "offsets that jump",
        "v",
        build_record_batch([Record(b"k", b"v", offset=0), Record(b"k", b"v", offset=2)]),
        version,
    )
    for topic in ("v", "gzip", "plain", "append", "c"):
        fetch(talk, f"what {topic} has", {topic: {0: 0}}, newest(talk, 1))


def message_sets(talk: Talk) -> None:
    """Versions 0 to 2, where records are message sets, and what comes of them (BA-77)."""
    talk.create("old")
    talk.create("olds", cleanup_policy="compact")
    talk.create("oldappend", message_timestamp_type="LogAppendTime")
    for version in range(3):
        for magic in (0, 1, 2):
            encoded = batch(2) if magic == 2 else message_set(2, magic)
            produce(talk, f"magic {magic}", "old", encoded, version)
        produce(talk, "compressed", "old", message_set(3, min(1, version), compression=Compression.GZIP), version)
        produce(talk, "wrong checksum", "old", message_set(2)[:-1] + b"x", version)
        produce(talk, "empty", "old", b"", version)
        produce(talk, "torn", "old", message_set(2)[:-2], version)
        produce(talk, "both magics", "old", message_set(1, 0) + message_set(1, 1), version)
        produce(talk, "no key", "olds", message_set(2, key=None), version)
        produce(talk, "append time", "oldappend", message_set(2, min(1, version)), version)
        produce(talk, "no acks", "old", message_set(1), version, acks=0)
        produce(talk, "unknown topic", "nowhere", message_set(1), version)
    produce(talk, "batch with headers", "old", batch(3), 3)
    produce(talk, "gzip batch", "old", batch(3, compression=Compression.GZIP), 3)
    for version in (0, 1, 2, 3, 4):
        fetch(talk, "all there is", {"old": {0: 0}}, version)
        fetch(talk, "from the middle of a batch", {"old": {0: 1}}, version)
        fetch(talk, "little", {"old": {0: 0}}, version, partition_max_bytes=50)
        fetch(talk, "of append time", {"oldappend": {0: 0}}, version)


def producers(talk: Talk) -> None:
    """BA-65, BA-100: idempotent producers."""
    talk.create("i")
    first: Any = None
    talk.gets_producer_ids()
    for version in talk.every(22):
        first = talk.ask("new id", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), version)
        talk.ask(
            "empty transactional id", InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000), version
        )
    if newest(talk, 22) >= 3:
        again = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=0, producer_id=first.producer_id, producer_epoch=0
        )
        talk.ask("id and epoch given", again, 3)
        talk.ask("epoch missing", again.replace(producer_epoch=-1), 3)
    version = newest(talk, 0)

    def say(note: str, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 0) -> None:
        encoded = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        produce(talk, note, "i", encoded, version)

    say("first", 0, 2)
    say("second", 2)
    say("second again", 2)
    say("first again", 0, 2)
    say("part of the first", 1)
    say("more than the second", 2, 3)
    say("gap", 9)
    for sequence in range(3, 9):
        say("further", sequence)
    say("seven back", 2)
    say("four back", 5)
    say("epoch 1, not from 0", 9, epoch=1)
    say("epoch 1", 0, epoch=1)
    say("epoch 0 again", 9)
    say("another producer, from 7", 7, producer_id=77)
    say("another producer, from 8", 8, producer_id=77)
    say("near the end", 2**31 - 2, 2, producer_id=78)
    say("over the end", 0, 1, producer_id=78)
    say("negative", -5, 1, producer_id=79)
    say("over the end at once", 2**31 - 1, 2, producer_id=80)
    say("over the end at once, on", 1, 1, producer_id=80)
    append = batch(1, producer_id=81, producer_epoch=0, base_sequence=0)
    talk.create("iappend", message_timestamp_type="LogAppendTime")
    produce(talk, "append time", "iappend", append, version)
    produce(talk, "append time, again", "iappend", append, version)
    asked = DescribeProducersRequest(
        topics=(TopicRequest(name="i", partition_indexes=(0, 4)), TopicRequest(name="nowhere", partition_indexes=(0,)))
    )
    talk.ask("producers", asked, 0)


def timestamps(talk: Talk) -> None:
    """BA-62: timestamps out of bounds."""
    kafka4 = not talk.serves(0, 2)
    if newest(talk, 0) >= 10:
        talk.create("near", message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000")
    if not kafka4:
        talk.create("far", message_timestamp_difference_max_ms="60000")
    talk.create("any")
    now_ms = int(time.time() * 1000)
    version = newest(talk, 0)
    for topic in ("near", "far", "any"):
        if topic not in talk.topic_ids:
            continue
        produce(talk, "now", topic, batch(timestamp=now_ms), version)
        produce(talk, "no timestamp", topic, batch(timestamp=-1), version)
        produce(talk, "long ago", topic, batch(timestamp=now_ms - 120_000), version)
        produce(talk, "in two minutes", topic, batch(timestamp=now_ms + 120_000), version)
        produce(talk, "in two hours", topic, batch(timestamp=now_ms + 7_200_000), version)
        two = build_record_batch(
            [Record(b"k", b"v", timestamp=now_ms + 120_000, offset=0), Record(b"k", b"v", timestamp=now_ms, offset=1)]
        )
        produce(talk, "one of two", topic, two, version)
        fetch(talk, f"what {topic} has", {topic: {0: 0}}, newest(talk, 1))
    wrong = with_header(batch(2, timestamp=now_ms), max_timestamp=now_ms + 5_000)
    produce(talk, "greatest timestamp is none's", "any", wrong, version)
    fetch(talk, "and what is stored", {"any": {0: 4}}, newest(talk, 1))


def reading(talk: Talk) -> None:
    """BA-70 to BA-75, BA-80 to BA-83: fetches and offsets of topics with something in them."""
    talk.create("r", 3)
    talk.create("empty", 2)
    for size in (20, 300, 300):
        produce(talk, "filled", "r", batch(2, size=size, timestamp=T0 + size), 3)
    produce(talk, "filled", "r", batch(1, size=10, timestamp=T0 - 1000), 3)
    produce(talk, "filled", "r", batch(5, size=20, timestamp=T0 + 9000), 3, partition=1)
    for version in talk.every(1):
        fetch(talk, "all", {"r": {0: 0, 1: 0, 2: 0}}, version)
        fetch(talk, "read committed", {"r": {0: 0}}, version, isolation_level=1)
        fetch(talk, "from the middle", {"r": {0: 3, 1: 4}}, version)
        fetch(talk, "at the end", {"r": {0: 7}}, version)
        fetch(talk, "beyond the end", {"r": {0: 8}}, version)
        fetch(talk, "before the start", {"r": {0: -1}}, version)
        fetch(talk, "beyond the end beside records", {"r": {0: 8, 1: 0}}, version, min_bytes=1000, max_wait_ms=300)
        fetch(talk, "small budget", {"r": {0: 0, 1: 0}}, version, max_bytes=100)
        fetch(talk, "budget for one and a half", {"r": {0: 0, 1: 0}}, version, max_bytes=1000)
        fetch(talk, "budget for all but one", {"r": {1: 0, 0: 0}}, version, max_bytes=1700)
        fetch(talk, "no budget", {"r": {0: 0, 1: 0}}, version, max_bytes=0)
        fetch(talk, "small partitions", {"r": {0: 0, 1: 0}}, version, partition_max_bytes=100)
        fetch(talk, "partitions of 0 bytes", {"r": {0: 0, 1: 0}}, version, partition_max_bytes=0)
        fetch(talk, "empty ones first", {"empty": {0: 0}, "r": {2: 0, 0: 2}}, version, partition_max_bytes=100)
        fetch(talk, "enough", {"r": {1: 0}}, version, min_bytes=100, max_wait_ms=300)
        fetch(talk, "not enough", {"r": {1: 0}}, version, min_bytes=100_000, max_wait_ms=300)
        fetch(
            talk,
            "not enough by far, but for the partition",
            {"r": {0: 0}},
            version,
            min_bytes=1000,
            max_wait_ms=300,
            partition_max_bytes=200,
        )
        fetch(talk, "no bytes wanted", {"empty": {0: 0}}, version, min_bytes=0, max_wait_ms=300)
        fetch(talk, "epoch 0", {"r": {1: 0}}, version, epoch=0)
        fetch(talk, "epoch 1", {"r": {1: 0}}, version, epoch=1)
        fetch(talk, "last fetched epoch 0", {"r": {1: 2}}, version, last_fetched_epoch=0)
        fetch(talk, "last fetched epoch 3", {"r": {1: 2}}, version, last_fetched_epoch=3)
    for version in talk.every(2):
        for timestamp in (
            -1,
            -2,
            -3,
            -4,
            -5,
            -6,
            -7,
            0,
            T0 - 1000,
            T0,
            T0 + 5,
            T0 + 20,
            T0 + 31,
            T0 + 300,
            T0 + 311,
            T0 + 9040,
            T0 + 9041,
        ):
            offsets(
                talk,
                f"time {timestamp - T0 if timestamp > 0 else timestamp}",
                {"r": {0: timestamp, 1: timestamp, 2: timestamp}},
                version,
            )
        offsets(talk, "read committed", {"r": {0: -1}}, version, isolation_level=1)


def offsets(talk: Talk, note: str, wanted: dict[str, dict[int, int]], version: int, *, isolation_level: int = 0) -> Any:
    topics = tuple(
        ListOffsetsTopic(
            name=name,
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=number, timestamp=timestamp, **({"max_num_offsets": 3} if version == 0 else {})
                )
                for number, timestamp in partitions.items()
            ),
        )
        for name, partitions in wanted.items()
    )
    level = isolation_level if version >= 2 else 0
    return talk.ask(note, ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=topics), version)


def delete_records(talk: Talk, note: str, topic: str, offset: int, version: int, partition: int = 0) -> Any:
    partitions = (DeleteRecordsPartition(partition_index=partition, offset=offset),)
    asked = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=partitions),), timeout_ms=1000)
    return talk.ask(note, asked, version)


def deleting(talk: Talk) -> None:
    """DeleteRecords, and what is left to read; OffsetForLeaderEpoch."""
    talk.create("del", 2)
    talk.create("keep", cleanup_policy="compact")
    talk.create("both", cleanup_policy="compact,delete")
    for _ in range(4):
        produce(talk, "filled", "del", batch(2), 3)
        produce(talk, "filled", "keep", batch(2), 3)
        produce(talk, "filled", "both", batch(2), 3)

    delete = partial(delete_records, talk)
    for version in talk.every(21):
        delete("below the start", "del", 0, version)
        delete("negative", "del", -5, version)
        delete("in a batch", "del", 3 + version, version)
        delete("beyond the end", "del", 9, version)
        delete("compacted", "keep", 1, version)
        delete("compacted and deleted", "both", 1, version)
        delete("unknown topic", "nowhere", 1, version)
        delete("unknown partition", "del", 1, version, partition=7)
        delete("empty", "del", 0, version, partition=1)
        delete("internal", "__consumer_offsets", 0, version)
    least = max(5, talk.versions[1][0])
    fetch(talk, "below the start", {"del": {0: 2}}, least)
    fetch(talk, "at the start", {"del": {0: 5}}, least)
    offsets(talk, "start", {"del": {0: -2}}, max(1, talk.versions[2][0]))
    offsets(talk, "time", {"del": {0: T0}}, max(1, talk.versions[2][0]))
    produce(talk, "tells the start", "del", batch(), max(5, talk.versions[0][0]))
    delete("all", "del", -1, talk.versions[21][1])
    fetch(talk, "nothing left", {"del": {0: 9}}, least)
    offsets(talk, "start and end", {"del": {0: -2}}, max(1, talk.versions[2][0]))
    offsets(talk, "time, nothing left", {"del": {0: 0}}, max(1, talk.versions[2][0]))
    for version in talk.every(23):
        for epoch in (-1, 0, 1, 7):
            partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
            topics = tuple(
                OffsetForLeaderTopic(topic=name, partitions=(partition,)) for name in ("del", "empty", "r", "nowhere")
            )
            talk.ask(f"epoch {epoch}", OffsetForLeaderEpochRequest(replica_id=-2, topics=topics), version)


def sessions(talk: Talk) -> None:
    """BA-76: fetch sessions (KIP-227)."""
    talk.create("s", 3)
    for version in talk.every(1, 7):
        none: dict[str, dict[int, int]] = {}
        opened = fetch(talk, "session opened", {"s": {0: 0, 1: 0, 2: 0}}, version, session=(0, 0))
        session = opened.session_id
        at = {p: q.high_watermark for t in opened.responses for q in t.partitions for p in [q.partition_index]}
        fetch(talk, "session, from the ends", {"s": at}, version, session=(session, 1))
        fetch(talk, "session, nothing new", none, version, session=(session, 2))
        produce(talk, "for the session", "s", batch(2), 3)
        fetch(talk, "session, records", none, version, session=(session, 3))
        fetch(talk, "session, records again", none, version, session=(session, 4))
        fetch(talk, "session, moved on", {"s": {0: at[0] + 2}}, version, session=(session, 5))
        fetch(talk, "session, nothing new, moved on", none, version, session=(session, 6))
        fetch(talk, "session, repeats an epoch", none, version, session=(session, 6))
        fetch(talk, "session, future epoch", none, version, session=(session, 20))
        fetch(talk, "session, forgets one", none, version, session=(session, 7), forgotten={"s": [0]})
        produce(talk, "for the session", "s", batch(1), 3)
        fetch(talk, "session, not of the forgotten", none, version, session=(session, 8))
        fetch(talk, "session, one that does not exist", {"s": {9: 0}, "nowhere": {0: 0}}, version, session=(session, 9))
        fetch(talk, "session, still not there", none, version, session=(session, 10))
        fetch(talk, "session, beyond the end", {"s": {1: 5000}}, version, session=(session, 11))
        fetch(talk, "session, still beyond the end", none, version, session=(session, 12))
        fetch(
            talk,
            "session, forgets all",
            none,
            version,
            session=(session, 13),
            forgotten={"s": [1, 2, 9], "nowhere": [0]},
        )
        fetch(talk, "session, empty", none, version, session=(session, 14))
        fetch(talk, "session, closed", none, version, session=(session, -1))
        fetch(talk, "session, after its end", none, version, session=(session, 15))
        fetch(talk, "session unknown", none, version, session=(12345, 1))
        fetch(talk, "session 0, epoch 1", {"s": {0: 0}}, version, session=(0, 1))
        fetch(talk, "session opened, empty", none, version, session=(0, 0))
        again = fetch(talk, "session opened", {"s": {0: 0}}, version, session=(0, 0))
        fetch(talk, "session opened anew", {"s": {1: 0}}, version, session=(again.session_id, 0))
        fetch(talk, "session, the one before", none, version, session=(again.session_id, 1))
    if newest(talk, 1) >= 13:
        opened = fetch(talk, "session opened", {"s": {0: 0}}, 12, session=(0, 0))
        fetch(talk, "session, by id now", {"s": {1: 0}}, 13, session=(opened.session_id, 1))
        opened = fetch(talk, "session opened", {"s": {0: 0}}, 13, session=(0, 0))
        fetch(talk, "session, by name now", {"s": {1: 0}}, 12, session=(opened.session_id, 1))


def altering(talk: Talk) -> None:
    """BA-93: configs of topics altered."""
    talk.create("alt", retention_ms="5000", cleanup_policy="delete")

    def alter(
        note: str, version: int, name: str, configs: dict[str, str | None], *, kind: int = 2, only: bool = False
    ) -> None:
        given = tuple(AlterableConfig(name=key, value=value) for key, value in configs.items())
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=given)
        talk.ask(note, AlterConfigsRequest(resources=(resource,), validate_only=only), version)

    for version in talk.every(33):
        alter("set", version, "alt", {"retention.ms": "6000"})
        alter("unknown name", version, "alt", {"no.such": "1"})
        alter("bad value", version, "alt", {"retention.ms": "soon"})
        alter("null value", version, "alt", {"retention.ms": None})
        alter("unknown topic", version, "nowhere", {"retention.ms": "1"})
        alter("bad topic name", version, "no spaces", {"retention.ms": "1"})
        alter("validate only", version, "alt", {"retention.ms": "7000"}, only=True)
        alter("unknown type", version, "alt", {"a": "1"}, kind=77)
        alter("nothing", version, "alt", {})

    def change(
        note: str,
        version: int,
        *changes: tuple[str, int, str | None],
        name: str = "alt",
        kind: int = 2,
        twice: bool = False,
    ) -> None:
        configs = tuple(
            Alteration(name=key, config_operation=operation, value=value) for key, operation, value in changes
        )
        resource = AlteredResource(resource_type=kind, resource_name=name, configs=configs)
        talk.ask(
            note,
            IncrementalAlterConfigsRequest(
                resources=(resource, resource) if twice else (resource,), validate_only=False
            ),
            version,
        )

    for version in talk.every(44):
        change("set", version, ("retention.ms", 0, "6000"))
        change("set two", version, ("retention.ms", 0, "6000"), ("segment.ms", 0, "9000"))
        change("delete", version, ("segment.ms", 1, None))
        change("delete what is not set", version, ("segment.ms", 1, None))
        change("append", version, ("cleanup.policy", 2, "compact"))
        change("append again", version, ("cleanup.policy", 2, "compact"))
        change("subtract", version, ("cleanup.policy", 3, "delete"))
        change("subtract what is not there", version, ("cleanup.policy", 3, "delete"))
        change("append to a number", version, ("retention.ms", 2, "1"))
        change("null value", version, ("retention.ms", 0, None))
        change("bad value", version, ("retention.ms", 0, "soon"))
        change("unknown name", version, ("no.such", 0, "1"))
        change("delete an unknown name", version, ("no.such", 1, None))
        change("one name twice", version, ("retention.ms", 0, "1"), ("retention.ms", 0, "2"))
        change("unknown operation", version, ("retention.ms", 9, "1"))
        change("unknown topic", version, ("retention.ms", 0, "1"), name="nowhere")
        change("bad topic name", version, ("retention.ms", 0, "1"), name="no spaces")
        change("unknown type", version, ("a", 0, "1"), kind=77)
        change("twice", version, ("retention.ms", 0, "1"), twice=True)
        change("nothing", version)


CHAPTERS: tuple[Chapter, ...] = (writing, message_sets, producers, timestamps, reading, deleting, sessions, altering)
