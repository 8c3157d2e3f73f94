"""Further requests of `conversation`: requests with several mistakes, of which a broker reports the first that it
detects, and requests to which old releases have their own response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.compression import Compression
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from tests.partition_log.conversation_chapters import (
    T0,
    batch,
    delete_records,
    fetch,
    message_set,
    newest,
    produce,
    with_header,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.partition_log.conversation import Talk

WRONG_ACKS = 2
NO_PARTITION = 9
MAGIC_AT, SIZE_AT = 16, 8


def with_magic(encoded: bytes, magic: int) -> bytes:
    return encoded[:MAGIC_AT] + bytes([magic]) + encoded[MAGIC_AT + 1 :]


def with_size(encoded: bytes, size: int) -> bytes:
    return encoded[:SIZE_AT] + size.to_bytes(4, "big") + encoded[SIZE_AT + 4 :]


def with_wrong_checksum(encoded: bytes) -> bytes:
    return encoded[:-1] + bytes([encoded[-1] ^ 1])


def produce_to_three(talk: Talk, note: str, topic: str, encoded: bytes, good: bytes, version: int) -> Any:
    """These to partition 0, good ones to partition 1 and to one that does not exist."""
    partitions = [
        PartitionProduceData(index=index, records=each)
        for index, each in ((0, encoded), (1, good), (NO_PARTITION, good))
    ]
    data = TopicProduceData(
        name=topic if version < 13 else "",
        topic_id=talk.topic_ids.get(topic, bytes(16)) if version >= 13 else bytes(16),
        partition_data=tuple(partitions),
    )
    return talk.ask(note, ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), version)


def mistakes(talk: Talk) -> None:
    """BA-60 to BA-63: what is wrong first."""
    talk.create("m", 2)
    talk.create("mc", cleanup_policy="compact")
    talk.create("ms", max_message_bytes="200")
    talk.create("mt", cleanup_policy="compact", **{timestamp_bound(talk): "60000"})  # type: ignore[arg-type]
    _of_batches(talk)
    if talk.serves(0, 0):
        _of_message_sets(talk)


def timestamp_bound(talk: Talk) -> str:
    """The config by which records of long ago are refused, as the release calls it."""
    is_split = talk.serves(68, 0)
    return "message_timestamp_before_max_ms" if is_split else "message_timestamp_difference_max_ms"


def _of_batches(talk: Talk) -> None:
    good, transactional = batch(), with_header(batch(), attributes=TRANSACTIONAL)
    late = [Record(key, b"v", timestamp=T0, offset=offset) for offset, key in enumerate((b"k", None))]
    seen: Mapping[str, bytes] = {
        "empty": b"",
        "half": good[:30],
        "few octets": b"abc",
        "cut off": good[:-3],
        "one and a half": good + good[:30],
        "magic 5": with_magic(good, 5),
        "magic -2": with_magic(good, 254),
        "size 5": with_size(good, 5),
        "two": good + good,
        "then magic 5": good + with_magic(good, 5),
        "message set": message_set(),
        "zstd": batch(compression=Compression.ZSTD),
        "wrong checksum": with_wrong_checksum(good),
        "base offset 5": with_header(good, base_offset=5),
        "transactional": transactional,
    }
    for version in {3, 6, min(newest(talk, 0), 8), newest(talk, 0)}:
        for name, encoded in seen.items():
            produce(talk, f"{name}, wrong acks", "m", encoded, version, acks=WRONG_ACKS)
            produce(talk, f"{name}, no such partition", "m", encoded, version, partition=NO_PARTITION)
            produce(talk, f"{name}, no such topic", "nowhere", encoded, version)
            produce_to_three(talk, f"{name}, and good ones", "m", encoded, good, version)
        produce(talk, "no such partition, wrong acks", "m", good, version, partition=NO_PARTITION, acks=WRONG_ACKS)
        produce(talk, "no such topic, wrong acks", "nowhere", good, version, acks=WRONG_ACKS)
        produce(talk, "no key, wrong acks", "mc", batch(2, key=None), version, acks=WRONG_ACKS)
        produce(talk, "too large, wrong checksum", "ms", with_wrong_checksum(batch(size=400)), version)
        produce(talk, "too late, one without key", "mt", build_record_batch(late), version)


def _of_message_sets(talk: Talk) -> None:
    good = message_set()
    small = message_set(compression=Compression.GZIP)
    sets: Mapping[str, bytes] = {
        "empty": b"",
        "half": good[:20],
        "few octets": b"abc",
        "one and a half": good + good[:20],
        "size 5": with_size(good, 5),
        "magic 5": with_magic(good, 5),
        "wrong checksum": with_wrong_checksum(good),
        "two": good + good,
        "two gzip": small + small,
        "gzip, then plain": small + good,
        "plain, then gzip": good + small,
    }
    for name, encoded in sets.items():
        produce(talk, f"set: {name}", "m", encoded, 2)
        produce(talk, f"set: {name}, wrong acks", "m", encoded, 2, acks=WRONG_ACKS)
        produce(talk, f"set: {name}, no such partition", "m", encoded, 2, partition=NO_PARTITION)
        produce_to_three(talk, f"set: {name}, and good ones", "m", encoded, good, 2)


def old_ways(talk: Talk) -> None:
    """BA-74 to BA-77, BA-82, BA-83, BA-93: reads and deletions on which releases differ."""
    talk.create("e", 2)
    talk.create("o", 2)
    talk.create("oc", cleanup_policy="compact")
    for encoded in (batch(), batch(2, compression=Compression.GZIP), batch()):
        produce(talk, "to be read", "o", encoded, 3)
    for version in talk.every(1):
        for offset in (0, 1, 2):  # the last one amid a batch
            fetch(talk, f"from {offset}", {"o": {0: offset}}, version)
        fetch(talk, "committed", {"o": {0: 0}}, version, isolation_level=1)
    for version in talk.every(1, 7):
        opened = fetch(talk, "session, epoch 5", {"o": {0: 0}}, version, session=(0, 0), epoch=5)
        fetch(talk, "session, epoch 5 again", {"o": {0: 0}}, version, session=(opened.session_id, 1), epoch=5)
        fetch(talk, "session, epoch 5, nothing new", {}, version, session=(opened.session_id, 2))
        opened = fetch(talk, "session", {"o": {0: 4}}, version, session=(0, 0))
        id_of = opened.session_id
        fetch(talk, "forgotten and wanted", {"o": {0: 0}}, version, session=(id_of, 1), forgotten={"o": [0]})
    for version in talk.every(1, 12):
        for offset in (0, 4, 5, 1000):
            for epoch in (0, 1):
                note = f"read up to {offset} in epoch {epoch}"
                fetch(talk, note, {"o": {0: offset}}, version, last_fetched_epoch=epoch, isolation_level=1)
        opened = fetch(talk, "session, diverged", {"o": {0: 9}}, version, session=(0, 0), last_fetched_epoch=0)
        fetch(talk, "session, still diverged", {}, version, session=(opened.session_id, 1))
    if newest(talk, 0) >= 7:
        produce(talk, "zstd", "e", batch(compression=Compression.ZSTD), 7)
        for version in talk.every(1):
            fetch(talk, "zstd", {"e": {0: 0}}, version)
    for version in talk.every(2, 4):
        for timestamp in (-1, -2):
            partition = ListOffsetsPartition(partition_index=1, timestamp=timestamp)
            topic = ListOffsetsTopic(name="e", partitions=(partition,))
            talk.ask("ends of an empty log", ListOffsetsRequest(replica_id=-1, topics=(topic,)), version)
    for version in talk.every(23):
        for name, index in (("e", 1), ("o", 0)):
            asked = OffsetForLeaderTopic(
                topic=name, partitions=(OffsetForLeaderPartition(partition=index, leader_epoch=0),)
            )
            talk.ask("end of epoch 0", OffsetForLeaderEpochRequest(replica_id=-1, topics=(asked,)), version)
    for version in talk.every(21):
        for name in ("o", "oc"):
            for offset in (-2, 500):
                delete_records(talk, f"delete before {offset}", name, offset, version)


CHAPTERS = (mistakes, old_ways)
