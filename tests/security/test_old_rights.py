"""Rights before Kafka 2.0 (measured on 0.11.0.3, 1.0.2 and 1.1.1)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.message import Request
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto_server.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from kproto_server.testing import InMemoryBroker
from tests.security.acl_cases import BATCH
from tests.security.test_acl_cases import CLASSES
from tests.security.test_acls import ALICE

MISSING, DENIED, CLUSTER_DENIED, GROUP_DENIED = 3, 29, 31, 30
NAMES = ("secret", "t")


def acl(kind: ResourceType, name: str, operation: Operation) -> Acl:
    return Acl(kind, name, PatternType.LITERAL, ALICE, "*", operation, Permission.ALLOW)


def topic_acl(name: str, operation: Operation) -> Acl:
    return acl(ResourceType.TOPIC, name, operation)


OTHER_RIGHTS = (
    topic_acl("t", Operation.ALL),
    acl(ResourceType.GROUP, "g", Operation.ALL),
    acl(ResourceType.TRANSACTIONAL_ID, "x", Operation.ALL),
    acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE),
)


def ask(release: str, request: Request, version: int, *acls: Acl) -> Any:
    """Ask a broker with the topics t and secret, as Alice with these ACLs."""
    settings = {"authorizer.class.name": CLASSES["2.0.1"], "super.users": "User:admin", "delete.topic.enable": "true"}
    broker = InMemoryBroker(kafka_version=release, settings=settings, topics=dict.fromkeys(NAMES, 1))
    assert broker.state.cluster.ensure_offsets_topic(broker.clock.now_ms())
    authorizer = broker.state.cluster.authorizer
    assert authorizer is not None
    authorizer.replace(acls)
    client = broker.connect()
    client.connection.info.principal = ALICE
    return client.ask(request, version)


def errors(response: Any) -> list[tuple[str, int]]:
    """Return name and error of each topic of a response, or of its only partition."""
    arrays = ("topics", "responses", "results_by_topic_v3_and_below")
    topics = next(getattr(response, name) for name in arrays if getattr(response, name, None))
    found = []
    for topic in topics:
        error = getattr(topic, "error_code", 0)
        for array in ("partitions", "partition_responses", "results_by_partition"):
            for one in getattr(topic, array, ()):
                error = error or getattr(one, "error_code", 0) or getattr(one, "partition_error_code", 0)
        found.append((topic.topic if hasattr(topic, "topic") else topic.name, int(error)))
    return sorted(found)


REQUESTS: list[tuple[Request, int]] = [
    (
        ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=tuple(
                TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=BATCH),))
                for name in NAMES
            ),
        ),
        3,
    ),
    (
        FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            topics=tuple(
                FetchTopic(topic=name, partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1),))
                for name in NAMES
            ),
        ),
        4,
    ),
    (
        ListOffsetsRequest(
            replica_id=-1,
            topics=tuple(
                ListOffsetsTopic(name=name, partitions=(ListOffsetsPartition(partition_index=0, timestamp=-1),))
                for name in NAMES
            ),
        ),
        1,
    ),
    (MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in NAMES)), 4),
    (
        OffsetCommitRequest(
            group_id="g",
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=(
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=""),
                    ),
                )
                for name in NAMES
            ),
        ),
        2,
    ),
    (
        OffsetFetchRequest(
            group_id="g", topics=tuple(OffsetFetchRequestTopic(name=name, partition_indexes=(0,)) for name in NAMES)
        ),
        2,
    ),
    (
        DeleteRecordsRequest(
            topics=tuple(
                DeleteRecordsTopic(name=name, partitions=(DeleteRecordsPartition(partition_index=0, offset=0),))
                for name in NAMES
            ),
            timeout_ms=500,
        ),
        0,
    ),
    (DeleteTopicsRequest(topic_names=NAMES, timeout_ms=500), 1),
]
TRANSACTION = AddPartitionsToTxnRequest(
    v3_and_below_transactional_id="x",
    v3_and_below_producer_id=1,
    v3_and_below_producer_epoch=0,
    v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in NAMES),
)


@pytest.mark.parametrize(("release", "error"), [("0.11", MISSING), ("1.0", DENIED), ("1.1", DENIED)])
def test_topics_that_a_client_may_not_describe(release: str, error: int) -> None:
    """KAFKA-5547."""
    for request, version in REQUESTS:
        found = errors(ask(release, request, version, *OTHER_RIGHTS))
        assert found == [("secret", error), ("t", 0)], request
    assert errors(ask(release, TRANSACTION, 0, *OTHER_RIGHTS)) == [("secret", error), ("t", 55)]


def test_topics_that_a_client_may_describe() -> None:
    rights = *OTHER_RIGHTS, topic_acl("secret", Operation.DESCRIBE)
    by_api = {
        type(request).__name__: errors(ask("0.11", request, version, *rights))[0][1] for request, version in REQUESTS
    }
    allowed = ("ListOffsetsRequest", "MetadataRequest", "OffsetFetchRequest")
    assert by_api == {name: 0 if name in allowed else DENIED for name in by_api}
    assert errors(ask("0.11", TRANSACTION, 0, *rights))[0] == ("secret", DENIED)


@pytest.mark.parametrize("release", ["0.11", "1.1", "2.0"])
def test_create_on_a_topic_is_a_right_from_2_0_on(release: str) -> None:
    """KIP-277."""
    rights = topic_acl("y", Operation.CREATE), topic_acl("y", Operation.DESCRIBE)
    topics = tuple(
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        for name in ("x", "y")
    )
    created = ask(release, CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=False), 1, *rights)
    by_topic = release == "2.0"
    expected = [("x", DENIED), ("y", 0)] if by_topic else [("x", CLUSTER_DENIED), ("y", CLUSTER_DENIED)]
    assert errors(created) == expected
    wanted = MetadataRequest(topics=(MetadataRequestTopic(name="y"),), allow_auto_topic_creation=True)
    assert errors(ask(release, wanted, 4, *rights)) == [("y", 5 if by_topic else DENIED)]


@pytest.mark.parametrize(("release", "error"), [("0.11", GROUP_DENIED), ("1.0", 0)])
def test_offsets_of_a_group_that_a_client_may_describe(release: str, error: int) -> None:
    """KAFKA-5547."""
    request = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),))
    rights = acl(ResourceType.GROUP, "g", Operation.DESCRIBE), topic_acl("t", Operation.ALL)
    assert ask(release, request, 2, *rights).error_code == error
