"""Topics through their handlers, where recordings do not reach: several nodes, waits, order, what goes with a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k75_describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from kproto_server.configuration.topic_configs import describe_topic
from kproto_server.deferred import DelayedOperation
from kproto_server.handlers import k01_fetch, k18_api_versions
from kproto_server.handlers._hash_order import configs_in_hash_order
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.requests.context import ConnectionInfo
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS, ask, commit, new_state, request_context
from tests.fixture_files import golden_topics
from tests.server.handlers.recorded_topics import NOT_OURS, response_of

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

OFFSETS = "__consumer_offsets"


def metadata(state: BrokerState, *names: str, version: int = 9, allow: bool = True, node_id: int = 1) -> Any:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return ask(state, MetadataRequest(topics=topics, allow_auto_topic_creation=allow), version, node_id=node_id)


def find(state: BrokerState, group_id: str = "g", version: int = 2, node_id: int = 1) -> Any:
    return ask(state, FindCoordinatorRequest(key=group_id), version, node_id=node_id)


class TestFindCoordinator:
    """KIP-115 as a client sees it."""

    @pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "3.9", "latest"])
    def test_asks_again_and_finds(self, kafka_version: str) -> None:
        """BA-45: the first question makes the topic."""
        state = new_state(kafka_version, with_offsets_topic=False)
        assert find(state).error_code == 15
        assert find(state).error_code == 0
        assert find(state).node_id == 1

    def test_waits_for_brokers_to_come(self) -> None:
        """BA-50, BA-53: 15 until there are enough, on any node; nothing has to be restarted."""
        state = new_state(
            "2.8", node_count=3, settings={"offsets.topic.replication.factor": "3"}, with_offsets_topic=False
        )
        state.cluster.stop_node(2)
        state.cluster.stop_node(3)
        assert [find(state).error_code for _ in range(3)] == [15, 15, 15]
        state.cluster.start_node(2)
        assert find(state, node_id=2).error_code == 15
        state.cluster.start_node(3)
        assert find(state, node_id=3).error_code == 15
        assert find(state, node_id=1).error_code == 0

    def test_every_node_names_the_same_one(self) -> None:
        """BA-44."""
        state = new_state(node_count=3, settings={"offsets.topic.replication.factor": "3"})
        for group_id in ("a", "b", "", "group"):
            assert len({find(state, group_id, node_id=node_id).node_id for node_id in (1, 2, 3)}) == 1

    def test_moves_with_the_leader_and_is_gone_with_the_last(self) -> None:
        """BA-45."""
        state = new_state(node_count=2, settings={"offsets.topic.replication.factor": "2"})
        first = find(state).node_id
        state.cluster.stop_node(first)
        assert find(state).node_id == 3 - first
        state.cluster.stop_node(3 - first)
        assert (find(state).error_code, find(state).node_id, find(state).host) == (15, -1, "")


class TestMetadata:
    def test_too_few_brokers_for_the_offsets_topic_by_release(self) -> None:
        """BA-50."""

        def error(kafka_version: str, *, allow: bool) -> int:
            state = new_state(
                kafka_version, settings={"offsets.topic.replication.factor": "3"}, with_offsets_topic=False
            )
            return int(metadata(state, OFFSETS, version=5, allow=allow).topics[0].error_code)

        assert {
            kafka_version: error(kafka_version, allow=False) for kafka_version in ("1.0", "2.7", "2.8", "3.9", "4.4")
        } == {"1.0": 38, "2.7": 38, "2.8": 3, "3.9": 3, "4.4": 3}
        assert {
            kafka_version: error(kafka_version, allow=True) for kafka_version in ("1.0", "2.8", "3.9-zookeeper", "3.9")
        } == {"1.0": 38, "2.8": 38, "3.9-zookeeper": 38, "3.9": 3}

    def test_fetching_all_makes_nothing(self) -> None:
        """BA-33, BA-50."""
        state = new_state(with_offsets_topic=False)
        assert [topic.name for topic in ask(state, MetadataRequest(topics=None), 9).topics] == ["t", "u"]
        assert [topic.name for topic in ask(state, MetadataRequest(topics=()), 0).topics] == ["t", "u"]
        assert ask(state, MetadataRequest(topics=()), 1).topics == ()

    def test_names_the_live_brokers(self) -> None:
        state = new_state(node_count=3)
        state.cluster.stop_node(2)
        assert [(broker.node_id, broker.port) for broker in metadata(state).brokers] == [(1, 9092), (3, 9094)]

    def test_a_made_topic_has_the_brokers_numbers(self) -> None:
        """BA-33."""
        state = new_state(settings={"num.partitions": "4"})
        assert metadata(state, "new").topics[0].error_code == 3
        assert len(metadata(state, "new").topics[0].partitions) == 4


class TestFetch:
    def request(self, state: BrokerState, *, offset: int = 0, partition: int = 0) -> FetchRequest:
        partitions = (FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1),)
        topic_id = state.cluster.topics["t"].topic_id
        return FetchRequest(
            max_wait_ms=500, min_bytes=1, topics=(FetchTopic(topic="t", topic_id=topic_id, partitions=partitions),)
        )

    @pytest.mark.parametrize("version", range(19))
    def test_waits_at_the_end_of_the_log(self, version: int) -> None:
        """BA-71."""
        state = new_state()
        response = ask(state, self.request(state), version)
        assert isinstance(response, DelayedOperation)
        assert response.deadline_ms == NOW_MS + 500

    def test_returns_the_state_at_its_end(self) -> None:
        state = new_state(node_count=2)
        state.cluster.topics["t"].partitions[0].leader = 1
        state.cluster.topics["t"].partitions[0].replicas = [1, 2]
        waiting = ask(state, self.request(state), 4, node_id=1)
        state.cluster.topics["t"].partitions[0].leader = 2
        assert waiting.respond().responses[0].partitions[0].error_code == 6

    def test_an_error_is_returned_at_once(self) -> None:
        """BA-74."""
        state = new_state()
        response = ask(state, self.request(state, offset=1), 4)
        assert response.responses[0].partitions[0].error_code == 1

    @pytest.mark.parametrize(("version", "epoch", "errors"), [(9, 0, [74, 6]), (11, 0, [74, 6]), (12, 5, [75, 6])])
    def test_only_replicas_know_the_leader_epoch(self, version: int, epoch: int, errors: list[int]) -> None:
        """BA-74; measured on 2.8.2 and 4.4.0."""
        state = new_state(node_count=3)
        partition = state.cluster.topics["t"].partitions[0]
        partition.replicas, partition.isr, partition.leader, partition.leader_epoch = [1, 2], [1, 2], 1, 1
        fetch = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100, current_leader_epoch=epoch)
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(fetch,)),))
        found = [ask(state, request, version, node_id=node_id) for node_id in (2, 3)]
        assert [one.responses[0].partitions[0].error_code for one in found] == errors

    def test_points_to_the_leader(self) -> None:
        """KIP-951: from v16 on, with its address."""
        state = new_state(node_count=2)
        partition = state.cluster.topics["t"].partitions[0]
        partition.replicas, partition.isr, partition.leader = [2], [2], 2
        response = ask(state, self.request(state), 16, node_id=1)
        assert response.responses[0].partitions[0].current_leader.leader_id == 2
        assert [(node.node_id, node.port) for node in response.node_endpoints] == [(2, 9093)]

    def test_points_to_the_address_of_the_leader_on_the_same_listener(self) -> None:
        """KIP-951."""
        state = new_state(node_count=2)
        partition = state.cluster.topics["t"].partitions[0]
        partition.replicas, partition.isr, partition.leader = [2], [2], 2
        state.cluster.nodes[2].others["INSIDE"] = ("broker-2", 19093)
        connection = ConnectionInfo("/127.0.0.1", listener="INSIDE")
        response: Any = k01_fetch.handle(self.request(state), request_context(state, 1, connection, 1, 16))
        assert [(node.host, node.port) for node in response.node_endpoints] == [("broker-2", 19093)]
        assert ask(state, self.request(state), 12, node_id=1).responses[0].partitions[0].current_leader.leader_id == -1


class TestListOffsets:
    @pytest.mark.parametrize("version", [0, 1, 5])
    def test_any_replica_responds_to_a_debugging_consumer(self, version: int) -> None:
        """BA-83; measured on 3.9.2: followers respond to the replica id -2, only the leader to other ids."""
        state = new_state(node_count=3)
        partition = state.cluster.topics["t"].partitions[0]
        partition.replicas, partition.isr, partition.leader = [1, 2], [1, 2], 1
        assert [self.error(state, version, replica_id, 2) for replica_id in (-2, -1, -3, 2)] == [0, 6, 6, 6]
        assert self.error(state, version, -2, 3) == 6

    def error(self, state: BrokerState, version: int, replica_id: int, node_id: int) -> int:
        """Return the error code with which a node responds."""
        limit = {"max_num_offsets": 1} if version == 0 else {}
        partition = ListOffsetsPartition(partition_index=0, timestamp=-1, **limit)
        topics = (ListOffsetsTopic(name="t", partitions=(partition,)),)
        response = ask(state, ListOffsetsRequest(replica_id=replica_id, topics=topics), version, node_id=node_id)
        return int(response.topics[0].partitions[0].error_code)


class TestDeleteTopics:
    def delete(self, state: BrokerState, *names: str, version: int = 3) -> list[int]:
        if version >= 6:
            topics = tuple(DeleteTopicState(name=name, topic_id=bytes(16)) for name in names)
            request = DeleteTopicsRequest(topics=topics, timeout_ms=0)
        else:
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=0)
        return [result.error_code for result in ask(state, request, version).responses]

    def both(self, state: BrokerState, *names: tuple[str | None, str | None]) -> list[tuple[str | None, int]]:
        """Delete topics by name, by the id of a topic, or by both; return the names and errors in the response."""
        ids = {name: topic.topic_id for name, topic in state.cluster.topics.items()}
        topics = tuple(DeleteTopicState(name=name, topic_id=ids.get(of or "", bytes(16))) for name, of in names)
        response = ask(state, DeleteTopicsRequest(topics=topics, timeout_ms=0), 6)
        return [(result.name, int(result.error_code)) for result in response.responses]

    def test_a_topic_by_name_and_id(self) -> None:
        """BA-91; measured on 2.8.2, 3.9.2 and 4.4.0: with ZooKeeper, all topics of the request are refused."""
        state = new_state("2.8")
        assert self.both(state, ("t", None), ("u", "u")) == [("t", 42), ("u", 42)]
        assert {"t", "u"} <= set(state.cluster.topics)
        assert self.both(new_state(), ("t", None), ("u", "u")) == [("t", 0), ("u", 42)]
        assert self.both(new_state(), ("t", None), ("t", "t")) == [("t", 0), ("t", 42)]

    def test_an_id_given_twice_and_its_name(self) -> None:
        """BA-91; measured on 4.4.0."""
        assert self.both(new_state(), (None, "t"), (None, "t"), ("t", None)) == [(None, 42), ("t", 42)]

    @pytest.mark.parametrize("kafka_version", ["2.0", "2.8", "latest"])
    def test_offsets_go_with_their_topic(self, kafka_version: str) -> None:
        """EX-60."""
        state = new_state(kafka_version)
        commit(state, "g", {"t": {0: 1}, "u": {0: 2}})
        assert self.delete(state, "t", version=1) == [0]
        assert set(state.coordinator.offsets.of_group("g")) == {"u"}

    def test_groups_go_with_the_offsets_topic(self) -> None:
        state = new_state()
        commit(state, "g", {"t": {0: 1}})
        assert self.delete(state, OFFSETS, version=6) == [0]
        assert state.coordinator.group("g") is None
        assert dict(state.coordinator.offsets.of_group("g")) == {}
        assert find(state).error_code == 15
        commit(state, "g", {"t": {0: 2}})
        assert state.coordinator.offsets.of_group("g")["t"][0].offset == 2

    def test_a_zookeeper_broker_that_is_not_the_controller_passes_nothing_on(self) -> None:
        state = new_state("2.8", node_count=2)
        request = DeleteTopicsRequest(topic_names=("t",), timeout_ms=0)
        assert [result.error_code for result in ask(state, request, 3, node_id=2).responses] == [41]
        assert "t" in state.cluster.topics

    def test_any_kraft_broker_does(self) -> None:
        state = new_state("4.4", node_count=2)
        request = DeleteTopicsRequest(topic_names=("t",), timeout_ms=0)
        assert [result.error_code for result in ask(state, request, 3, node_id=2).responses] == [0]


class TestDescribeTopicPartitions:
    def test_pages_add_up_to_the_whole(self) -> None:
        state = new_state(topics={"a": 3, "b": 1, "c": 7, "d": 2})
        for limit in range(1, 15):
            seen, cursor = [], None
            for _ in range(100):
                request = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=limit, cursor=cursor)
                response = ask(state, request, 0)
                page = [(topic.name, p.partition_index) for topic in response.topics for p in topic.partitions]
                assert len(page) <= limit
                seen += page
                if response.next_cursor is None:
                    break
                cursor = Cursor(
                    topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
                )
            expected = [
                (name, index)
                for name in sorted(state.cluster.topics)
                for index in range(len(state.cluster.topics[name].partitions))
            ]
            assert seen == expected

    def test_a_cursor_at_a_deleted_topic_goes_on_with_the_next(self) -> None:
        state = new_state(topics={"a": 1, "c": 2}, with_offsets_topic=False)
        request = DescribeTopicPartitionsRequest(topics=(), cursor=Cursor(topic_name="b", partition_index=5))
        assert [(t.name, len(t.partitions)) for t in ask(state, request, 0).topics] == [("c", 2)]

    def test_requested_topics_are_returned_once_in_order(self) -> None:
        state = new_state()
        request = DescribeTopicPartitionsRequest(topics=tuple(TopicRequest(name=name) for name in "utu"))
        assert [topic.name for topic in ask(state, request, 0).topics] == ["t", "u"]


class TestDescribeConfigs:
    def test_order_is_that_of_a_4_4_0_broker(self) -> None:
        """TopicCommand prints what is set on a topic in this order."""
        recorded = next(
            response_of(pair)
            for pair in golden_topics("4.4.0")
            if pair.api == "DescribeConfigs" and pair.note == "topics" and pair.api_version == 4
        )
        theirs = [config.name for config in recorded.results[0].configs if config.name not in NOT_OURS]
        state = new_state("4.4")
        ours = configs_in_hash_order(describe_topic(state.settings.current, {}), state.kafka_version)
        assert [entry.name for entry in ours if entry.name not in NOT_OURS] == theirs

    @pytest.mark.parametrize(("kafka_version", "first"), [("2.8", 1), ("3.9", 1), ("4.1", 1), ("4.2", 0), ("4.4", 0)])
    def test_two_configs_changed_places(self, kafka_version: str, first: int) -> None:
        """As TopicCommand printed them against those releases."""
        pair = ("index.interval.bytes", "min.cleanable.dirty.ratio")
        returned = [
            config.name for config in self.described(new_state(kafka_version), 2, "t").configs if config.name in pair
        ]
        assert returned == [pair[first], pair[1 - first]]

    def described(self, state: BrokerState, resource_type: int, name: str, node_id: int = 1) -> Any:
        resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
        return ask(state, DescribeConfigsRequest(resources=(resource,)), 4, node_id=node_id).results[0]

    def test_a_broker_returns_the_settings_of_its_start(self) -> None:
        state = new_state(settings={"offsets.retention.minutes": "60"})
        configs = {config.name: config for config in self.described(state, 4, "1").configs}
        assert (configs["offsets.retention.minutes"].value, configs["offsets.retention.minutes"].config_source) == (
            "60",
            4,
        )
        assert (configs["num.partitions"].value, configs["num.partitions"].config_source) == ("1", 5)

    def test_a_broker_speaks_for_itself_alone(self) -> None:
        """BA-92."""
        state = new_state(node_count=2)
        assert self.described(state, 4, "2", node_id=2).error_code == 0
        assert self.described(state, 4, "2", node_id=1).error_code == 42

    def test_what_was_set_on_a_topic_comes_first_among_its_synonyms(self) -> None:
        state = new_state()
        state.cluster.create_topic("c", configs={"retention.ms": "5"})
        resource = DescribeConfigsResource(resource_type=2, resource_name="c", configuration_keys=("retention.ms",))
        request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
        (config,) = ask(state, request, 4).results[0].configs
        assert (config.value, config.config_source, config.synonyms[0].value) == ("5", 1, "5")


class TestApiVersions:
    def response(self, kafka_version: str, version: int, request: ApiVersionsRequest) -> tuple[Any, ConnectionInfo]:
        state = new_state(kafka_version)
        connection = ConnectionInfo("/127.0.0.1")
        context = request_context(state, 1, connection, 18, version)
        return k18_api_versions.handle(request, context), connection

    def test_software_is_noted_from_v3_on(self) -> None:
        request = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.4.0")
        _, connection = self.response("latest", 3, request)
        assert (connection.software_name, connection.software_version) == ("apache-kafka-java", "4.4.0")
        _, connection = self.response("latest", 2, ApiVersionsRequest())
        assert connection.software_name == ""

    def test_software_that_cannot_be_is_not_noted(self) -> None:
        """BA-22."""
        response, connection = self.response("latest", 3, ApiVersionsRequest(client_software_name="a\nb"))
        assert (response.error_code, response.api_keys, connection.software_name) == (42, (), "")

    def test_produce_0_is_advertised_by_4_x_though_not_served(self) -> None:
        """BA-25."""
        response, _ = self.response("4.4", 0, ApiVersionsRequest())
        assert (response.api_keys[0].api_key, response.api_keys[0].min_version) == (0, 0)
        assert not KafkaVersion.named("4.4").serves(0, 0)

    def test_features_with_level_0_are_kept_from_older_clients(self) -> None:
        """BA-24."""
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        older, newer = (self.response("4.4", version, request)[0].supported_features for version in (3, 4))
        assert {feature.name for feature in older} == {"metadata.version"}
        assert {feature.min_version for feature in newer} == {0, 7}


@pytest.mark.parametrize(("kafka_version", "error"), [("2.8", 0), ("3.3", 42), ("4.4", 42)])
def test_the_metadata_log_of_kraft_is_no_topic_to_create(kafka_version: str, error: int) -> None:
    names = ("__cluster_metadata", "other")
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()) for name in names
    ]
    request = CreateTopicsRequest(topics=tuple(topics), timeout_ms=1000, validate_only=False)
    found = {one.name: (one.error_code, one.error_message) for one in ask(new_state(kafka_version), request, 4).topics}
    message = "Creation of internal topic __cluster_metadata is prohibited."
    assert found == {"other": (0, None), "__cluster_metadata": (error, message if error else None)}


@pytest.mark.parametrize("kafka_version", ["2.8", "4.3"])
def test_the_partitions_of_all_topics_of_a_request_are_limited_together(kafka_version: str) -> None:
    state = new_state(kafka_version)

    def errors(*counts: int) -> set[tuple[int, str | None]]:
        topics = tuple(
            CreatableTopic(name=f"n{index}", num_partitions=count, replication_factor=1, assignments=(), configs=())
            for index, count in enumerate(counts)
        )
        response = ask(state, CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=True), 5)
        return {(topic.error_code, topic.error_message) for topic in response.topics}

    excess = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    assert errors(6000, 6000) == {excess}
    assert errors(6000, -1, 3999) == {(ErrorCode.NONE, None)}

    growing = tuple(CreatePartitionsTopic(name=name, count=6000, assignments=None) for name in "tu")
    response = ask(state, CreatePartitionsRequest(topics=growing, timeout_ms=1000, validate_only=True), 1)
    assert {topic.error_code for topic in response.results} == {ErrorCode.POLICY_VIOLATION}


def test_a_fetch_that_waits_ends_when_its_topic_is_deleted() -> None:
    """BA-71: an error ends the wait."""
    broker = InMemoryBroker(topics={"t": 1})
    client = broker.connect()
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=30_000, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(asked,)),))
    client.send(request, 11)
    assert not client.responses
    broker.connect().ask(DeleteTopicsRequest(topic_names=("t",), timeout_ms=1000), 1)
    broker.deliver()
    response: Any = client.responses.pop()
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("kafka_version", "count"), [("3.2", 26), ("3.3", 29), ("3.3-zookeeper", 26), ("3.5", 29)])
def test_internal_configs_of_created_topics(kafka_version: str, count: int) -> None:
    """Measured on 3.2.3, 3.3.2 and 3.5.2."""
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=1000)
    response: Any = ask(new_state(kafka_version), request, 5)
    names = [config.name for config in response.topics[0].configs]
    assert len(names) == count
    assert names == sorted(names)
    assert ("local.retention.ms" in names) is (count == 29)
