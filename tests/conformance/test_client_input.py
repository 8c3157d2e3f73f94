"""The records that a client under test has to copy are in the log as the case says."""

from __future__ import annotations

import sys

from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.records.batches import read_batches
from kproto.records.record_batch import RecordBatch
from kproto_server.broker.broker import Broker
from kproto_server.conformance.cases import CASES, HUGE_BATCH_KIB
from kproto_server.conformance.client_input import PARTITIONS, RECORDS, TOPIC, Input
from kproto_server.conformance.client_run import run_case
from tests.conformance.copiers import FOLDER
from tests.network.raw_client import RawClient

EACH = RECORDS // PARTITIONS


def batches_of(broker: Broker, last_epoch: int = -1, offset: int = 0) -> list[tuple[int, int]]:
    """Return first offset and number of records of each batch of partition 0, as a consumer fetches them."""
    partition = FetchPartition(
        partition=0, fetch_offset=offset, last_fetched_epoch=last_epoch, partition_max_bytes=1 << 20
    )
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=TOPIC, partitions=(partition,)),))
    with RawClient(broker.bootstrap_servers) as client:
        ((found,),) = (topic.partitions for topic in client.ask(request, 12).responses)
    if found.diverging_epoch.epoch >= 0:
        return [(found.diverging_epoch.end_offset, found.diverging_epoch.epoch)]
    batches = [batch for batch in read_batches(found.records) if isinstance(batch, RecordBatch)]
    return [(batch.base_offset, len(batch.records())) for batch in batches]


def test_batches_without_records() -> None:
    with Broker.running() as broker:
        broker.topics.create(TOPIC, partitions=PARTITIONS)
        given = Input(broker, CASES["empty-batches"])
        given.produce_half()
        expected = [found for at in range(EACH) for found in ((4 * at, 0), (4 * at + 3, 1))]
        assert batches_of(broker) == [*expected, (4 * EACH, 0)]
        assert sorted(given.places.values()) == [(one, 4 * at + 3) for one in range(PARTITIONS) for at in range(EACH)]


def test_a_batch_that_is_larger_than_a_fetch() -> None:
    with Broker.running() as broker:
        broker.topics.create(TOPIC, partitions=PARTITIONS)
        given = Input(broker, CASES["huge-batches"])
        given.produce_half()
        assert batches_of(broker) == [(0, EACH)]
        assert sum(len(value or b"") for value in given.places) == PARTITIONS * HUGE_BATCH_KIB * 1024
        read = {record.value: (record.partition, record.offset) for record in broker.topics.records(TOPIC)}
        assert read == given.places


def test_a_truncated_log() -> None:
    with Broker.running() as broker:
        broker.topics.create(TOPIC, partitions=PARTITIONS)
        given = Input(broker, CASES["log-truncated"])
        given.produce_half()
        before = dict(given.places)
        given.truncate()
        assert batches_of(broker, last_epoch=0, offset=EACH) == [(3, 0)]
        given.produce_half()
        assert before.keys() - given.places.keys() == given.truncated
        read = {record.value: (record.partition, record.offset) for record in broker.topics.records(TOPIC)}
        assert read == given.places


def test_a_static_member_is_replaced() -> None:
    case = CASES["static-member-replaced"]
    seen = run_case(case, [sys.executable, str(FOLDER / "copy_with_kafka_python.py")], timeout_s=30.0).seen
    assert (seen.fired > 0, seen.missing, seen.lost, seen.is_committed, seen.exit_code) == (True, 0, 0, True, None)
    assert any("FENCED_INSTANCE_ID" in line for line in seen.requests)
