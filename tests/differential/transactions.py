"""Random transactions of the partitions of two topics, whose markers are written by WriteTxnMarkers: no coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kproto.declaration import Struct
from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kproto.messages.k61_describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from kproto.records.batch_header import TRANSACTIONAL
from tests.differential.batches import Batch
from tests.differential.broker_pair import ComparedBroker, Difference
from tests.differential.records import NEAR_MS, NOW_MS, RecordHistory

NEWER_SETTINGS = {"transaction.partition.verification.enable": "false"}
PRODUCE_MAX = 11
"""Later versions of Produce ask the coordinator (KIP-890)."""
FETCH_MIN = 4
"""Earlier versions of Fetch return records behind a marker twice (DEVIATIONS)."""
PRODUCER_COUNT = 3


class TransactionHistory(RecordHistory):
    """Transactional and idempotent producers, markers with any epochs, and readers at both isolation levels."""

    transactional_id = "id"

    def prepare(self) -> None:
        super().prepare()
        self.producers = [f"producer {number}" for number in range(PRODUCER_COUNT)]
        for broker in self.pair.brokers:
            for number, name in enumerate(self.producers):
                broker.note(name, 1_000_000 + 10 * self.seed + number, is_shown=False)
        self.epochs: dict[tuple[str, str, int], int] = {}
        """Of a producer in a partition."""

    def actions(self) -> dict[Callable[[], None], int]:
        return {
            self.produce: 40,
            self.write_markers: 20,
            self.fetch: 26,
            self.fetch_in_session: 10,
            self.list_offsets: 12,
            self.describe_producers: 8,
        }

    def version(self, api_key: int, lowest: int = 0) -> int:
        low, high = self.versions[api_key]
        match api_key:
            case 0:
                return self.random.randint(max(low, 3), min(high, PRODUCE_MAX))
            case 1:
                return super().version(1, max(lowest, FETCH_MIN))
        return super().version(api_key, lowest)

    def normalize(self, struct: Struct, fields: dict[str, Any]) -> None:
        super().normalize(struct, fields)
        if isinstance(struct, ProducerState) and 0 <= struct.last_timestamp - NOW_MS < NEAR_MS:
            fields["last_timestamp"] = "now"

    def is_allowed(self, difference: Difference) -> bool:
        return is_of_an_old_release(self.release, difference)

    def _batch(self, version: int, topic: str, partition: int) -> Batch:
        batch = super()._batch(version, topic, partition)
        is_plain = batch.magic == 2 and not batch.producer and not batch.flags
        return self._with_sequence(batch) if is_plain and self.random.random() < 0.6 else batch

    def _with_sequence(self, batch: Batch) -> Batch:
        made = super()._with_sequence(batch)
        epoch = self.epochs.get((made.producer, made.topic, made.partition), 0)
        flags = self.mostly(TRANSACTIONAL, 0, percent=80)
        return made._replace(epoch=max(0, epoch + self.mostly(0, 1, -1, percent=96)), flags=flags)

    def write_markers(self) -> None:
        version = self.version(27)
        producer, topic = self.random.choice(self.producers), self._topic()
        partitions = tuple({self._partition() for _ in range(self.mostly(1, 2, percent=80))})
        known = max(self.epochs.get((producer, topic, partition), 0) for partition in partitions)
        epoch = max(0, known + self.mostly(0, 1, -1, percent=75))
        coordinator_epoch = self.random.choice([3, 3, 3, 3, 4, 2])
        commit = self.random.random() < 0.5
        transaction_version = self.random.choice([0, 1, 2]) if version >= 2 else 0

        def build(broker: ComparedBroker) -> WriteTxnMarkersRequest:
            marker = WritableTxnMarker(
                producer_id=broker.value(producer),
                producer_epoch=epoch,
                transaction_result=commit,
                topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=partitions),),
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )
            return WriteTxnMarkersRequest(markers=(marker,))

        (responses,) = self.pair.send(0, build, version, self._topic_configs(topic)).values()
        for result in responses.real.markers[0].topics[0].partitions:
            key = producer, topic, result.partition_index
            if not result.error_code and epoch > self.epochs.get(key, 0):
                self.epochs[key] = epoch
                self.next_sequence[key] = 0

    def _note_sequences(self, batches: list[Batch], response: Any) -> None:
        super()._note_sequences(batches, response)
        errors = {
            (topic.name, partition.index): partition.error_code
            for topic in response.responses
            for partition in topic.partition_responses
        }
        for batch in batches:
            key = batch.producer, batch.topic, batch.partition
            if batch.producer and not errors.get(key[1:], -1) and batch.epoch > self.epochs.get(key, 0):
                self.epochs[key] = batch.epoch
                self.next_sequence[key] = batch.sequence + len(batch.records)

    def describe_producers(self) -> None:
        if not self.serves(61):
            return
        topic, partition = self._topic(), self._partition()
        request = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(partition,)),))
        self.pair.send(0, lambda broker: request, self.version(61), self._topic_configs(topic))


def is_of_an_old_release(release: tuple[int, ...], difference: Difference) -> bool:
    """Return whether only real Kafka is wrong (DEVIATIONS).

    Up to 2.7 it lists ABORT markers without records.
    """
    return release < (2, 8) and all("aborted_transactions" in path for path, _, _ in difference.parts)
