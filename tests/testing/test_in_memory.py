"""The in-memory broker of `kproto_server.testing`, as a user's test has it: no sockets, no sleeping."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.testing import ConnectedPair, InMemoryBroker
from kproto_server.testing.in_memory import START_MS

COMMIT = OffsetCommitRequest(
    group_id="billing",
    topics=(
        OffsetCommitRequestTopic(
            name="orders",
            partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=42, committed_metadata=None),),
        ),
    ),
)
FETCH_OFFSETS = OffsetFetchRequest(
    group_id="billing", topics=(OffsetFetchRequestTopic(name="orders", partition_indexes=(0,)),)
)
LONG_POLL = FetchRequest(
    max_wait_ms=500,
    min_bytes=1,
    topics=(
        FetchTopic(
            topic="orders", partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20),)
        ),
    ),
)


def committed_offset(client: ConnectedPair) -> int:
    response: Any = client.ask(FETCH_OFFSETS, 1)
    return int(response.topics[0].partitions[0].committed_offset)


def test_a_committed_offset_expires_after_its_retention() -> None:
    broker = InMemoryBroker(topics={"orders": 1})
    client = broker.connect()
    client.ask(FindCoordinatorRequest(key="billing"), 0)
    response: Any = client.ask(COMMIT, 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert committed_offset(client) == 42
    broker.advance(days=8)
    assert committed_offset(client) == -1


def test_a_long_poll_ends_at_its_deadline_on_the_virtual_clock() -> None:
    broker = InMemoryBroker(topics={"orders": 1})
    client = broker.connect()
    with pytest.raises(TimeoutError, match="the response to FetchRequest is delayed"):
        client.ask(LONG_POLL, 4)
    broker.advance(milliseconds=499)
    assert not client.responses
    broker.advance(milliseconds=1)
    assert len(client.responses) == 1


def test_a_response_that_does_not_come_as_the_connection_closes_is_no_delay() -> None:
    client = InMemoryBroker(kafka_version="4.4").connect()
    with pytest.raises(TimeoutError, match="no response to FetchRequest: the broker closes the connection: "):
        client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=()), 2)


def test_a_long_poll_ends_when_another_client_produces() -> None:
    broker = InMemoryBroker(topics={"orders": 1})
    consumer, producer = broker.connect("consumer"), broker.connect("producer")
    consumer.send(LONG_POLL, 4)
    partition = PartitionProduceData(
        index=0, records=build_record_batch([Record(None, b"order 1041", timestamp=START_MS)])
    )
    data = (TopicProduceData(name="orders", partition_data=(partition,)),)
    produced: Any = producer.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data), 3)
    assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    (fetched,) = consumer.responses
    assert b"order 1041" in fetched.responses[0].partitions[0].records  # type: ignore[attr-defined]


def test_a_closed_connection_abandons_its_long_poll() -> None:
    broker = InMemoryBroker(topics={"orders": 1})
    client = broker.connect()
    client.send(LONG_POLL, 4)
    client.close()
    broker.advance(milliseconds=1000)
    assert not client.responses


def test_a_delayed_response_is_not_mistaken_for_an_earlier_one() -> None:
    client = InMemoryBroker(topics={"orders": 1}).connect()
    client.send(ListGroupsRequest(), 0)
    with pytest.raises(TimeoutError, match="the response to FetchRequest is delayed"):
        client.ask(LONG_POLL, 4)
    assert len(client.responses) == 1


def test_all_responses_arrive_however_large_they_are_together() -> None:
    client = InMemoryBroker(topics={f"topic-{number}": 1 for number in range(500)}).connect()
    requests = [client.client.send(MetadataRequest(topics=None), 1) for _ in range(400)]
    client.send_bytes(b"".join(requests))
    assert len(client.responses) == 400


def test_bytes_that_are_no_request_close_the_connection() -> None:
    client = InMemoryBroker().connect()
    assert client.close_reason is None
    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
    assert client.close_reason is not None


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no Kafka release '9\.9'"):
        InMemoryBroker(kafka_version="9.9")
