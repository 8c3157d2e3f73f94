"""Config changes take effect while a broker runs, and DescribeLogDirs returns the sizes of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k35_describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.coordinator.broker_state import ask, new_state
from tests.partition_log.conversation_chapters import batch

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

TOPIC, BROKER_LOGGER = 2, 8


def alter(state: BrokerState, name: str, value: str, resource_type: int = TOPIC) -> Any:
    resource = AlterConfigsResource(
        resource_type=resource_type, resource_name="t", configs=(AlterableConfig(name=name, value=value),)
    )
    return ask(state, AlterConfigsRequest(resources=(resource,), validate_only=False), 2).responses[0]


def write(state: BrokerState, encoded: bytes) -> int:
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=encoded),))
    response = ask(state, ProduceRequest(acks=1, timeout_ms=1, topic_data=(data,)), 9)
    return int(response.responses[0].partition_responses[0].error_code)


def test_a_new_limit_acts_at_once() -> None:
    state = new_state()
    assert write(state, batch(size=500)) == 0
    assert alter(state, "max.message.bytes", "300").error_code == 0
    assert write(state, batch(size=500)) == 10
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=("max.message.bytes",)
    )
    returned = ask(state, DescribeConfigsRequest(resources=(resource,)), 4).results[0].configs[0]
    assert returned.value == "300"


def test_configs_of_loggers_are_not_altered() -> None:
    refused = alter(new_state(), "a", "b", BROKER_LOGGER)
    assert refused.error_code == 44
    assert "topics, brokers, groups and client metrics only" in refused.error_message


def test_log_dirs_return_sizes() -> None:
    state = new_state()
    encoded = batch(size=500)
    write(state, encoded)
    wanted = (DescribableLogDirTopic(topic="t", partitions=(0, 1, 7)),)
    (result,) = ask(state, DescribeLogDirsRequest(topics=wanted), 4).results
    assert result.log_dir == "memory"
    assert {p.partition_index: p.partition_size for p in result.topics[0].partitions} == {0: len(encoded), 1: 0}
    everything = ask(state, DescribeLogDirsRequest(topics=None), 4).results[0]
    assert {topic.name for topic in everything.topics} == {"t", "u", "__consumer_offsets"}


@pytest.mark.parametrize(("release", "others"), [("2.5", []), ("2.6", ["u"]), ("3.6", ["u"]), ("3.8", [])])
def test_log_dirs_of_some_releases_name_topics_that_the_request_does_not(release: str, others: list[str]) -> None:
    """Measured on 2.5.1, 2.6.3, 3.6.2 and 3.8.1."""
    state = new_state(release, with_offsets_topic=False)
    wanted = (DescribableLogDirTopic(topic="t", partitions=(1,)),)
    (result,) = ask(state, DescribeLogDirsRequest(topics=wanted), 1).results
    named = {topic.name: [one.partition_index for one in topic.partitions] for topic in result.topics}
    assert named == {"t": [1], **{other: [] for other in others}}
