"""Names and values as long as the protocol allows, of which an error message would be longer than it allows.

Real brokers of 0.10.2.2, 2.8.2 and 4.4.0 respond with UNKNOWN_SERVER_ERROR for all that was requested. So does kproto,
for every API; where its response has no place for an error, the connection is closed with a reason that is no defect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import STRING_SIZE_MAX, Struct
from kproto.headers import read_response, request_frame
from kproto.messages import APIS
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Alteration
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as AlteredResource
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.codec.strategies import Edges
from tests.coordinator.broker_state import NOW_MS
from tests.requests.connections import frames, new_connection, receive
from tests.robustness.hard_strings import COUNT, hard_strings

if TYPE_CHECKING:
    from kproto.message import Request

LONG = "x" * STRING_SIZE_MAX
TOPIC, BROKER, GROUP = 2, 4, 32


def created(name: str, **config: str) -> CreatableTopic:
    configs = tuple(CreatableTopicConfig(name=key, value=value) for key, value in config.items())
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=configs)


def create(*topics: CreatableTopic) -> Request:
    return CreateTopicsRequest(topics=topics, timeout_ms=1000)


def alter(kind: int, resource: str, name: str, value: str) -> Request:
    one = AlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=(AlterableConfig(name=name, value=value),)
    )
    return AlterConfigsRequest(resources=(one,), validate_only=False)


def alter_incrementally(kind: int, resource: str, name: str, value: str) -> Request:
    changed = (Alteration(name=name, config_operation=0, value=value),)
    one = AlteredResource(resource_type=kind, resource_name=resource, configs=changed)
    return IncrementalAlterConfigsRequest(resources=(one,), validate_only=False)


def describe(kind: int, resource: str) -> Request:
    one = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=None)
    return DescribeConfigsRequest(resources=(one,))


def error_codes(response: Any) -> list[int]:
    if not isinstance(response, tuple):
        return []
    own = [response.error_code] if isinstance(response, Struct) and hasattr(response, "error_code") else []
    return own + [code for item in response for code in error_codes(item)]


REQUESTS: dict[str, Request] = {
    "topic": create(created(LONG)),
    "value of a new topic": create(created("a", **{"retention.ms": LONG}), created("b")),
    "config of a new topic": create(created("a", **{LONG: "1"})),
    "topic of new partitions": CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=LONG, count=3, assignments=None),), timeout_ms=1000, validate_only=False
    ),
    "described topic": describe(TOPIC, LONG),
    "described broker": describe(BROKER, LONG),
    **{
        f"{what}, {make.__name__}": make(*given)
        for make in (alter, alter_incrementally)
        for what, given in {
            "altered topic": (TOPIC, LONG, "retention.ms", "1"),
            "altered broker": (BROKER, LONG, "retention.ms", "1"),
            "altered config": (TOPIC, "t", LONG, "1"),
            "altered value": (TOPIC, "t", "retention.ms", LONG),
            "altered group": (GROUP, LONG, "no.such", "1"),
            "altered config of a group": (GROUP, "g", LONG, "1"),
            "altered value of a group": (GROUP, "g", "share.auto.offset.reset", LONG),
        }.items()
    },
}


@pytest.mark.parametrize("kafka_version", ["2.8", "latest"])
@pytest.mark.parametrize("name", REQUESTS)
def test_an_error_message_that_would_be_too_long_is_an_error_without_it(name: str, kafka_version: str) -> None:
    request = REQUESTS[name]
    api_key = type(request)._api_key
    for version in range(*served(kafka_version, api_key)):
        connection = new_connection(kafka_version)
        responses = receive(connection, request_frame(request, version, correlation_id=7, client_id="c"))
        assert connection.close_reason is None
        codes = error_codes(read_response(responses[0], api_key, version)[1])
        assert set(codes) - {0} != set()


def served(kafka_version: str, api_key: int) -> tuple[int, int]:
    low, high = KafkaVersion.named(kafka_version).api_versions[api_key]
    return low, high + 1


def test_all_that_was_requested_has_the_error_even_if_it_was_done() -> None:
    """Measured on 2.8.2 and 4.4.0."""
    connection = new_connection()
    request = REQUESTS["value of a new topic"]
    (response,) = receive(connection, request_frame(request, 7, correlation_id=7, client_id="c"))
    topics = read_response(response, CreateTopicsRequest, 7)[1].topics  # type: ignore[attr-defined]
    assert [(topic.name, topic.error_code, topic.error_message) for topic in topics] == [
        ("a", ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ("b", ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ]
    assert connection.dispatcher.state.cluster.topic("b") is not None


def test_a_client_id_that_leaves_no_room_for_a_member_id() -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    connection = new_connection()
    (response,) = receive(connection, request_frame(request, 4, correlation_id=7, client_id=LONG))
    assert error_codes(read_response(response, JoinGroupRequest, 4)[1]) == [ErrorCode.UNKNOWN_SERVER_ERROR]


@pytest.mark.parametrize(
    ("api_key", "path", "count"),
    [
        (43, "topic_partitions.topic", 2),
        (45, "topics.name", 2),
        (50, "users.name", 2),
        (61, "topics.name", 1),
        (69, "group_ids", 1),
        (77, "group_ids", 1),
        (89, "group_ids", 1),
    ],
)
@pytest.mark.parametrize("size", [STRING_SIZE_MAX - 7, STRING_SIZE_MAX])
def test_names_that_an_error_message_would_quote(
    api_key: int, path: str, count: int, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Measured on 4.4.0: a response that is made in slices fails in the same way."""
    version = KafkaVersion.named("4.4").api_versions[api_key][1]
    connection = new_connection("4.4")
    state = connection.dispatcher.state
    for name in ("__consumer_offsets", "__share_group_state"):
        assert state.cluster.ensure_internal_topic(name, NOW_MS)
    (hard,) = (one for one in hard_strings(api_key, version) if one.path == path)
    frame = request_frame(hard.request("x" * size), version, correlation_id=7)
    with caplog.at_level(logging.ERROR):
        responses = receive(connection, frame)
        while connection.delayed is not None:
            responses = frames(connection.resume(NOW_MS))
    assert (connection.close_reason, caplog.records) == (None, [])
    response: Any = read_response(responses[0], api_key, version)[1]
    elements = response[-2] if api_key != 61 else response.topics
    assert set(error_codes(response)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert len(error_codes(response)) == COUNT + count - 1
    assert len(elements) == COUNT


@pytest.mark.parametrize("api_key", APIS)
def test_strings_that_grow_are_no_defect(api_key: int, caplog: pytest.LogCaptureFixture) -> None:
    """Each malformed byte becomes a character of three bytes, so each string of a response may be too long."""
    low, high = KafkaVersion.named("latest").api_versions.get(api_key, (0, -1))
    for version in range(low, high + 1):
        connection = new_connection()
        edges = Edges(size=1, text=STRING_SIZE_MAX).of(registry.request_class(api_key), version)
        frame = request_frame(edges, version, correlation_id=7).replace(
            b"s" * STRING_SIZE_MAX, b"\xff" * STRING_SIZE_MAX
        )
        with caplog.at_level(logging.ERROR):
            connection.receive(frame, NOW_MS)
            if connection.delayed is not None:
                connection.resume(NOW_MS)
        assert caplog.records == []
