"""What tests ask a running broker, in one line each. The topic is "t", its partition 0."""

from __future__ import annotations

from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient

ALL_TOPICS = MetadataRequest(topics=None)
"""To be sent as v1 or later."""


def long_poll(max_wait_ms: int) -> FetchRequest:
    """A Fetch v4 from the end of the empty topic (BA-71)."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = (FetchTopic(topic="t", partitions=(partition,)),)
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics)


def topic_names(client: RawClient) -> set[str]:
    return {topic.name for topic in client.ask(ALL_TOPICS, 1).topics}


def node_addresses(client: RawClient) -> list[tuple[str, int]]:
    """Return the host and port of each broker as clients receive them."""
    return sorted((broker.host, broker.port) for broker in client.ask(ALL_TOPICS, 1).brokers)


def create_topic(client: RawClient, name: str = "t") -> None:
    """By auto-creation (BA-33)."""
    client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 1)


def find_coordinator(client: RawClient, group_id: str) -> int:
    """Ask where a group's coordinator is, which makes the offsets topic (BA-45); return the error."""
    return int(client.ask(FindCoordinatorRequest(key=group_id), 0).error_code)


def commit_offset(client: RawClient, group_id: str = "g", offset: int = 7, version: int = 2) -> int:
    """Create the topic, commit an offset of its partition 0 and return the error code."""
    create_topic(client)
    find_coordinator(client, group_id)
    response = client.ask(commit_request(group_id, {"t": {0: offset}}), version)
    return int(response.topics[0].partitions[0].error_code)


def committed(client: RawClient, group_id: str = "g", version: int = 1) -> int:
    """Return the committed offset of partition 0 of "t"; version 0 reads the offsets of OffsetCommit v0."""
    topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),)
    response = client.ask(OffsetFetchRequest(group_id=group_id, topics=topics), version)
    return int(response.topics[0].partitions[0].committed_offset)
