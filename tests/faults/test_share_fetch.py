"""A rule with an error for topics that a member of a share group fetches: it acquires and acknowledges nothing.

Real brokers check the leader of a partition before they acquire its records, so the records stay available.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k78_share_fetch import AcknowledgementBatch, FetchPartition, FetchTopic, ShareFetchRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.testing import ConnectedPair, InMemoryBroker

MEMBER_ID = "A" * 22
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def broker() -> InMemoryBroker:
    made = InMemoryBroker(topics={"orders": 1, "other": 1})
    assert made.state.cluster.ensure_offsets_topic(made.clock.now_ms())
    return made


class Member:
    """A member of a share group with an open share session of topics."""

    def __init__(self, broker: InMemoryBroker, *topics: str) -> None:
        self._broker = broker
        self._client: ConnectedPair = broker.connect()
        self._epoch = 0
        for member_epoch in (0, 1):
            heartbeat = ShareGroupHeartbeatRequest(
                group_id="g", member_id=MEMBER_ID, member_epoch=member_epoch, subscribed_topic_names=topics
            )
            self._client.ask(heartbeat, 1)
            broker.advance(milliseconds=300)
        self.fetch(*topics)

    def fetch(self, *topics: str, accepted: range | None = None) -> dict[Any, Any]:
        """Return by topic the error codes and the acquired offsets and delivery counts; "error" has the response's."""
        cluster = self._broker.state.cluster
        acknowledged = (
            ()
            if accepted is None
            else (AcknowledgementBatch(first_offset=accepted[0], last_offset=accepted[-1], acknowledge_types=(1,)),)
        )
        partition = FetchPartition(partition_index=0, acknowledgement_batches=acknowledged)
        request = ShareFetchRequest(
            group_id="g", member_id=MEMBER_ID, share_session_epoch=self._epoch, max_wait_ms=0,
            min_bytes=1, max_records=100, batch_size=100, forgotten_topics_data=(),
            topics=tuple(FetchTopic(topic_id=cluster.topics[one].topic_id, partitions=(partition,)) for one in topics),
        )  # fmt: skip
        self._epoch += 1
        response: Any = self._client.ask(request, 1)
        found: dict[Any, Any] = {"error": response.error_code}
        for topic in response.responses:
            name = next(name for name, one in cluster.topics.items() if one.topic_id == topic.topic_id)
            (part,) = topic.partitions
            spans = [(one.first_offset, one.last_offset, one.delivery_count) for one in part.acquired_records]
            found[name] = part.error_code, part.acknowledge_error_code, spans
        return found


def produce(broker: InMemoryBroker, topic: str) -> None:
    records = build_record_batch([Record(None, b"r"), Record(None, b"s", offset=1)])
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
    broker.connect().ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=(data,)), 7)


def test_no_record_is_delivered(broker: InMemoryBroker) -> None:
    """Five deliveries would archive the records."""
    member = Member(broker, "orders", "other")
    produce(broker, "orders")
    rule = broker.faults.add({"api": "ShareFetch", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER", "times": 5})
    for _ in range(5):
        assert member.fetch()["orders"] == (NOT_LEADER, NOT_LEADER, [])
    assert rule.fired == 5
    assert member.fetch() == {"error": 0, "orders": (0, 0, [(0, 1, 1)])}


def test_no_record_is_acknowledged(broker: InMemoryBroker) -> None:
    member = Member(broker, "orders", "other")
    for topic in ("orders", "other"):
        produce(broker, topic)
    assert {*member.fetch()} == {"error", "orders", "other"}
    broker.faults.add({"api": "ShareFetch", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1})
    found = member.fetch("orders", "other", accepted=range(2))
    assert (found["orders"], found["other"]) == ((NOT_LEADER, NOT_LEADER, []), (0, 0, []))
    broker.advance(milliseconds=31_000)  # the locks of both topics would have ended
    assert member.fetch() == {"error": 0, "orders": (0, 0, [(0, 1, 2)])}
