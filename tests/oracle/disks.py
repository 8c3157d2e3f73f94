"""A broker whose disk takes no more writes, as a script for real clusters and for kproto."""

from __future__ import annotations

from typing import Any, Protocol

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k19_create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.network.raw_client import RawClient
from tests.partition_log.conversation_chapters import batch
from tests.waiting import wait_until

ALL = -1
CLOSED = "closed"
"""What a producer sees instead of an error if the broker halts before it responds."""
LEADER, FOLLOWER = 2, 3
"""Node 1 is the controller."""
VERSION = 3


class Cluster(Protocol):
    """A running cluster of three brokers."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """HOST:PORT of each broker."""

    def fill_disk(self, node_id: int) -> None:
        """Have a broker's writes fail."""


def request(*, acks: int, timeout_ms: int) -> tuple[ProduceRequest, int]:
    data = PartitionProduceData(index=0, records=batch())
    topics = (TopicProduceData(name="orders", partition_data=(data,)),)
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics), VERSION


def produce(client: RawClient, *, acks: int, timeout_ms: int) -> int | str:
    """Produce a record, and return the error or `CLOSED`."""
    try:
        response = client.ask(*request(acks=acks, timeout_ms=timeout_ms))
    except ConnectionError:
        return CLOSED
    return int(response.responses[0].partition_responses[0].error_code)


def fill(cluster: Cluster, victim: int) -> list[Any]:
    """Fill the disk of `LEADER` or `FOLLOWER`, and return what producers and clients see."""
    for address in cluster.addresses:  # one of them is the controller
        with RawClient(address) as client:
            placed = CreatableReplicaAssignment(partition_index=0, broker_ids=(LEADER, 1, FOLLOWER))
            topic = CreatableTopic(
                name="orders", num_partitions=-1, replication_factor=-1, assignments=(placed,), configs=()
            )
            client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 2)
    other = cluster.addresses[0]
    wait_until(lambda: _roles(other) == (LEADER, [1, 2, 3]), "the topic")
    with RawClient(cluster.addresses[LEADER - 1]) as client:
        steps: list[Any] = [produce(client, acks=ALL, timeout_ms=10_000)]
        cluster.fill_disk(victim)
        steps.append(produce(client, acks=ALL, timeout_ms=1000))
    wait_until(lambda: _is_refused(cluster.addresses[victim - 1]), "its end")
    steps.append(victim in _roles(other)[1])
    wait_until(lambda: victim not in _roles(other)[1], "that the cluster notices it")
    new, _ = _roles(other)
    steps.append(new == LEADER)
    with RawClient(cluster.addresses[new - 1]) as client:
        steps.append(produce(client, acks=ALL, timeout_ms=10_000))
    return steps


def _roles(address: str) -> tuple[int, list[int]]:
    with RawClient(address) as client:
        response = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),)), 4)
    partitions = response.topics[0].partitions
    return (partitions[0].leader_id, sorted(partitions[0].isr_nodes)) if partitions else (-1, [])


def _is_refused(address: str) -> bool:
    try:
        with RawClient(address):
            return False
    except ConnectionRefusedError:
        return True
