"""Records for a dead letter queue are written in steps; each is there before it is archived (KIP-1191)."""

from __future__ import annotations

import logging

import pytest

from kproto.records.batches import read_records
from kproto.records.compression import Compression
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.clock import Clock
from kproto_server.partition_log import decoding, lookup
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.share_groups import dead_letters, partitions
from kproto_server.share_groups.share_partition import REJECT
from tests.coordinator.broker_state import NOW_MS, new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.share_groups.sharers import Sharers

RECORDS = 40
QUEUE = "dlq.n-q"


class QueueReader:
    """A share group with a dead letter queue, on a clock that runs: its steps come one after the other."""

    def __init__(self) -> None:
        self.transport = InMemoryTransport(new_state("4.4", clock=Clock(NOW_MS, 0.0)))
        self.cluster = self.transport.state.cluster
        self.share = Sharers(self.transport, KafkaVersion.named("4.4"), "n")
        self.share.create()
        self.share.create("q", prefix="dlq.", errors_deadletterqueue_group_enable="true")
        self.share.configure(
            share_auto_offset_reset="earliest",
            errors_deadletterqueue_topic_name=QUEUE,
            errors_deadletterqueue_copy_record_enable="true",
        )
        self.share.join("A")

    def write(self, records: list[Record], compression: Compression = Compression.NONE) -> None:
        data = self.cluster.topics["n-t"].partitions[0].make_data()
        data.append(build_record_batch(records, compression=compression), len(records) - 1, NOW_MS, 0)

    def reject(self, first_offset: int = 0, last_offset: int = RECORDS - 1) -> None:
        self.share.fetch("A", 0, epoch=0, wait_ms=0)
        self.share.acknowledge("A", {0: [(first_offset, last_offset, [REJECT])]}, epoch=1)

    def letters(self) -> list[tuple[int, bytes | None]]:
        """Return the offset and the value of each record in the queue."""
        data = self.cluster.topics[QUEUE].partitions[0].data
        return [
            (int(dict(record.headers)["__dlq.errors.offset"] or b""), record.value)
            for record in read_records(data.read(0, 1 << 30, min_one_batch=True))
        ]

    def start_offset(self) -> int:
        """Return the offset that the group has to read next."""
        (loaded,) = self.transport.state.share_groups.partitions._loaded.values()
        return loaded.share.start_offset


def numbered(count: int = RECORDS, value: bytes = b"v") -> list[Record]:
    return [Record(None, value, offset=offset, timestamp=NOW_MS) for offset in range(count)]


@pytest.fixture
def rejected(monkeypatch: pytest.MonkeyPatch) -> QueueReader:
    """Return a reader whose records were all rejected; a step writes ten of them."""
    monkeypatch.setattr(partitions, "STEP_RECORDS", 10)
    reader = QueueReader()
    reader.write(numbered())
    reader.reject()
    return reader


def test_many_records_are_written_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The records of one batch of the log are decoded once, and archived when all are written."""
    monkeypatch.setattr(partitions, "STEP_RECORDS", 30)
    reader = QueueReader()
    reader.write(numbered())
    reader.reject()
    assert reader.letters() == []
    assert reader.start_offset() == 0
    for _ in range(5):
        reader.share.pass_time(1)
    assert reader.letters() == [(offset, b"v") for offset in range(RECORDS)]
    assert reader.start_offset() == RECORDS


def test_records_that_die_while_others_are_written_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "STEP_RECORDS", 10)
    reader = QueueReader()
    reader.write(numbered())
    reader.reject(0, 19)
    reader.share.acknowledge("A", {0: [(30, 39, [REJECT])]}, epoch=2)
    reader.share.acknowledge("A", {0: [(20, 29, [REJECT])]}, epoch=3)
    reader.share.pass_time(100)
    assert [offset for offset, _ in reader.letters()] == list(range(RECORDS))
    assert reader.start_offset() == RECORDS


def test_a_share_partition_that_is_loaded_again_writes_what_is_left(rejected: QueueReader) -> None:
    rejected.share.pass_time(1)
    rejected.transport.state.share_groups.partitions.forget([rejected.share.topic_ids["t"]])
    rejected.share.pass_time(100)
    assert rejected.letters() == []
    rejected.share.fetch("A", 0, epoch=0, wait_ms=0)
    rejected.share.pass_time(100)
    assert rejected.letters() == [(offset, b"v") for offset in range(RECORDS)]
    assert rejected.start_offset() == RECORDS


def test_a_reset_ends_the_steps(rejected: QueueReader) -> None:
    groups = rejected.transport.state.share_groups
    groups.partitions.forget()
    rejected.share.pass_time(100)
    assert rejected.letters() == []
    rejected.share.fetch("A", 0, epoch=0, wait_ms=0)
    rejected.share.pass_time(100)
    assert len(rejected.letters()) == RECORDS


def test_records_are_archived_if_the_queue_is_deleted_meanwhile(rejected: QueueReader) -> None:
    assert rejected.cluster.delete_topic(QUEUE) is not None
    rejected.share.pass_time(100)
    assert rejected.start_offset() == RECORDS


def test_batches_that_are_costly_to_decode_are_not_copied(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dead_letters, "COPIED_RECORDS_MAX", 5)
    monkeypatch.setattr(decoding, "CONTENT_MAX_BYTES", 1_000)
    reader = QueueReader()
    reader.write(numbered(5))
    reader.write(numbered(6))
    reader.write(numbered(2, bytes(1_000)), Compression.GZIP)
    reader.write(numbered(1))
    with caplog.at_level(logging.WARNING, "kproto.log"):
        reader.reject(0, 13)
        reader.share.pass_time(100)
    assert [value for _, value in reader.letters()] == [b"v"] * 5 + [None] * 8 + [b"v"]
    assert caplog.messages == [
        "n-t-0: dead records from offset 11 on are written without contents: "
        "records (gzip) at byte 0: more than 1000 bytes of content"
    ]


@pytest.mark.parametrize(("slice_records", "records_max", "fetches"), [(3, 1_000, 1), (1_000, 12, 2)])
def test_where_a_group_begins_is_looked_up_in_slices_and_within_a_budget(
    monkeypatch: pytest.MonkeyPatch, slice_records: int, records_max: int, fetches: int
) -> None:
    """A partition behind the budget has no records; the next fetch looks it up."""
    monkeypatch.setattr(lookup, "SLICE_RECORDS", slice_records)
    monkeypatch.setattr(lookup, "DECODED_RECORDS_MAX", records_max)
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create(partitions=2)
    share.configure(share_auto_offset_reset="by_duration:PT1H")
    for partition in range(2):
        share.produce(9, partition=partition)
    share.join("A")
    acquired: list[int] = []
    for _ in range(fetches):
        share.fetch("A", *([] if acquired else [0, 1]), wait_ms=0)
        (topic,) = share.steps[-1].responses["A"][0]["responses"]
        found = [one["partition_index"] for one in topic["partitions"] if "acquired_records" in one]
        assert len(found) == 3 - fetches
        acquired += found
    assert sorted(acquired) == [0, 1]
