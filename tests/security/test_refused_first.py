"""Requests of users without rights that a broker refuses for another reason first (measured on 2.8.2, 3.9.2, 4.4.0)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Alteration
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as AlteredResource
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto.messages.k51_alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialDeletion
from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from kproto_server.testing import InMemoryBroker
from tests.security.test_acl_cases import CLASSES
from tests.security.test_acls import ALICE

INVALID, DENIED, CLUSTER_DENIED, NOT_CONTROLLER, DISABLED = 42, 29, 31, 41, 73
CLASSES_OF = {"2.8": CLASSES["2.8.2"], "3.9": CLASSES["4.4.0"], "4.4": CLASSES["4.4.0"]}
RELEASES = list(CLASSES_OF)


def ask(release: str, request: Any, version: int, *, node_id: int = 1, **settings: str) -> Any:
    """Ask a broker with the topic secret, as Alice, who has no rights."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    broker = InMemoryBroker(
        kafka_version=release,
        brokers=2,
        settings={"authorizer.class.name": CLASSES_OF[release], "super.users": "User:admin", **given},
        topics={"secret": 1},
    )
    client = broker.connect(node_id=node_id)
    client.connection.info.principal = ALICE
    return client.ask(request, version)


def creation(*names: str) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()) for name in names
    )
    return CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=False)


def addition(*names: str) -> CreatePartitionsRequest:
    topics = tuple(CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names)
    return CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)


def deletion(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=names, timeout_ms=1000)


def results(items: Any) -> list[tuple[str, int]]:
    return sorted((one.name, int(one.error_code)) for one in items)


@pytest.mark.parametrize("release", RELEASES)
def test_topics_that_are_named_twice(release: str) -> None:
    is_kraft = release != "2.8"
    created = results(ask(release, creation("x", "x", "y", "__cluster_metadata"), 4).topics)
    times = 1 if is_kraft else 2
    assert created == [
        ("__cluster_metadata", INVALID if is_kraft else DENIED), *[("x", INVALID)] * times, ("y", DENIED)
    ]  # fmt: skip
    assert results(ask(release, addition("secret", "secret", "orders"), 1).results) == [
        ("orders", DENIED),
        ("secret", INVALID),
    ]
    deleted = results(ask(release, deletion("secret", "secret"), 3).responses)
    assert set(deleted) == {("secret", INVALID if is_kraft else DENIED)}


@pytest.mark.parametrize("release", RELEASES)
def test_topics_cannot_be_deleted(release: str) -> None:
    request = deletion("secret", "nope")
    for version, error in ((3, DISABLED), (1, INVALID)) if release == "2.8" else ((3, DISABLED),):
        response = ask(release, request, version, delete_topic_enable="false")
        assert results(response.responses) == [("nope", error), ("secret", error)]


def test_a_broker_that_is_not_the_controller() -> None:
    """By Kafka's source, KafkaApis of 2.8."""
    credentials = AlterUserScramCredentialsRequest(
        deletions=(ScramCredentialDeletion(name="alice", mechanism=1),), upsertions=()
    )
    assert results(ask("2.8", creation("x"), 4, node_id=2).topics) == [("x", NOT_CONTROLLER)]
    assert results(ask("2.8", addition("secret"), 1, node_id=2).results) == [("secret", NOT_CONTROLLER)]
    assert results(ask("2.8", deletion("secret"), 3, node_id=2).responses) == [("secret", NOT_CONTROLLER)]
    (altered,) = ask("2.8", credentials, 0, node_id=2).results
    assert altered.error_code == NOT_CONTROLLER
    (altered,) = ask("2.8", credentials, 0).results
    assert altered.error_code == CLUSTER_DENIED


Resource = tuple[int, str, list[tuple[str, "str | None"]]]


def altered(release: str, api_key: int, *resources: Resource) -> list[tuple[str, int]]:
    if api_key == 33:
        replaced = tuple(
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(AlterableConfig(name=config, value=value) for config, value in configs),
            )
            for kind, name, configs in resources
        )
        response = ask(release, AlterConfigsRequest(resources=replaced, validate_only=False), 0)
    else:
        changed = tuple(
            AlteredResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(Alteration(name=config, config_operation=0, value=value) for config, value in configs),
            )
            for kind, name, configs in resources
        )
        response = ask(release, IncrementalAlterConfigsRequest(resources=changed, validate_only=False), 0)
    return sorted((one.resource_name, int(one.error_code)) for one in response.responses)


@pytest.mark.parametrize("api_key", [33, 44])
@pytest.mark.parametrize("release", RELEASES)
def test_changes_of_configs(release: str, api_key: int) -> None:
    config = "retention.ms"
    is_first = INVALID if release != "2.8" else DENIED
    secret: Resource = (2, "secret", [(config, "1")])
    assert altered(release, api_key, secret) == [("secret", DENIED)]
    assert altered(release, api_key, (2, "secret", [(config, "1"), (config, "2")])) == [("secret", is_first)]
    assert altered(release, api_key, (2, "secret", [(config, "x")])) == [("secret", DENIED)]
    assert altered(release, api_key, secret, (77, "x", [(config, "1")])) == [
        ("secret", INVALID if release == "2.8" else DENIED),
        ("x", INVALID),
    ]
    assert altered(release, api_key, secret, secret) == [("secret", is_first)] * (1 if release == "2.8" else 2)
    if release != "2.8":
        assert altered(release, api_key, (2, "secret", [(config, None)])) == [("secret", INVALID)]


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_that_cannot_be_altered(release: str) -> None:
    """In 3.9.2 INVALID_REQUEST, which names the fault."""
    assert altered(release, 44, (4, "9", [("log.retention.ms", "1")])) == [("9", CLUSTER_DENIED)]
    assert altered(release, 44, (4, "1", [("log.retention.ms", "x")])) == [("1", CLUSTER_DENIED)]


@pytest.mark.parametrize("release", RELEASES)
def test_a_resource_of_an_unknown_type_is_described(release: str) -> None:
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in ((77, "x"), (2, "secret"))
    )
    response = ask(release, DescribeConfigsRequest(resources=resources), 1)
    assert [(one.resource_name, one.error_code) for one in response.results] == [("x", INVALID), ("secret", INVALID)]


@pytest.mark.parametrize("release", RELEASES)
def test_producers_of_a_topic_with_an_invalid_name(release: str) -> None:
    topics = tuple(TopicRequest(name=name, partition_indexes=(0,)) for name in ("a b", "secret"))
    response = ask(release, DescribeProducersRequest(topics=topics), 0)
    errors = {topic.name: topic.partitions[0].error_code for topic in response.topics}
    assert errors == {"a b": 29 if release == "2.8" else 17, "secret": 29}
