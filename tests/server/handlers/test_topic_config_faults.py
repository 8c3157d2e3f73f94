"""Errors for requests about topics' configs that have more than one fault; measured on 2.8.2, 3.9.2 and 4.4.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Alteration
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as AlteredResource
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto.messages.k75_describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from tests.coordinator.broker_state import ask, new_state

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

SET, DELETE, APPEND, SUBTRACT, UNKNOWN = 0, 1, 2, 3, 9
Returned = tuple[int, str | None]


def change(state: BrokerState, topic: str, *changes: tuple[str, int, str]) -> Returned:
    configs = tuple(Alteration(name=name, config_operation=how, value=value) for name, how, value in changes)
    resource = AlteredResource(resource_type=2, resource_name=topic, configs=configs)
    (response,) = ask(state, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1).responses
    return response.error_code, response.error_message


def replace(state: BrokerState, topic: str, name: str, *values: str) -> int:
    configs = tuple(AlterableConfig(name=name, value=value) for value in values)
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=configs)
    response = ask(state, AlterConfigsRequest(resources=(resource,), validate_only=False), 2)
    return int(response.responses[0].error_code)


@pytest.mark.parametrize(("kafka_version", "value_first"), [("2.8", False), ("3.9", True), ("4.4", True)])
def test_kraft_checks_values_before_it_looks_for_the_topic(kafka_version: str, value_first: bool) -> None:
    state = new_state(kafka_version)
    assert replace(state, "nope", "retention.ms", "soon") == (40 if value_first else 3)
    assert replace(state, "nope", "retention.ms", "1000") == 3
    assert change(state, "nope", ("retention.ms", SET, "soon"))[0] == (40 if value_first else 3)


@pytest.mark.parametrize(("kafka_version", "error"), [("2.8", 0), ("3.9", 42), ("4.4", 42)])
def test_a_config_given_twice_is_refused(kafka_version: str, error: int) -> None:
    """Before, the last one counts."""
    assert replace(new_state(kafka_version), "t", "retention.ms", "soon", "1000") == error


@pytest.mark.parametrize(
    ("kafka_version", "error", "message"),
    [
        ("2.8", 42, "Config value subtract is not allowed for config key: retention.ms"),
        ("3.9", 40, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
        ("4.4", 40, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
    ],
)
def test_changes_are_understood_before_the_topic_is_looked_for(kafka_version: str, error: int, message: str) -> None:
    state = new_state(kafka_version)
    assert change(state, "nope", ("retention.ms", SUBTRACT, "1")) == (error, message)
    assert change(state, "nope", ("retention.ms", UNKNOWN, "1")) == (-1, None)


@pytest.mark.parametrize("kafka_version", ["3.9", "4.4"])
def test_kraft_checks_the_name_between_the_changes_and_their_values(kafka_version: str) -> None:
    state = new_state(kafka_version)
    assert change(state, "", ("retention.ms", SET, "soon")) == (42, "Default topic resources are not allowed.")
    assert change(state, "a b", ("retention.ms", SET, "soon"))[0] == 17
    assert change(state, "a b", ("retention.ms", APPEND, "1"))[0] == 40


@pytest.mark.parametrize(
    ("kafka_version", "returned"),
    [
        ("2.5", (-1, "key not found: no.such")),
        ("2.8", (-1, None)),
        ("4.4", (40, "Can't APPEND to key no.such because its type is not LIST.")),
    ],
)
def test_nothing_is_appended_to_what_is_not_known(kafka_version: str, returned: Returned) -> None:
    assert change(new_state(kafka_version), "t", ("no.such", APPEND, "1")) == returned


def test_of_several_faults_the_first_is_reported() -> None:
    first, second = ("retention.ms", APPEND, "1"), ("max.message.bytes", APPEND, "1")
    for changes in ((first, second), (second, first)):
        assert change(new_state("4.4"), "t", *changes) == (
            40,
            f"Can't APPEND to key {changes[0][0]} because its type is not LIST.",
        )


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_are_no_paths_are_missing_topics(name: str) -> None:
    state = new_state("2.8")
    assert change(state, name, ("retention.ms", SET, "1"))[0] == 3
    asked = CreatePartitionsTopic(name=name, count=3, assignments=None)
    request = CreatePartitionsRequest(topics=(asked,), timeout_ms=1, validate_only=False)
    assert ask(state, request, 2).results[0].error_code == 3


@pytest.mark.parametrize("kafka_version", ["2.8", "4.4"])
def test_an_unknown_type_has_all_refused(kafka_version: str) -> None:
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name="t", configuration_keys=None) for kind in (2, 77)
    )
    results = ask(new_state(kafka_version), DescribeConfigsRequest(resources=resources), 4).results
    assert [(result.error_code, result.configs) for result in results] == [(42, ()), (42, ())]


@pytest.mark.parametrize(
    ("names", "returned"),
    [
        (("t", "a b", "nope"), [("a b", 17), ("nope", 3), ("t", 0)]),
        ((".",), [(".", 17)]),
        (("", "t"), [("", -1), ("t", -1)]),
    ],
)
def test_topics_with_bad_names_are_described_by_themselves(
    names: tuple[str, ...], returned: list[tuple[str, int]]
) -> None:
    """But for the empty one."""
    request = DescribeTopicPartitionsRequest(topics=tuple(TopicRequest(name=name) for name in names))
    response = ask(new_state("4.4"), request, 0)
    assert [(topic.name, topic.error_code) for topic in response.topics] == returned


@pytest.mark.parametrize(("kafka_version", "again"), [("2.8", "delete,compact,compact"), ("4.4", "delete,compact")])
def test_a_list_that_is_not_set_begins_as_the_default_of_kafka(kafka_version: str, again: str) -> None:
    """Whatever the broker's setting says; measured on 2.8.2, 3.2.3, 3.3.2 and 4.4.0."""
    state = new_state(kafka_version, settings={"log.cleanup.policy": "compact"})
    name, topics = "cleanup.policy", state.cluster.topics
    for expected in ("delete,compact", again):
        assert change(state, "t", (name, APPEND, "compact"))[0] == 0
        assert topics["t"].configs[name] == expected
    assert change(state, "u", (name, SUBTRACT, "delete"))[0] == 0
    assert topics["u"].configs[name] == ""
