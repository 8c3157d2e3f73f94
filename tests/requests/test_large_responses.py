"""Responses that grow with what exists, and not with their request, are made in slices.

Method. A dispatcher whose turns the test completes. With a limit of the handler that is lower than usual, the response
is made in slices, and equals the one that is made at once. The steps of each slice are counted.
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from types import ModuleType
from typing import Any, cast
from unittest import mock

import pytest

from kproto.generate.encode import SLICE_BYTES
from kproto.headers import request_frame
from kproto.message import Request
from kproto.message_codec import message_codec
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k35_describe_log_dirs import DescribeLogDirsRequest
from kproto.messages.k43_elect_leaders import ElectLeadersRequest
from kproto.messages.k48_describe_client_quotas import DescribeClientQuotasRequest
from kproto.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from kproto.messages.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kproto.messages.k66_list_transactions import ListTransactionsRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto.messages.k74_list_config_resources import ListConfigResourcesRequest
from kproto.messages.k75_describe_topic_partitions import DescribeTopicPartitionsRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.messages.k78_share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from kproto.messages.k90_describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server import deferred
from kproto_server.connection import response_encoder
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.connection.response_encoder import LARGE_RESPONSE_MAX_BYTES, ResponseEncoder
from kproto_server.handlers import (
    k09_offset_fetch,
    k15_describe_groups,
    k16_list_groups,
    k19_create_topics,
    k32_describe_configs,
    k35_describe_log_dirs,
    k43_elect_leaders,
    k48_describe_client_quotas,
    k50_describe_user_scram_credentials,
    k61_describe_producers,
    k65_describe_transactions,
    k66_list_transactions,
    k74_list_config_resources,
    k78_share_fetch,
)
from kproto_server.observation.observe import Observations
from kproto_server.partition_log import lookup
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.users import ScramCredential
from kproto_server.state import BrokerState
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS, ask, commit, handled, new_state
from tests.robustness.steps import count_steps

TOPICS = {"a": 3, "b": 2, "c": 4}
ALL_OF_GROUP = OffsetFetchRequestGroup(group_id="g", topics=None)
SOME_OF_GROUP = OffsetFetchRequestGroup(
    group_id="g", topics=(OffsetFetchRequestTopics(name="a", partition_indexes=(0, 7)),)
)
OF_UNKNOWN_MEMBER = OffsetFetchRequestGroup(group_id="h", member_id="m", member_epoch=1, topics=None)
BROKER = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
MISSING = DescribeConfigsResource(resource_type=4, resource_name="9", configuration_keys=None)
SHARED = DescribeShareGroupOffsetsRequestGroup(
    group_id="g", topics=(DescribeShareGroupOffsetsRequestTopic(topic_name="a", partitions=(0, 1, 7)),)
)
SHARE_FETCH = ShareFetchRequest(
    group_id="g",
    member_id="m" * 22,
    share_session_epoch=0,
    max_wait_ms=0,
    min_bytes=1,
    max_bytes=1000,
    max_records=1,
    batch_size=1,
    topics=(
        FetchTopic(
            topic_id=bytes(16),
            partitions=tuple(FetchPartition(partition_index=one, acknowledgement_batches=()) for one in range(3)),
        ),
    ),
    forgotten_topics_data=(),
)
PRODUCERS = DescribeProducersRequest(
    topics=(TopicRequest(name="a", partition_indexes=(0, 9, 0)), TopicRequest(name="none", partition_indexes=(0,)))
)
ELECTIONS = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1)
TIMES = tuple(ListOffsetsPartition(partition_index=index, timestamp=5) for index in (0, 1, 2))


def type_name(value: object) -> str | None:
    return type(value).__name__ if isinstance(value, Request) else None


def state_with_everything() -> BrokerState:
    state = new_state(topics=TOPICS)
    assert state.cluster.ensure_offsets_topic(NOW_MS)
    for group_id in ("g", "h"):
        commit(state, group_id, {name: dict.fromkeys(range(count), 5) for name, count in TOPICS.items()})
    batch = build_record_batch([Record(b"k", b"v", timestamp=index, offset=index) for index in range(9)])
    for partition in state.cluster.topics["a"].partitions:
        partition.make_data().append(batch, 8, 8, 0)
        partition.data.producers.add_marker(7, 1, 2, NOW_MS, 0)
        partition.data.producers.add_marker(8, 3, 4, NOW_MS, 0)
    begin_transaction(state, TOPICS)
    state.cluster.set_client_quotas({(("user", name),): {"producer_byte_rate": 1.0} for name in "ab"})
    credential = ScramCredential(b"salt", 4096, b"stored", b"server")
    state.cluster.alter_scram_credentials(
        state.cluster.scram_credentials.changed({(name, "SCRAM-SHA-256"): credential for name in "ab"})
    )
    return state


def begin_transaction(state: BrokerState, topics: dict[str, int]) -> None:
    """Have a transaction with the id "x" and all partitions of these topics."""
    assert state.cluster.ensure_internal_topic("__transaction_state", NOW_MS)
    made = ask(state, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 1)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=tuple(range(count))) for name, count in topics.items()
        ),
    )
    added = ask(state, request, 3).results_by_topic_v3_and_below
    assert {one.partition_error_code for topic in added for one in topic.results_by_partition} == {0}


def slices(state: BrokerState, request: Request, version: int) -> tuple[list[int], bytes, object]:
    """Return the steps of each slice, the response, and what was observed."""
    observations = Observations()
    dispatcher = Dispatcher(state, observations, takes_turns=True)
    connection = Connection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    responses: list[bytes] = []
    data = request_frame(request, version, correlation_id=1)

    def take_turn() -> None:
        dispatcher.give_turn()
        responses.extend(runnable.resume(NOW_MS) for runnable in dispatcher.take_runnable())  # type: ignore[attr-defined]  # a Connection

    steps = [count_steps(lambda: responses.append(connection.receive(data, NOW_MS)))]
    while dispatcher.turns:
        steps.append(count_steps(take_turn))
    assert connection.close_reason is None
    return steps, b"".join(responses), observations.snapshot()


@pytest.mark.parametrize(
    ("module", "limit", "request_", "version"),
    [
        (
            lookup,
            "SLICE_RECORDS",
            ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="a", partitions=TIMES),)),
            4,
        ),
        (k09_offset_fetch, "SMALL_OFFSETS", OffsetFetchRequest(group_id="g", topics=None), 2),
        (k09_offset_fetch, "SMALL_OFFSETS", OffsetFetchRequest(group_id="g", topics=None), 7),
        (
            k09_offset_fetch,
            "SMALL_OFFSETS",
            OffsetFetchRequest(groups=(ALL_OF_GROUP, SOME_OF_GROUP, OF_UNKNOWN_MEMBER, ALL_OF_GROUP)),
            9,
        ),
        (k09_offset_fetch, "SMALL_OFFSETS", OffsetFetchRequest(groups=(SOME_OF_GROUP,)), 9),
        (k15_describe_groups, "SMALL_MEMBERS", DescribeGroupsRequest(groups=("g", "none", "g")), 6),
        (k15_describe_groups, "SMALL_BYTES", DescribeGroupsRequest(groups=("g", "none", "g")), 6),
        (k48_describe_client_quotas, "SMALL_ENTITIES", DescribeClientQuotasRequest(components=(), strict=False), 1),
        (
            k50_describe_user_scram_credentials,
            "SMALL_USERS",
            DescribeUserScramCredentialsRequest(users=tuple(UserName(name=name) for name in ("a", "none", "b", "a"))),
            0,
        ),
        (k61_describe_producers, "SMALL_PRODUCERS", PRODUCERS, 0),
        (
            k65_describe_transactions,
            "SMALL_PARTITIONS",
            DescribeTransactionsRequest(transactional_ids=("x", "none", "x")),
            0,
        ),
        (k16_list_groups, "SMALL_BYTES", ListGroupsRequest(), 0),
        (k16_list_groups, "SLICE_GROUPS", ListGroupsRequest(), 0),
        (k16_list_groups, "SLICE_GROUPS", ListGroupsRequest(states_filter=("Empty",)), 5),
        (k78_share_fetch, "SLICE_PARTITIONS", SHARE_FETCH, 1),
        (k43_elect_leaders, "SLICE_TOPICS", ELECTIONS, 2),
        (
            k66_list_transactions,
            "SLICE_IDS",
            ListTransactionsRequest(
                state_filters=("Ongoing", "?"), producer_id_filters=(), transactional_id_pattern="x|y"
            ),
            2,
        ),
        (k74_list_config_resources, "SMALL_RESOURCES", ListConfigResourcesRequest(resource_types=()), 1),
        (k32_describe_configs, "SMALL_CONFIGS", DescribeConfigsRequest(resources=(BROKER, MISSING, BROKER)), 4),
        (k35_describe_log_dirs, "SMALL_PARTITIONS", DescribeLogDirsRequest(topics=None), 4),
    ],
    ids=type_name,
)
def test_a_response_in_slices_equals_one_that_is_made_at_once(
    module: ModuleType, limit: str, request_: Request, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_with_everything()
    at_once = slices(state, request_, version)
    assert len(at_once[0]) == 1
    # A broker has no members of classic groups, and one transaction.
    monkeypatch.setattr(module, limit, 1 if module not in (k15_describe_groups, k66_list_transactions) else -1)
    in_slices = slices(state, request_, version)
    assert len(in_slices[0]) > 1
    assert in_slices[1:] == at_once[1:]


def test_a_commit_between_two_slices_is_in_later_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k09_offset_fetch, "SMALL_OFFSETS", 1)
    state = new_state(topics={"a": 9_000, "b": 1})
    assert state.cluster.ensure_offsets_topic(NOW_MS)
    commit(state, "g", {"a": dict.fromkeys(range(9_000), 5), "b": {0: 5}})
    dispatcher = Dispatcher(state, Observations(), takes_turns=True)
    connection = Connection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    connection.receive(request_frame(OffsetFetchRequest(group_id="g", topics=None), 2, correlation_id=1), NOW_MS)
    response = b""
    while not response:
        dispatcher.give_turn()
        dispatcher.take_runnable()
        response = connection.resume(NOW_MS)
        commit(state, "g", {"a": {8_999: 6}, "b": {0: 6}})
    first, second = OffsetFetchResponse.decode(response[8:], 2).topics
    assert {partition.committed_offset for partition in first.partitions} == {5}
    assert second.partitions[0].committed_offset == 6


@pytest.mark.parametrize(
    "request_", [ListGroupsRequest(), OffsetFetchRequest(group_id="group-0", topics=None)], ids=type_name
)
def test_no_slice_takes_more_steps_when_more_exists(request_: Request) -> None:
    most = []
    for count in (8_000, 16_000):
        state = new_state(topics=dict.fromkeys((f"t{index}" for index in range(count // 1000)), 1000))
        assert state.cluster.ensure_offsets_topic(NOW_MS)
        commit(state, "group-0", {f"t{index}": dict.fromkeys(range(1000), 5) for index in range(count // 1000)})
        for index in range(1, count // 2):
            commit(state, f"group-{index}", {"t0": {0: 5}})
        slices(state, request_, 4)  # loads code, and generates the encoder
        most.append(max(slices(state, request_, 4)[0]))
    assert most[1] < 1.5 * most[0]


def with_members(kind: str, count: int) -> BrokerState:
    """Return a state whose group "g" of a kind has members that subscribe to 100 topics."""
    broker = InMemoryBroker(kafka_version="4.4", topics=TOPICS)
    for name in ("__consumer_offsets", "__share_group_state"):
        broker.state.cluster.ensure_internal_topic(name, broker.clock.now_ms())
    pair = broker.connect()
    names = tuple(f"t{index}" for index in range(100))
    for index in range(count):
        request: Request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=f"m{index}",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=names,
            topic_partitions=(),
        )
        if kind == "share":
            request = ShareGroupHeartbeatRequest(
                group_id="g", member_id=f"m{index}", member_epoch=0, subscribed_topic_names=names
            )
        response: Any = pair.ask(request, 1)
        assert not response.error_code
    return broker.state


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        ("consumer", ConsumerGroupDescribeRequest(group_ids=("g",) * 5, include_authorized_operations=False)),
        ("share", ShareGroupDescribeRequest(group_ids=("g",) * 5, include_authorized_operations=False)),
    ],
    ids=["consumer", "share"],
)
def test_no_slice_takes_more_steps_when_a_group_has_more_members(kind: str, request_: Request) -> None:
    most = []
    for count in (100, 200):
        state = with_members(kind, count)
        slices(state, request_, 1)  # loads code, and generates the encoder
        most.append(max(slices(state, request_, 1)[0]))
    assert most[1] < 1.5 * most[0]


def test_no_slice_takes_more_steps_when_a_share_group_has_more_partitions() -> None:
    most = []
    for count in (4_000, 8_000):
        state = new_state(topics={"a": count})
        topic = DescribeShareGroupOffsetsRequestTopic(topic_name="a", partitions=tuple(range(count)))
        request = DescribeShareGroupOffsetsRequest(
            groups=(DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=(topic,)),)
        )
        slices(state, request, 1)  # loads code, and generates the encoder
        _, *later = slices(state, request, 1)[0]  # the first one decodes the request
        most.append(max(later))
    assert most[1] < 1.5 * most[0]


def test_no_slice_takes_more_steps_when_a_transaction_is_named_again() -> None:
    most = []
    for count in (12, 24):
        state = new_state(topics={"a": 3000})
        begin_transaction(state, {"a": 3000})
        request = DescribeTransactionsRequest(transactional_ids=("x",) * count)
        slices(state, request, 0)  # loads code, and generates the encoder
        most.append(max(slices(state, request, 0)[0]))
    assert most[1] < 1.5 * most[0]


def group_with(member_bytes: int, members: int) -> DescribedGroup:
    return DescribedGroup(
        error_code=0,
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=tuple(
            DescribedGroupMember(
                member_id=f"m{index}",
                group_instance_id=None,
                client_id="c",
                client_host="/127.0.0.1",
                member_metadata=bytes(member_bytes),
                member_assignment=b"",
            )
            for index in range(members)
        ),
        authorized_operations=0,
    )


TRANSACTION = TransactionState(
    error_code=0,
    transactional_id="x",
    transaction_state="Ongoing",
    transaction_timeout_ms=1,
    transaction_start_time_ms=1,
    producer_id=1,
    producer_epoch=1,
    topics=(TopicData(topic="a", partitions=tuple(range(50_000))),),
)


@pytest.mark.parametrize(
    ("response", "version", "element_bytes"),
    [
        (DescribeGroupsResponse(groups=(group_with(300_000, 4),) * 3), 5, 300_000),
        (DescribeTransactionsResponse(throttle_time_ms=0, transaction_states=(TRANSACTION,) * 12), 0, 200_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_slice_has_few_bytes(response: Any, version: int, element_bytes: int) -> None:
    codec = message_codec(type(response), version)
    assert codec.encode_slices is not None
    pieces = list(codec.encode_slices(response))
    assert b"".join(pieces) == codec.encode(response)
    assert max(map(len, pieces)) < SLICE_BYTES + 2 * element_bytes


def test_a_response_that_is_too_large_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k09_offset_fetch, "SMALL_OFFSETS", 1)
    monkeypatch.setattr(response_encoder, "LARGE_RESPONSE_MAX_BYTES", 400)
    dispatcher = Dispatcher(state_with_everything(), Observations(), takes_turns=True)
    reasons = []
    for count in (1, 9):
        connection = Connection(dispatcher, dispatcher.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
        request = OffsetFetchRequest(groups=(ALL_OF_GROUP,) * count)
        connection.receive(request_frame(request, 9, correlation_id=1), NOW_MS)
        while dispatcher.turns:
            dispatcher.give_turn()
            for runnable in dispatcher.take_runnable():
                cast("Connection", runnable).resume(NOW_MS)
        reasons.append(connection.close_reason)
    assert reasons == [None, "the response is larger than 400 bytes"]


def test_a_leader_gets_much_metadata_in_slices() -> None:
    metadata = [bytes((number,)) * (deferred.SMALL_BYTES // 2) for number in range(3)]
    broker = InMemoryBroker(settings={"group.initial.rebalance.delay.ms": "3000"})
    broker.connect().ask(FindCoordinatorRequest(key="g"), 0)
    sent = [broker.connect() for _ in metadata]
    for client, of_member in zip(sent, metadata, strict=True):
        protocols = (JoinGroupRequestProtocol(name="range", metadata=of_member),)
        request = JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="",
            protocol_type="consumer", protocols=protocols,
        )  # fmt: skip
        client.send(request, 3)
    with mock.patch.object(
        ResponseEncoder, "encode_slices", autospec=True, side_effect=ResponseEncoder.encode_slices
    ) as in_slices:
        broker.advance(milliseconds=10_000)
    responses: list[Any] = [client.responses[0] for client in sent]
    (leader,) = [response for response in responses if response.members]
    assert sorted(member.metadata for member in leader.members) == metadata
    assert in_slices.call_count == 1


def test_what_clients_have_named_at_length_counts_in_the_size_of_a_response() -> None:
    """A group with a protocol type of 32 KB, which a request of 37 KB named 7,490 times: 245 MB at once."""
    group_id, long = "g" * 20_000, "p" * 20_000
    broker = InMemoryBroker(settings={"group.initial.rebalance.delay.ms": "0"})
    client = broker.connect()
    client.ask(FindCoordinatorRequest(key="g"), 0)
    for name in ("g", group_id):
        protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
        request = JoinGroupRequest(
            group_id=name, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="",
            protocol_type=long, protocols=protocols,
        )  # fmt: skip
        client.send(request, 3)
        broker.advance(milliseconds=1)
    requests = {DescribeGroupsRequest(groups=("g",) * 9): 4, ListGroupsRequest(): 2}
    for request_, version in requests.items():
        for limit, is_whole in ((1 << 20, True), (50_000, False)):
            with (
                mock.patch.object(k15_describe_groups, "SMALL_BYTES", limit),
                mock.patch.object(k16_list_groups, "SMALL_BYTES", limit),
            ):
                made = handled(broker.state, request_, version)
            assert isinstance(made, deferred.LargeResponse) is not is_whole, type_name(request_)


def test_all_partitions_of_a_full_broker_fit_into_a_response() -> None:
    partition = 2 + 4 + 4 + 4 + 2 * (1 + 3 * 4) + 1 + 1  # with three replicas in sync, in Metadata v9
    assert 1_000_000 * partition < LARGE_RESPONSE_MAX_BYTES


def test_a_large_response_is_once_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    group, count = group_with(1_000_000, 1), 20
    monkeypatch.setattr(k15_describe_groups, "_describe", lambda *_: group)
    dispatcher = Dispatcher(new_state(), Observations(), takes_turns=True)
    connection = Connection(dispatcher, dispatcher.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    connection.receive(request_frame(DescribeGroupsRequest(groups=("g",) * count), 4, correlation_id=1), NOW_MS)
    response = b""
    tracemalloc.start()
    while not response:
        dispatcher.give_turn()
        dispatcher.take_runnable()
        response = connection.resume(NOW_MS)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count * 1_000_000 < len(response) < peak_bytes < 1.3 * len(response)


def test_the_cost_of_listed_transactions_does_not_multiply_with_the_filters() -> None:
    """Each id was compared with each filter: 5.4 s for 50,000 ids and 9000 producer ids."""

    class CountedId(int):
        compared = 0

        def __eq__(self, other: object) -> bool:
            CountedId.compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    state = new_state()
    assert state.cluster.ensure_internal_topic("__transaction_state", NOW_MS)
    for index in range(20):
        ask(state, InitProducerIdRequest(transactional_id=f"x{index}", transaction_timeout_ms=60_000), 1)
    filters = tuple(CountedId(number) for number in range(1000, 2000))
    ask(state, ListTransactionsRequest(state_filters=(), producer_id_filters=filters), 0)
    assert CountedId.compared < 20


def test_patterns_are_matched_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k66_list_transactions, "SLICE_CHARACTERS", 100)
    state = new_state()
    assert state.cluster.ensure_internal_topic("__transaction_state", NOW_MS)
    for index in range(10):
        name = f"{index}{'x' * 49}"
        ask(state, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 1)
    request = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern=".*y")
    assert len(slices(state, request, 2)[0]) == 6
    assert len(slices(state, request.replace(transactional_id_pattern=""), 2)[0]) == 1


def test_a_page_of_topics_does_not_sort_all_of_them() -> None:
    class CountedName(str):
        __slots__ = ()
        compared = 0

        def __lt__(self, other: str) -> bool:
            CountedName.compared += 1
            return str(self) < str(other)

    state = new_state()
    for index in range(1000):
        name = CountedName(f"t{index * 7919 % 1000}")
        assert not isinstance(state.cluster.create_topic(name, partition_count=1, replication_factor=1), int)
    page = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=1, cursor=None)
    assert [topic.name for topic in ask(state, page, 0).topics] == ["__consumer_offsets"]
    assert CountedName.compared < 3000


def creation(count: int) -> CreateTopicsRequest:
    topics = tuple(
        CreatableTopic(name=f"new{index}", num_partitions=1, replication_factor=1, assignments=(), configs=())
        for index in range(count)
    )
    return CreateTopicsRequest(topics=topics, timeout_ms=1000)


def test_many_created_topics_are_returned_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k19_create_topics, "SMALL_CONFIGS", 100)
    steps, response, _ = slices(new_state(), creation(3), 5)
    assert len(steps) > 1
    created = CreateTopicsResponse.decode(response[9:], 5).topics
    assert [(topic.name, topic.error_code, len(topic.configs or ()) > 30) for topic in created] == [
        (f"new{index}", 0, True) for index in range(3)
    ]


def test_the_configs_of_created_topics_are_described_once() -> None:
    """Each topic described all its configs: a request of 4000 topics took 0.9 s."""

    def steps_of_topic(version: int) -> int:
        ask(new_state(), creation(1), version)
        few, many = (count_steps(partial(ask, new_state(), creation(count), version)) for count in (10, 20))
        return many - few

    assert steps_of_topic(5) < 1.5 * steps_of_topic(4)
    state = new_state()
    own = CreatableTopicConfig(name="retention.ms", value="5")
    request = creation(2)
    request = request.replace(topics=(request.topics[0], request.topics[1].replace(configs=(own,))))
    default, changed = ask(state, request, 5).topics
    differing = [pair for pair in zip(default.configs, changed.configs, strict=True) if pair[0] != pair[1]]
    assert [(one.name, one.value, two.name, two.value) for one, two in differing] == [
        ("retention.ms", "604800000", "retention.ms", "5")
    ]
