"""kproto is simpler than real brokers where server/DEVIATIONS.md says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.records.batches import read_batches, read_records
from kproto_server.broker.broker import Broker
from tests.partition_log.conversation import Talk
from tests.partition_log.conversation_chapters import T0, batch, delete_records, fetch, offsets, produce

if TYPE_CHECKING:
    from typing import Any

MONTH_MS = 30 * 86_400_000


def talk_to(broker: Broker) -> Talk:
    talk = Talk(broker.bootstrap_servers)
    talk.create("t")
    return talk


def error_of(response: Any) -> int:
    return int(response.responses[0].partition_responses[0].error_code)


def test_one_response_has_records_of_several_segments() -> None:
    """A real broker begins a new segment between them, and a response ends with its segment."""
    with Broker.running() as broker:
        talk = talk_to(broker)
        for timestamp in (T0, T0 + MONTH_MS):
            produce(talk, "", "t", batch(timestamp=timestamp), 8)
        (partition,) = fetch(talk, "", {"t": {0: 0}}, 8).responses[0].partitions
        assert [found.last_offset for found in read_batches(partition.records)] == [0, 1]


def test_no_record_that_was_deleted_has_the_greatest_timestamp() -> None:
    """A real broker finds the record while its segment exists."""
    with Broker.running() as broker:
        talk = talk_to(broker)
        produce(talk, "", "t", batch(), 8)
        delete_records(talk, "", "t", -1, 1)
        (partition,) = offsets(talk, "", {"t": {0: -3}}, 7).topics[0].partitions
        assert (partition.offset, partition.timestamp) == (-1, -1)


def test_a_producer_whose_records_were_deleted_goes_on() -> None:
    """Up to 2.3 a real broker returns UNKNOWN_PRODUCER_ID."""
    with Broker.running(kafka_version="2.0") as broker:
        talk = talk_to(broker)
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        producer_id = talk.ask("", asked, 0).producer_id

        def send(sequence: int) -> int:
            made = batch(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
            return error_of(produce(talk, "", "t", made, 6))

        assert send(0) == 0
        delete_records(talk, "", "t", -1, 1)
        assert send(1) == 0


@pytest.mark.parametrize(("kafka_version", "error"), [("2.0", 2), ("4.4", 87)])
def test_a_producer_id_without_epoch_is_refused(kafka_version: str, error: int) -> None:
    """4.4.0 returns NONE, and 3.9.2 UNKNOWN_SERVER_ERROR if the broker compresses (measured)."""
    with Broker.running(kafka_version=kafka_version) as broker:
        made = batch(producer_id=7, producer_epoch=-1, base_sequence=0)
        assert error_of(produce(talk_to(broker), "", "t", made, 6)) == error


def test_an_old_message_format_is_returned_but_not_stored() -> None:
    """Up to 2.8 real brokers keep such a topic's records in that format."""
    with Broker.running(kafka_version="2.0") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("t", message_format_version="0.10.2")
        produce(talk, "", "t", batch(), 6)
        (partition,) = fetch(talk, "", {"t": {0: 0}}, 8).responses[0].partitions
        assert [found.magic for found in read_batches(partition.records)] == [2]


def test_compaction_ignores_lags() -> None:
    """A real broker retains all records of the last day with the first config, and compacts the log with the second."""
    with Broker(clock="manual", kafka_version="3.9") as broker:
        talk = Talk(broker.bootstrap_servers)
        talk.create("min", cleanup_policy="compact", segment_bytes="100", min_compaction_lag_ms=str(MONTH_MS))
        talk.create("max", cleanup_policy="compact", max_compaction_lag_ms="1")
        for topic in ("min", "max"):
            for _ in range(3):
                produce(talk, "", topic, batch(timestamp=broker.clock.now_ms()), 7)
        broker.clock.advance(minutes=1)
        found = [fetch(talk, "", {topic: {0: 0}}, 12).responses[0].partitions[0].records for topic in ("min", "max")]
        assert [[one.offset for one in read_records(records)] for records in found] == [[1, 2], [0, 1, 2]]
