"""Too few in-sync replicas, as a script for real clusters and for kproto.

Three brokers with ``min.insync.replicas=2``; two of them stop, so that each partition has one in-sync replica. The
script sends the requests of producers, of members and of transactional producers before, meanwhile and after one of the
brokers has started again, and records the error codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.partition_log.conversation_chapters import batch
from tests.waiting import wait_until

BROKERS = 3
ALL = -1
TOPICS = 3
"""Each has one partition."""
GROUP, TRANSACTION = 0, 1
LOADING, CONCURRENT = 14, 51
SETTINGS = {
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.commit.timeout.ms": "1000",
}


class Cluster(Protocol):
    """A running cluster of three brokers."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of each broker, comma-separated."""

    def start(self, node_id: int) -> None:
        """Start a broker; return when the others know it."""

    def stop(self, node_id: int) -> None:
        """Stop a broker."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request and its result."""

    brokers: int
    """Number of running brokers."""
    request: str
    result: Any


def shrink(cluster: Cluster) -> list[Step]:
    """Run the script; return its steps."""
    with RawClient(cluster.bootstrap) as client:
        created = CreatableTopic(name="orders", num_partitions=1, replication_factor=3, assignments=(), configs=())
        client.ask(CreateTopicsRequest(topics=(created,), timeout_ms=10_000), 2)
        for key_type in (GROUP, TRANSACTION):
            wait_until(lambda kind=key_type: _finds(client, kind), "a coordinator")  # type: ignore[misc]
        _wait_in_sync(client, 3)
        cluster.stop(3)
        _wait_in_sync(client, 2)
        steps = [Step(2, *step) for step in _steps(cluster, client, 1)]
        cluster.stop(2)
        _wait_in_sync(client, 1)
        steps += [Step(1, *step) for step in _steps(cluster, client, 2)]
        cluster.start(2)
        _wait_in_sync(client, 2)
        steps += [Step(2, *step) for step in _steps(cluster, client, 3)]
    return steps


def _steps(cluster: Cluster, client: RawClient, number: int) -> Iterator[tuple[str, Any]]:
    with RawClient(_leader(client, "orders")) as leader:
        for acks in (1, ALL):
            yield f"produce with acks={acks}", _produce(leader, acks)
    with RawClient(_leader(client, "__consumer_offsets")) as coordinator:
        wait_until(lambda: _fetch(coordinator, "simple")[0] == 0, "the load")
        yield "commit", _commit(coordinator, "simple", number)
        yield "commit of another group", _commit(coordinator, f"simple-{number}", number)
        yield "committed", _fetch(coordinator, "simple")
        yield "committed of the other group", _fetch(coordinator, f"simple-{number}")
        yield "join and sync", _join_and_sync(coordinator, f"members-{number}")
    with RawClient(_leader(client, "__transaction_state")) as coordinator:
        yield "transaction", _transaction(coordinator, _leader(client, "__consumer_offsets"), f"t-{number}", number)


def _transaction(coordinator: RawClient, group_coordinator: str, transactional_id: str, number: int) -> Any:
    """Begin a transaction, and commit an offset in it as far as there are no errors."""
    results: list[Any] = []

    def begins() -> bool:
        made = coordinator.ask(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 1
        )
        results[:] = [made]
        return made.error_code not in (LOADING, CONCURRENT)

    wait_until(begins, "the load")
    (made,) = results
    if made.error_code:
        return made.error_code
    producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    added = coordinator.ask(AddOffsetsToTxnRequest(transactional_id=transactional_id, group_id="t", **producer), 1)
    with RawClient(group_coordinator) as groups:
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=number, committed_metadata="")
        topics = (TxnOffsetCommitRequestTopic(name="orders", partitions=(part,)),)
        committed = groups.ask(
            TxnOffsetCommitRequest(transactional_id=transactional_id, group_id="t", topics=topics, **producer), 1
        )
    return made.error_code, added.error_code, committed.topics[0].partitions[0].error_code


def _wait_in_sync(client: RawClient, count: int) -> None:
    """Wait until each partition has a leader and so many in-sync replicas."""

    def is_so() -> bool:
        found = _partitions(client)
        return len(found) == TOPICS and all(len(one.isr_nodes) == count and one.leader_id > 0 for one in found)

    wait_until(is_so, f"{count} replicas in sync")


def _partitions(client: RawClient) -> list[Any]:
    return [one for topic in client.ask(MetadataRequest(topics=None), 4).topics for one in topic.partitions]


def _leader(client: RawClient, name: str) -> str:
    """Return HOST:PORT of the leader of a topic's partition."""
    response = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 4)
    leader = response.topics[0].partitions[0].leader_id
    return next(f"{one.host}:{one.port}" for one in response.brokers if one.node_id == leader)


def _finds(client: RawClient, key_type: int) -> bool:
    return bool(client.ask(FindCoordinatorRequest(key="g", key_type=key_type), 1).error_code == 0)


def _produce(leader: RawClient, acks: int) -> int:
    data = PartitionProduceData(index=0, records=batch())
    topics = (TopicProduceData(name="orders", partition_data=(data,)),)
    response = leader.ask(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics), 3)
    return int(response.responses[0].partition_responses[0].error_code)


def _commit(coordinator: RawClient, group_id: str, offset: int) -> int:
    response = coordinator.ask(commit_request(group_id, {"orders": {0: offset}}), 2)
    return int(response.topics[0].partitions[0].error_code)


def _fetch(coordinator: RawClient, group_id: str) -> tuple[int, int]:
    topics = (OffsetFetchRequestTopic(name="orders", partition_indexes=(0,)),)
    response = coordinator.ask(OffsetFetchRequest(group_id=group_id, topics=topics), 2)
    if response.error_code:
        return response.error_code, 0
    return 0, response.topics[0].partitions[0].committed_offset


def _join_and_sync(coordinator: RawClient, group_id: str) -> tuple[int, int]:
    join = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    joined = coordinator.ask(join, 2)
    assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"a")
    sync = SyncGroupRequest(
        group_id=group_id, generation_id=joined.generation_id, member_id=joined.member_id, assignments=(assignment,)
    )
    return joined.error_code, coordinator.ask(sync, 1).error_code
