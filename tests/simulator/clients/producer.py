"""An idempotent producer, and what it has in common with a transactional one: batches with sequences."""

from __future__ import annotations

from typing import Any

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from tests.simulator.broker import TOPIC
from tests.simulator.clients.client import MOVED, RETRY_MS, Client, Steps, Surroundings
from tests.simulator.script import Line

ATTEMPTS = 6
TIMESTAMP_MS = 1_700_000_000_000

RETRIABLE = MOVED | {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Errors after which a producer sends the same batch again."""
UNKNOWN = -1
"""Instead of an error: no response came."""


class BatchSender(Client):
    """A producer with an id, an epoch, and a sequence for each partition."""

    def __init__(self, surroundings: Surroundings, line: Line, incarnation: int) -> None:
        super().__init__(surroundings, line, incarnation)
        self.producer_id = self.epoch = -1
        self.sequences: dict[int, int] = {}
        self.transactional_id: str | None = None
        self.produce_version = 11
        self._value_count = 0

    def begin_epoch(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences.clear()

    def new_value(self) -> bytes:
        """Return the value of a record that no other record has."""
        self._value_count += 1
        return f"{self.name}/{self.incarnation}/{self._value_count}".encode()

    def produce(self, partition: int, attempts: int = ATTEMPTS) -> Steps[int]:
        """Send a batch until it is acknowledged; return 0, an error that stays, or `UNKNOWN`."""
        values = [self.new_value() for _ in range(self.chance.choice((1, 1, 2)))]
        records = [Record(None, value, timestamp=TIMESTAMP_MS, offset=index) for index, value in enumerate(values)]
        first_sequence = self.sequences.get(partition, 0)
        batch = build_record_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first_sequence,
            flags=TRANSACTIONAL if self.transactional_id else 0,
        )
        data = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=partition, records=batch),))
        request = ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=1000, topic_data=(data,))
        for _ in range(attempts):
            response: Any = yield from self.ask_leader(partition, request, self.produce_version)
            if response is not None:
                error = int(response.responses[0].partition_responses[0].error_code)
                if not error:
                    self.sequences[partition] = first_sequence + len(values)
                    return 0
                if error not in RETRIABLE:
                    return error
                self.forget_leader(partition)
            yield RETRY_MS
        return UNKNOWN


class Producer(BatchSender):
    """Appends batches, each until it is acknowledged; takes a new id when it gives up."""

    def main(self) -> Steps[None]:
        error = UNKNOWN
        while not self.finishing:
            if error:
                response = yield from self.ask_any(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 1
                )
                if response is None or response.error_code:
                    yield RETRY_MS
                    continue
                self.begin_epoch(response.producer_id, response.producer_epoch)
            error = yield from self.produce(self.random_partition())
            yield self.chance.randrange(10, 120)
