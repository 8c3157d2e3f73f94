"""Requests that name a partition or a resource twice; measured on 2.0.1, 2.8.2 and 4.4.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Alteration
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as AlteredResource
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.coordinator.broker_state import ask, new_state
from tests.partition_log.conversation_chapters import batch

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

RELEASES = ["2.0", "2.8", "4.4"]


def write(state: BrokerState, *topics: tuple[str, list[tuple[int, int]]]) -> list[tuple[str, list[int]]]:
    """Write batches (topic, [(partition, number of records)]); return the partitions of the response."""
    data = tuple(
        TopicProduceData(
            name=name,
            partition_data=tuple(PartitionProduceData(index=index, records=batch(count)) for index, count in batches),
        )
        for name, batches in topics
    )
    response = ask(state, ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 5)
    assert not any(one.error_code for topic in response.responses for one in topic.partition_responses)
    return [(topic.name, [one.index for one in topic.partition_responses]) for topic in response.responses]


@pytest.mark.parametrize("release", RELEASES)
def test_the_last_records_of_a_partition_are_written(release: str) -> None:
    state = new_state(release)
    returned = write(state, ("t", [(0, 1), (1, 1), (0, 2)]), ("u", [(0, 1)]), ("t", [(1, 3)]))
    assert returned == [("t", [0, 1]), ("u", [0])]
    ends = {name: [one.high_watermark for one in state.cluster.topics[name].partitions] for name in ("t", "u")}
    assert ends == {"t": [2, 3, 0], "u": [1]}


@pytest.mark.parametrize("release", RELEASES)
def test_records_are_deleted_below_the_last_offset_of_a_partition(release: str) -> None:
    state = new_state(release)
    write(state, ("t", [(0, 9), (1, 9)]))

    def topic(*offsets: tuple[int, int]) -> DeleteRecordsTopic:
        partitions = tuple(DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets)
        return DeleteRecordsTopic(name="t", partitions=partitions)

    request = DeleteRecordsRequest(topics=(topic((0, 5), (1, 2), (0, 3)), topic((1, 1))), timeout_ms=1000)
    (returned,) = ask(state, request, 1).topics
    assert [(one.partition_index, one.low_watermark) for one in returned.partitions] == [(0, 3), (1, 1)]


def altered(state: BrokerState, api_key: int, *wanted: tuple[int, str, str]) -> tuple[list[tuple[str, int]], list[Any]]:
    """Set retention.ms of resources (type, name, value); return their error codes, and what the topics t and u have."""
    if api_key == 33:
        replaced = tuple(
            AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=(AlterableConfig(name="retention.ms", value=value),)
            )
            for kind, name, value in wanted
        )
        response = ask(state, AlterConfigsRequest(resources=replaced, validate_only=False), 0)
    else:
        changed = tuple(
            AlteredResource(
                resource_type=kind,
                resource_name=name,
                configs=(Alteration(name="retention.ms", config_operation=0, value=value),),
            )
            for kind, name, value in wanted
        )
        response = ask(state, IncrementalAlterConfigsRequest(resources=changed, validate_only=False), 0)
    errors = [(one.resource_name, int(one.error_code)) for one in response.responses]
    return errors, [state.cluster.topics[name].configs.get("retention.ms") for name in ("t", "u")]


@pytest.mark.parametrize("api_key", [33, 44])
def test_a_resource_whose_configs_are_altered_twice(api_key: int) -> None:
    """From 2.6 on real brokers do not respond to such an AlterConfigs."""
    wanted = [(2, "t", "101"), (2, "u", "105"), (2, "t", "102")]
    last = [("t", 0), ("u", 0)], ["102", "105"]
    for release in ("2.3", "2.8", "3.1"):
        assert altered(new_state(release), api_key, *wanted) == last
    for release in ("3.2", "3.9", "4.4"):
        assert altered(new_state(release), api_key, *wanted) == ([("t", 42), ("u", 0), ("t", 42)], [None, "105"])


@pytest.mark.parametrize("api_key", [33, 44])
def test_a_resource_of_an_unknown_type_beside_others(api_key: int) -> None:
    wanted = [(2, "u", "103"), (77, "x", "1")]
    for release in ("2.3", "2.8", "3.1"):
        assert altered(new_state(release), api_key, *wanted) == ([("u", 42), ("x", 42)], [None, None])
    for release in ("3.2", "3.9", "4.4"):
        assert altered(new_state(release), api_key, *wanted) == ([("u", 0), ("x", 42)], [None, "103"])
