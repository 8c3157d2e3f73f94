"""Fetch requests that few clients send: unknown isolation levels, topics named twice, topics that forbid conversion."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto_server.deferred import CloseConnection
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import ask, new_state
from tests.partition_log.conversation_chapters import batch

UNKNOWN_ID = bytes(15) + b"\x07"


def written(release: str, **configs: str) -> BrokerState:
    """Return a broker whose topic t has three batches."""
    state = new_state(release)
    state.cluster.topics["t"].configs.update({name.replace("_", "."): value for name, value in configs.items()})
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch()),))
    for _ in range(3):
        ask(state, ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 3)
    return state


def fetch(
    state: BrokerState, version: int, *wanted: tuple[str, int], isolation_level: int = 0
) -> tuple[int, list[tuple[str, int, int]]]:
    """Fetch from partition 0 of topics (name, offset); return the error code, and name, error and size of each."""
    by_id = version >= 13
    names = {topic.topic_id: name for name, topic in state.cluster.topics.items()} | {UNKNOWN_ID: "nope"}
    ids = {name: topic_id for topic_id, name in names.items()}
    topics = tuple(
        FetchTopic(
            **({"topic_id": ids[name]} if by_id else {"topic": name}),
            partitions=(FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000),),
        )
        for name, offset in wanted
    )
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10_000, isolation_level=isolation_level, topics=topics)
    response: Any = ask(state, request, version)
    return response.error_code, [
        (names[topic.topic_id] if by_id else topic.topic, one.error_code, len(one.records or b""))
        for topic in response.responses
        for one in topic.partitions
    ]


@pytest.mark.parametrize("release", ["2.7", "2.8", "3.9", "4.4"])
def test_an_unknown_isolation_level_is_an_error(release: str) -> None:
    """Measured on 2.7.2, 2.8.2, 3.9.2 and 4.4.0."""
    state = written(release)
    assert fetch(state, 4, ("t", 0), ("nope", 0), isolation_level=2) == (0, [("t", -1, 0), ("nope", -1, 0)])
    assert fetch(state, 11, ("t", 0), ("nope", 0), isolation_level=2) == (-1, [("t", -1, 0), ("nope", -1, 0)])
    assert fetch(state, 11, ("nope", 0), isolation_level=2) == (0, [("nope", 3, 0)])
    if release in ("3.9", "4.4"):
        assert fetch(state, 13, ("t", 0), isolation_level=2) == (-1, [])
        assert fetch(state, 13, ("nope", 0), isolation_level=2) == (0, [("nope", 100, 0)])


@pytest.mark.parametrize("release", ["2.0", "2.5", "2.6"])
def test_an_unknown_isolation_level_closes_the_connection(release: str) -> None:
    """Measured on 2.0.1, 2.5.1 and 2.6.3."""
    with pytest.raises(CloseConnection, match="isolation level 2"):
        fetch(written(release), 4, ("t", 0), isolation_level=2)


@pytest.mark.parametrize("release", ["2.0", "4.4"])
def test_a_partition_that_is_named_in_two_topics_is_returned_once(release: str) -> None:
    """The last offset counts; measured on 2.0.1, 2.8.2, 3.1.2 and 4.4.0."""
    size = len(batch())
    assert fetch(written(release), 4, ("t", 0), ("u", 0), ("t", 2)) == (0, [("t", 0, size), ("u", 0, 0)])


@pytest.mark.parametrize("release", ["2.6", "2.8", "3.2", "3.9"])
def test_a_topic_that_forbids_conversion_is_refused_to_old_clients(release: str) -> None:
    """Measured on 2.6.3, 2.8.2, 3.2.3 and 3.9.2: without records up to 2.8 there is nothing to convert."""
    state = written(release, message_downconversion_enable="False")
    without_records = 35 if release in ("3.2", "3.9") else 1
    for version in (0, 3):
        assert fetch(state, version, ("t", 0), ("u", 0)) == (0, [("t", 35, 0), ("u", 0, 0)])
        assert fetch(state, version, ("t", 99), ("nope", 0)) == (0, [("t", without_records, 0), ("nope", 3, 0)])
    assert fetch(state, 4, ("t", 0)) == (0, [("t", 0, 3 * len(batch()))])
    assert fetch(written("1.1", message_downconversion_enable="false"), 3, ("t", 0))[1][0][:2] == ("t", 0)
