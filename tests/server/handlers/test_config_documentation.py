"""DescribeConfigs with include_documentation: every config has Kafka's text (recorded from running brokers)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto_server.releases.kafka_version import KafkaVersion
from tests.configuration.record_configs import RELEASES
from tests.coordinator.broker_state import ask, new_state

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
RESOURCES = ((TOPIC, "t"), (BROKER, "1"), (CLIENT_METRICS, "m"), (GROUP, "g"))


def documented(kafka_version: str, *, asks: bool = True) -> dict[int, dict[str, str | None]]:
    """Return documentation by type of resource and config."""
    state = new_state(kafka_version)
    change = AlterableConfig(name="interval.ms", config_operation=0, value="1000")
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name="m", configs=(change,))
    ask(state, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    found: dict[int, dict[str, str | None]] = {}
    for resource_type, name in RESOURCES:
        resources = (DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None),)
        response: Any = ask(state, DescribeConfigsRequest(resources=resources, include_documentation=asks), 3)
        found[resource_type] = {one.name: one.documentation for one in response.results[0].configs}
    return found


@pytest.mark.parametrize("release", ["latest", "3.9-zookeeper", *RELEASES])
def test_every_config_has_a_text(release: str) -> None:
    texts = documented(release)
    has_texts_for_metrics = KafkaVersion.named(release).at_least(4, 1)
    for resource_type, by_name in texts.items():
        if resource_type != CLIENT_METRICS or has_texts_for_metrics:
            assert [name for name, text in by_name.items() if not text] == []
    assert texts[TOPIC]
    assert texts[BROKER]


@pytest.mark.parametrize(
    ("release", "name", "ending"),
    [
        ("2.6", "retention.ms", "If set to -1, no time limit is applied."),
        ("3.7", "retention.ms", "If set to -1, no time limit is applied."),
        ("3.8", "retention.ms", "it triggers the rolling of new segment if the retention.ms condition is satisfied."),
        ("4.0.0", "remote.storage.enable", "It will be provided in future versions."),
        ("4.0", "remote.storage.enable", "you must also set <code>remote.log.delete.on.disable</code> to true."),
        ("4.4", "max.decompressed.message.bytes", None),
    ],
)
def test_a_text_is_that_of_the_release(release: str, name: str, ending: str | None) -> None:
    text = documented(release)[TOPIC][name]
    assert text
    assert text.endswith(ending or "")


def test_texts_depend_on_the_kind_of_resource() -> None:
    texts = documented("4.4")
    assert texts[BROKER]["group.share.session.timeout.ms"] == (
        "The timeout to detect client failures when using the share group protocol."
    )
    assert texts[CLIENT_METRICS]["interval.ms"] == "Metrics push interval in milliseconds"
    assert texts[TOPIC]["min.insync.replicas"] == texts[BROKER]["min.insync.replicas"]


@pytest.mark.parametrize("release", ["2.6", "4.0", "4.4"])
def test_a_client_that_does_not_ask_gets_no_text(release: str) -> None:
    """Up to 4.0 client metrics have an empty text, whether the client asks or not (measured on 3.7.2 and 4.0.2)."""
    found = documented(release, asks=False)
    metrics = found.pop(CLIENT_METRICS)
    assert {text for by_name in found.values() for text in by_name.values()} == {None}
    assert set(metrics.values()) == {"2.6": set(), "4.0": {""}, "4.4": {None}}[release]
    if release == "4.0":
        assert documented(release)[CLIENT_METRICS] == {"interval.ms": ""}


@pytest.mark.parametrize(
    ("release", "node_ids"),
    [
        ("2.7", {"broker.id": ["7", "-1"]}),
        ("3.0", {"broker.id": ["7", "-1"], "node.id": ["-1"]}),
        ("3.1", {"broker.id": ["7", "-1"], "node.id": ["7", "-1"]}),
        ("4.0", {"broker.id": ["7", "-1"], "node.id": ["7"]}),
    ],
)
def test_a_broker_has_its_id_under_the_names_of_the_release(release: str, node_ids: dict[str, list[str]]) -> None:
    """The values of the synonyms, measured on 2.7.2, 2.8.2, 3.0.2, 3.1.2, 3.9.2 and 4.0.0."""
    state = new_state(release, settings={"broker.id": "6"}, node_count=2)
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="7", configuration_keys=("broker.id", "node.id")
    )
    response = ask(state, DescribeConfigsRequest(resources=(resource,), include_synonyms=True), 2, node_id=7)
    found = {one.name: one for one in response.results[0].configs}
    assert {name: [synonym.value for synonym in one.synonyms] for name, one in found.items()} == node_ids
    assert all(one.value == node_ids[name][0] and one.read_only for name, one in found.items())


@pytest.mark.parametrize(("release", "is_described"), [("3.7", False), ("3.8", True), ("3.9", False), ("4.0", True)])
def test_the_migration_policy_is_internal_in_some_releases(release: str, is_described: bool) -> None:
    """Measured on 3.7.2, 3.8.1, 3.9.2 and 4.0.0."""
    assert ("group.consumer.migration.policy" in documented(release)[BROKER]) is is_described
