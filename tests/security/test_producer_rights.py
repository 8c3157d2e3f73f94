"""Rights of producers and brokers, and overlapping filters of ACLs, where no recording reaches."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kproto.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kproto_server.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from kproto_server.testing import InMemoryBroker
from tests.security.test_acls import ALICE
from tests.security.test_refused_first import CLASSES_OF, RELEASES

ANY, LITERAL = 1, PatternType.LITERAL
UNKNOWN_ID = bytes(15) + b"\x07"


def acl(kind: ResourceType, name: str, operation: Operation, principal: str = ALICE) -> Acl:
    return Acl(kind, name, LITERAL, principal, "*", operation, Permission.ALLOW)


def ask(release: str, request: Any, version: int, *acls: Acl, principal: str = ALICE) -> Any:
    """Ask a broker that has these ACLs and the topics t and secret."""
    settings = {"authorizer.class.name": CLASSES_OF[release], "super.users": "User:admin"}
    broker = InMemoryBroker(kafka_version=release, settings=settings, topics={"t": 1, "secret": 1})
    authorizer = broker.state.cluster.authorizer
    assert authorizer is not None
    authorizer.replace(acls)
    client = broker.connect()
    client.connection.info.principal = principal
    return client.ask(request, version)


@pytest.mark.parametrize("release", RELEASES)
def test_partitions_beside_those_of_a_denied_topic(release: str) -> None:
    """BA-101; measured on 2.8.2 and 4.4.0. Internal topics are denied before they exist."""
    topics = tuple(
        AddPartitionsToTxnTopic(name=name, partitions=partitions)
        for name, partitions in (("secret", (0,)), ("t", (0, 7)), ("__consumer_offsets", (0,)))
    )
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="id",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )
    rights = acl(ResourceType.TRANSACTIONAL_ID, "id", Operation.WRITE), acl(ResourceType.TOPIC, "t", Operation.WRITE)
    for given, error in ((rights, 29), ((*rights, acl(ResourceType.TOPIC, "secret", Operation.WRITE)), 55)):
        found = ask(release, request, 0, *given).results_by_topic_v3_and_below
        assert {one.name: [of.partition_error_code for of in one.results_by_partition] for one in found} == {
            "secret": [error],
            "t": [55, 3],
            "__consumer_offsets": [29],
        }


@pytest.mark.parametrize(("release", "error"), [("2.8", 31), ("3.9", 0), ("4.4", 0)])
def test_markers_are_written_with_alter(release: str, error: int) -> None:
    """KAFKA-16513; measured on 2.8.2, 3.7.2, 3.9.2 and 4.4.0."""
    topics = (WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),)
    marker = WritableTxnMarker(
        producer_id=1, producer_epoch=0, transaction_result=True, coordinator_epoch=0, topics=topics
    )
    rights = acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.ALTER)
    response = ask(release, WriteTxnMarkersRequest(markers=(marker,)), 1 if release == "4.4" else 0, rights)
    assert response.markers[0].topics[0].partitions[0].error_code == error


@pytest.mark.parametrize("release", RELEASES)
def test_of_filters_that_select_the_same_acls_the_first_has_them(release: str) -> None:
    """BA-120; measured on 2.8.2, and on 4.4.0, where both have them."""
    values: dict[str, Any] = {
        "resource_type_filter": 2, "resource_name_filter": "t", "pattern_type_filter": ANY, "principal_filter": None,
        "host_filter": None, "operation": ANY, "permission_type": ANY,
    }  # fmt: skip
    filters = (
        DeleteAclsFilter(**values),
        DeleteAclsFilter(**{**values, "resource_name_filter": None, "principal_filter": ALICE}),
    )
    acls = [acl(ResourceType.TOPIC, "t", operation) for operation in (Operation.READ, Operation.WRITE)]
    response = ask(release, DeleteAclsRequest(filters=filters), 1, *acls, principal="User:admin")
    assert [len(one.matching_acls) for one in response.filter_results] == [2, 0]


def test_names_beside_ids_are_ignored() -> None:
    """Measured on 4.4.0: such a name creates no topic."""
    topics = MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None), MetadataRequestTopic(name="new")
    response = ask("4.4", MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12)
    assert [(one.name, one.error_code) for one in response.topics] == [(None, 100)]
