"""`Broker.requests.where` and `wait`: what each filter finds, and what is refused because it could never find anything.

Method: a raw client sends requests of all versions; the names in them are known. The second half compares, for every
API and version, the names that `names_in` finds with the names that were put into each field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto import registry
from kproto.declaration import fields_of
from kproto.errors import UsageError
from kproto.messages import APIS
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto_server import Broker
from kproto_server.observation.named import Kind, kinds_named_by, names_in
from kproto_server.observation.request_log import DELETED_TOPICS_MAX, RequestLog
from tests.network.raw_client import RawClient

TOPIC_IDS_SINCE = {0: 13, 1: 13, 8: 10}
"""API key -> the version from which on its requests have topic ids and no names."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker.running(brokers=2, settings={"num.partitions": 4}) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap_servers) as connected:
        yield connected


def create_topic(client: RawClient, name: str) -> bytes:
    """Return the id of a new topic."""
    client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 4)
    (topic,) = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),)), 12).topics
    found: bytes = topic.topic_id
    return found


def request_for(api_key: int, topic: str, topic_id: bytes, partition: int) -> Any:
    """Return a Produce, Fetch or OffsetCommit that names a partition, by name and by id."""
    if api_key == 0:
        data = (PartitionProduceData(index=partition, records=b""),)
        topics = (TopicProduceData(name=topic, topic_id=topic_id, partition_data=data),)
        return ProduceRequest(acks=1, timeout_ms=0, topic_data=topics)
    if api_key == 1:
        fetched = (FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1),)
        return FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=fetched),)
        )
    committed = (OffsetCommitRequestPartition(partition_index=partition, committed_offset=1, committed_metadata=""),)
    offsets = (OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=committed),)
    return OffsetCommitRequest(group_id="g", topics=offsets)


@pytest.mark.parametrize("api_key", [0, 1, 8])
def test_topic_and_partition_in_all_versions(api_key: int, broker: Broker, client: RawClient) -> None:
    ids = {name: create_topic(client, name) for name in ("orders", "bills")}
    versions = registry.request_class(api_key)._versions
    for version in range(versions.first, versions.last + 1):
        broker.requests.clear()
        by_id = version >= TOPIC_IDS_SINCE[api_key]
        for partition, topic in enumerate(("orders", "bills")):
            topic_id, name = (ids[topic], "") if by_id else (bytes(16), topic)
            client.ask(request_for(api_key, name, topic_id, partition), version)
        api = APIS[api_key]
        (orders,) = broker.requests.where(api=api, topic="orders")
        (bills,) = broker.requests.where(api=api, topic="bills", partition=1, version=version)
        assert orders.number < bills.number
        assert broker.requests.where(partition=0) == (orders,)
        assert not broker.requests.where(topic="orders", partition=1), "the partition is that of the topic"
        assert not broker.requests.where(api=api, topic="never-written")


def test_the_name_of_a_deleted_topic_is_known(broker: Broker, client: RawClient) -> None:
    topic_id = create_topic(client, "orders")
    client.ask(request_for(1, "", topic_id, 0), 13)
    client.ask(DeleteTopicsRequest(topics=(DeleteTopicState(topic_id=topic_id, name=None),), timeout_ms=0), 6)
    assert len(broker.requests.where(api="Fetch", topic="orders")) == 1
    assert len(broker.requests.where(api="DeleteTopics", topic="orders")) == 1


def test_a_topic_that_is_created_during_the_wait_is_found(broker: Broker, client: RawClient) -> None:
    topic_id = create_topic(client, "orders")
    client.send((request_for(1, "", topic_id, 2), 16))
    (found,) = broker.requests.wait(api="Fetch", topic="orders", partition=2)
    assert found.api_version == 16


def test_the_names_of_few_deleted_topics_are_kept() -> None:
    log = RequestLog()
    for number in range(DELETED_TOPICS_MAX + 10):
        log.topic_deleted(number.to_bytes(16, "big"), str(number))
    assert len(log.deleted_topics) == DELETED_TOPICS_MAX
    assert "9" not in log.deleted_topics.values()
    log.clear()
    assert not log.deleted_topics


def test_member_transactional_id_group_and_resource(broker: Broker, client: RawClient) -> None:
    client.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m-1"), 0)
    client.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1), 0)
    client.ask(FindCoordinatorRequest(key="tx", key_type=1), 1)
    client.ask(FindCoordinatorRequest(coordinator_keys=("g", "h"), key_type=0), 4)
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((2, "orders"), (4, "1"), (32, "k"))
    )
    client.ask(DescribeConfigsRequest(resources=resources), 1)

    def apis(**wanted: Any) -> list[str]:
        return [request.api for request in broker.requests.where(**wanted)]

    assert apis(member="m-1") == ["Heartbeat"]
    assert apis(transactional_id="tx") == ["InitProducerId", "FindCoordinator"]
    assert apis(group="g") == ["Heartbeat", "FindCoordinator"]
    assert apis(group="tx") == apis(member="m") == apis(transactional_id="g") == apis(topic="1") == []
    assert apis(topic="orders") == apis(group="k") == ["DescribeConfigs"]
    assert apis(group="h", api="FindCoordinator", version=4, node_id=1) == ["FindCoordinator"]
    assert apis(node_id=2) == []


def test_software_of_the_client(broker: Broker, client: RawClient) -> None:
    client.ask(ApiVersionsRequest(client_software_name="new", client_software_version="7"), 3)
    client.ask(MetadataRequest(topics=()), 1)
    assert [request.api for request in broker.requests.where(software_name="new", software_version="7")] == [
        "ApiVersions",
        "Metadata",
    ]
    assert not broker.requests.where(software_name="old")
    assert not broker.requests.where(software_version="8")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown filter": ({"topics": "t"}, "there is no filter 'topics': use api, version, client_id, .*topic, part"),
    "an unknown API": ({"api": "Metaphor"}, "there is no API 'Metaphor': use Produce, Fetch, .*UnregisterController$"),
    "an unknown API key": ({"api": 99}, "there is no API 99: use 0, 1, .*, 94, or -1 for frames without header$"),
    "an unknown error": ({"error": "TEAPOT"}, r"there is no error 'TEAPOT': use .*, NOT_COORDINATOR \(16\)"),
    "an unknown error code": ({"error": 999}, r"there is no error 999: use "),
    "an unknown node": ({"node_id": 7}, "node 7 does not exist: there are nodes 1, 2$"),
    "a topic of Heartbeat": (
        {"api": "Heartbeat", "topic": "t"},
        "Heartbeat has no topic: its filters are api, version, client_id, software_name, software_version, node_id, "
        "error, group, member$",
    ),
    "a member of Produce": (
        {"api": 0, "member": "m"},
        "Produce has no member: its filters are .*, error, topic, partition, transactional_id$",
    ),
    "a partition of Metadata": ({"api": "Metadata", "partition": 0}, "Metadata has no partition: .*, error, topic$"),
    "a transactional id of Fetch": ({"api": 1, "transactional_id": "x"}, "Fetch has no transactional id: "),
    "a group of a frame without header": ({"api": -1, "group": "g"}, "a frame without header has no group: "),
    "a negative partition": ({"partition": -1}, "partition is a number from 0 on, not -1$"),
    "a version that is a string": ({"version": "3"}, "version is a number from 0 on, not '3'$"),
    "a node that is a truth value": ({"node_id": True}, "node_id is a number from 0 on, not True$"),
    "a group that is None": ({"group": None}, "group is a string, not None$"),
    "a topic of bytes": ({"topic": b"t"}, "topic is a string, not b't'$"),
    "an API that is None": ({"api": None}, "api is a name or a number, not None$"),
    "an error that is a truth value": ({"error": False}, "error is a name or a number, not False$"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_find_nothing_is_refused(name: str, broker: Broker) -> None:
    wanted, text = REFUSED[name]
    for ask in (broker.requests.where, broker.requests.wait):
        with pytest.raises(UsageError, match=f"^{text}"):
            ask(**wanted)


@pytest.mark.parametrize("arguments", [{"count": -1}, {"count": "1"}, {"timeout_s": float("nan")}, {"timeout_s": "1"}])
def test_wait_refuses_other_numbers(arguments: dict[str, Any], broker: Broker) -> None:
    with pytest.raises(UsageError, match="is a number"):
        broker.requests.wait(**arguments)
    with pytest.raises(UsageError, match=r"use api, .*, count, timeout_s$"):
        broker.requests.wait(**arguments | {"count": 1, "timeout_s": 1, "grup": "g"})


# Every API.

RESOURCE_APIS = (29, 30, 31, 32, 33, 44)
ATTRIBUTES = {
    Kind.TOPIC: "topics",
    Kind.PARTITION: "partitions",
    Kind.GROUP: "groups",
    Kind.MEMBER: "members",
    Kind.TRANSACTIONAL_ID: "transactional_ids",
}


@pytest.mark.parametrize("api_key", APIS)
def test_every_api_names_what_its_declaration_says(api_key: int) -> None:
    """A request whose fields are all filled has names of exactly the kinds that filters may ask its API for."""
    request = filled(registry.request_class(api_key))
    names = names_in(request)
    found = {kind for kind, attribute in ATTRIBUTES.items() if getattr(names, attribute)}
    if api_key == 10:  # one key type at a time
        found |= {Kind.TRANSACTIONAL_ID} if names_in(request.replace(key_type=1)).transactional_ids else set()
    if api_key in RESOURCE_APIS:  # of resource type 2
        found |= {Kind.GROUP}
    assert found == kinds_named_by(api_key)


def filled(cls: Any) -> Any:
    """Return a value without empty fields: strings "x", numbers 0 (resource types 2), arrays of one element."""

    def value(field_name: str, kind: Any) -> Any:
        if kind.kind == "array":
            return (value(field_name, kind.element),)
        if kind.kind == "struct":
            return filled(kind.struct)
        if kind.kind in ("string", "bytes", "records", "uuid"):
            return {"string": "x", "bytes": b"x", "records": b"x", "uuid": b"x" * 16}[kind.kind]
        return 2 if field_name.startswith("resource_type") else 0

    return cls(**{field.name: value(field.name, field.type) for field in fields_of(cls)})
