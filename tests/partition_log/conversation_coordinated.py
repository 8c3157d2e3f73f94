"""Transactions of producers with a coordinator, from InitProducerId to EndTxn, and what consumers read meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.records.batch_header import TRANSACTIONAL
from tests.partition_log.conversation_chapters import batch, newest
from tests.partition_log.conversation_transactions import PRODUCE_MAX, SEGMENT_MS, look
from tests.waiting import wait_until

if TYPE_CHECKING:
    from kproto.message import Request
    from tests.partition_log.conversation import Talk

TOPIC = "co"
NOT_YET = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
ADD_MAX = 3
"""Later versions of AddPartitionsToTxn are for brokers."""
END_MAX = 4
"""Later versions of EndTxn are for transactions with epochs of their own."""


class Producer:
    """A producer with a transactional id; it adds partitions itself, or Produce does (KIP-890)."""

    def __init__(self, talk: Talk, name: str, *, adds_partitions: bool) -> None:
        self.name = name
        self._talk = talk
        self._adds_partitions = adds_partitions
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[int, int] = {}
        self._partitions: tuple[int, ...] = ()

    def begin(self, *, interrupts: bool = False) -> None:
        """Request a producer id; ``interrupts``: while an earlier instance has a transaction."""
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        response = self._ask("begins", request, newest(self._talk, 22), keeps_first=interrupts)
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch

    def add(self, *partitions: int) -> None:
        """Begin a transaction in partitions."""
        self._partitions = partitions
        if self._adds_partitions:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self._producer_id,
                v3_and_below_producer_epoch=self._epoch,
                v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=partitions),),
            )
            self._ask("adds", request, min(ADD_MAX, newest(self._talk, 24)))

    def send(self, note: str, partition: int, count: int = 1, *, first_sequence: int = 0) -> None:
        """Send a batch to a partition; ``first_sequence``: of the first one."""
        sequence = self._sequences.get(partition, first_sequence)
        encoded = batch(
            count,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            flags=TRANSACTIONAL,
        )
        version = newest(self._talk, 0)
        if self._adds_partitions:
            version = min(PRODUCE_MAX, version)
        topic: dict[str, Any] = {"topic_id": self._talk.topic_ids[TOPIC]} if version >= 13 else {"name": TOPIC}
        data = TopicProduceData(**topic, partition_data=(PartitionProduceData(index=partition, records=encoded),))
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=5000, topic_data=(data,))
        response = self._ask(note, request, version)
        if not response.responses[0].partition_responses[0].error_code:
            self._sequences[partition] = sequence + count

    def end(self, *, commit: bool, is_fenced: bool = False) -> None:
        """End the transaction, and wait for its markers."""
        ends = {partition: self._end_offset(partition) for partition in self._partitions}
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self._producer_id, producer_epoch=self._epoch, committed=commit
        )
        version = newest(self._talk, 26)
        response = self._ask("ends", request, min(END_MAX, version) if self._adds_partitions else version)
        if is_fenced:
            return
        assert response.error_code == 0, response
        for partition, end in ends.items():
            wait_until(lambda partition=partition, end=end: self._end_offset(partition) > end, "the marker")  # type: ignore[misc]
        if not self._adds_partitions:
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch
            self._sequences.clear()

    def _end_offset(self, partition: int) -> int:
        return self._talk.end_offset(TOPIC, partition)

    def _ask(self, note: str, request: Request, version: int, *, keeps_first: bool = False) -> Any:
        """Send a request until the coordinator is ready for it; record the last one, and the first if it counts."""
        found: list[Any] = []

        def is_done() -> bool:
            response = self._talk.ask(f"{self.name}: {note}", request, version)
            found.append(response)
            if not NOT_YET.intersection(codes(response)):
                return True
            if not keeps_first or len(found) > 1:
                self._talk.rows.pop()
            return False

        wait_until(is_done, note)
        return found[-1]


def codes(response: Any) -> set[int]:
    """Return the error codes of a response to a producer."""
    found = {getattr(response, "error_code", 0)}
    for topic in getattr(response, "responses", ()):
        found |= {partition.error_code for partition in topic.partition_responses}
    for topic in getattr(response, "results_by_topic_v3_and_below", ()):
        found |= {partition.partition_error_code for partition in topic.results_by_partition}
    return found


def coordinated(talk: Talk) -> None:
    """BA-65, BA-75, BA-80: what the coordinator's markers do to records, offsets and producers."""
    talk.create(TOPIC, 2, segment_ms=SEGMENT_MS)
    talk.has_transaction_topic()

    def see(note: str) -> None:
        look(talk, note, TOPIC, 0, times=(-1,))

    kinds = {"old": True, "new": False} if newest(talk, 0) > PRODUCE_MAX else {"old": True}
    for kind, adds_partitions in kinds.items():
        one = Producer(talk, f"{kind} producer", adds_partitions=adds_partitions)
        one.begin()
        one.add(0, 1)
        one.send("first", 0, 2)
        one.send("first", 1)
        see(f"{kind} open")
        one.end(commit=True)
        see(f"{kind} committed")
        one.add(0)
        one.send("second", 0)
        one.end(commit=False)
        see(f"{kind} aborted")
        one.add(0)
        one.send("third", 0)
        other = Producer(talk, one.name, adds_partitions=adds_partitions)
        other.begin(interrupts=True)
        see(f"{kind} interrupted")
        one.send("fenced", 0)
        one.end(commit=True, is_fenced=True)
        other.send("not added", 0)
        see(f"{kind} not added")
        other.add(0)
        other.send("fourth", 0)
        other.end(commit=False)
        see(f"{kind} ended")
        stranger = Producer(talk, f"{kind} stranger", adds_partitions=adds_partitions)
        stranger.begin()
        stranger.add(0)
        stranger.send("from sequence 3", 0, first_sequence=3)
        stranger.send("again", 0)
        stranger.end(commit=True)
        see(f"{kind} stranger")


CHAPTERS = (coordinated,)
