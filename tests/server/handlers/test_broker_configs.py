"""Changes of settings while brokers run (KIP-226): the responses of 2.8.2, 3.9.2 and 4.4.0 to the same requests."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Change
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as Changes
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto.messages.k74_list_config_resources import ListConfigResourcesRequest
from kproto_server.broker.broker import Broker
from kproto_server.cluster.broker_config_changes import changed_settings
from kproto_server.cluster.topic_config_changes import ConfigChange
from kproto_server.cluster.topics import Refusal
from kproto_server.configuration.settings import SETTINGS, Settings
from kproto_server.log_manager.memory_cleaner import MemoryCleaner
from kproto_server.partition_log.log_config import log_config
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import ask, new_state
from tests.network.raw_client import RawClient
from tests.partition_log.conversation_chapters import batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.state import BrokerState

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2
STRING, LIST = 2, 7
DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 2, 3, 4, 5
OTHER = "security.inter.broker.protocol"
"""A setting of Kafka's that kproto does not have."""
KAFKA_VERSIONS = pytest.mark.parametrize("kafka_version", ["2.8", "3.9", "4.4"])

Returned = tuple[int, "str | None"]


def change(
    state: BrokerState, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False, node_id: int = 1
) -> Returned:
    configs = tuple(Change(name=one, config_operation=operation, value=value) for one, operation, value in changes)
    resource = Changes(resource_type=BROKER, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (response,) = ask(state, request, 1, node_id=node_id).responses
    return response.error_code, response.error_message


def put(state: BrokerState, name: str, configs: dict[str, str | None]) -> Returned:
    given = tuple(AlterableConfig(name=one, value=value) for one, value in configs.items())
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=given)
    (response,) = ask(state, AlterConfigsRequest(resources=(resource,), validate_only=False), 2).responses
    return response.error_code, response.error_message


def described(state: BrokerState, kind: int, name: str, *configs: str, node_id: int = 1) -> list[Any]:
    """Of each config its name, value, source and synonyms."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=configs or None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    (result,) = ask(state, request, 4, node_id=node_id).results
    assert result.error_code == 0
    return [
        (one.name, one.value, one.config_source, [(s.name, s.value, s.source) for s in one.synonyms])
        for one in result.configs
    ]


def thread_problem(text: str) -> str:
    exception = "org.apache.kafka.common.config.ConfigException"
    return f"Invalid value {exception}: {text} for configuration Invalid dynamic configuration"


def refused(kafka_version: str, name: str, returned: str) -> Returned:
    prefix = f"Invalid config value for resource ConfigResource(type=BROKER, name='{name}'): "
    return 42, (prefix if kafka_version == "2.8" else "") + returned


@KAFKA_VERSIONS
def test_changes_for_all_and_for_one_are_returned_in_order(kafka_version: str) -> None:
    """BA-92."""
    state = new_state(kafka_version, settings={"log.retention.hours": "24"})
    assert change(state, "", ("log.retention.ms", SET, "100000"), ("log.segment.bytes", SET, "2000000")) == (0, None)
    assert change(state, "1", ("log.retention.ms", SET, "50000")) == (0, None)
    retention = [
        ("log.retention.ms", "50000", DYNAMIC),
        ("log.retention.ms", "100000", DYNAMIC_DEFAULT),
        ("log.retention.hours", "24", STATIC),
        ("log.retention.hours", "168", DEFAULT),
    ]
    segment = [("log.segment.bytes", "2000000", DYNAMIC_DEFAULT), ("log.segment.bytes", "1073741824", DEFAULT)]
    assert described(state, BROKER, "1", "log.retention.ms", "log.retention.minutes", "log.segment.bytes") == [
        ("log.retention.minutes", None, DEFAULT, []),
        ("log.retention.ms", "50000", DYNAMIC, retention),
        ("log.segment.bytes", "2000000", DYNAMIC_DEFAULT, segment),
    ]
    assert described(state, BROKER, "", "log.retention.ms") == [
        ("log.retention.ms", "100000", DYNAMIC_DEFAULT, [("log.retention.ms", "100000", DYNAMIC_DEFAULT)])
    ]
    assert described(state, TOPIC, "t", "retention.ms") == [("retention.ms", "50000", DYNAMIC, retention)]
    assert change(state, "1", ("log.retention.ms", DELETE, None)) == (0, None)
    assert change(state, "", ("log.retention.ms", DELETE, None)) == (0, None)
    assert described(state, TOPIC, "t", "retention.ms") == [("retention.ms", "86400000", DEFAULT, [])]


@KAFKA_VERSIONS
def test_what_is_fixed_is_refused_in_the_words_of_the_release(kafka_version: str) -> None:
    state = new_state(kafka_version)
    names = "num.partitions, log.retention.hours, security.inter.broker.protocol"
    names = f"[{names}]" if kafka_version == "4.4" else f"Set({names})"
    response = change(state, "1", *((name, SET, "3") for name in ("num.partitions", "log.retention.hours", OTHER)))
    assert response == refused(kafka_version, "1", f"Cannot update these configs dynamically: {names}")


@KAFKA_VERSIONS
@pytest.mark.parametrize("name", ["sasl.enabled.mechanisms", "ssl.client.auth", "listeners", "ssl.cipher.suites"])
def test_settings_of_listeners_are_those_of_one_broker(kafka_version: str, name: str) -> None:
    """Measured on 11 releases, 2.3.1 to 4.4.0; kproto has the first two."""
    state = new_state(kafka_version)
    value = "PLAIN" if name == "sasl.enabled.mechanisms" else "none"
    names = f"[{name}]" if kafka_version == "4.4" else f"Set({name})"
    message = f"Cannot update these configs at default cluster level, broker id must be specified: {names}"
    assert change(state, "", (name, SET, value)) == refused(kafka_version, "", message)
    assert put(state, "", {name: value}) == refused(kafka_version, "", message)
    assert change(state, "1", (name, SET, value)) == (0, None)


@pytest.mark.parametrize(
    ("kafka_version", "name", "message"),
    [
        ("3.9", "advertised.listeners", "Cannot update these configs at default cluster level, broker id must be "
                                        "specified: Set(advertised.listeners)"),
        ("4.2", "advertised.listeners", "Cannot update these configs dynamically: Set(advertised.listeners)"),
        ("4.3", "advertised.listeners", "Cannot update these configs dynamically: [advertised.listeners]"),
        ("4.2", "cordoned.log.dirs", None),
        ("4.3", "cordoned.log.dirs", "Cannot update these configs at default cluster level, broker id must be "
                                     "specified: [cordoned.log.dirs]"),
    ],
)  # fmt: skip
def test_settings_became_those_of_one_broker_or_fixed(kafka_version: str, name: str, message: str | None) -> None:
    """Measured on 3.9.2, 4.2.2 and 4.3.1."""
    assert change(new_state(kafka_version), "", (name, SET, "a://b:1")) == (42 if message else 0, message)


@KAFKA_VERSIONS
@pytest.mark.parametrize("broker", ["", "1"])
def test_key_stores_are_those_of_a_listener(kafka_version: str, broker: str) -> None:
    names = "ssl.key.password, ssl.keystore.location"
    names = f"[{names}]" if kafka_version == "4.4" else f"HashSet({names})"
    changes = ("ssl.keystore.location", SET, "x"), ("ssl.key.password", SET, "y")
    assert change(new_state(kafka_version), broker, *changes) == refused(
        kafka_version,
        broker,
        f"These security configs can be dynamically updated only per-listener using the listener prefix: {names}",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.consumer.assignment.interval.ms", "1500"),
        ("group.streams.assignment.interval.ms", "1500"),
        ("errors.deadletterqueue.topic.name.prefix", "dead."),
        ("log.cleaner.backoff.ms", "7"),
    ],
)
def test_what_4_4_alters(name: str, value: str) -> None:
    state = new_state("4.4")
    assert change(state, "", (name, SET, value)) == (0, None)
    assert state.settings.current.str(name) == value


def test_an_altered_interval_of_the_cleaner_counts_from_the_next_run_on() -> None:
    state = new_state("4.4", settings={"log.cleaner.backoff.ms": "1000"}, clock=virtual_clock(0))
    runs_ms: list[int] = []

    class Cleaner(MemoryCleaner):
        def compact_all(self, now_ms: int) -> Iterator[None]:
            runs_ms.append(now_ms)
            return iter(())

    Cleaner(state.settings, {}, state.clock).start()
    assert change(state, "", ("log.cleaner.backoff.ms", SET, "300")) == (0, None)
    for _ in range(20):
        state.clock.advance(100)
    assert runs_ms == [1000, 1300, 1600, 1900]


@KAFKA_VERSIONS
@pytest.mark.parametrize(
    ("name", "value", "returned"),
    [
        ("log.retention.ms", "abc", "Invalid value abc for configuration log.retention.ms: Not a number of type LONG"),
        ("max.connections", "-5", "Invalid value -5 for configuration max.connections: Value must be at least 0"),
        (
            "log.retention.ms",
            "0",
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        ("log.roll.ms", "0", "requirement failed: log.roll.ms must be greater than or equal to 1"),
        ("log.roll.jitter.ms", "-1", "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"),
        (
            "log.flush.interval.messages",
            "0",
            "Invalid value 0 for configuration log.flush.interval.messages: Value must be at least 1",
        ),
        (
            "log.cleaner.threads",
            "128",
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            "log.cleaner.threads",
            "9",
            thread_problem("Log cleaner threads cannot be increased to more than double the current value 1"),
        ),
        (
            "num.io.threads",
            "100",
            thread_problem(
                "Dynamic thread count update validation failed for num.io.threads=100, "
                "value should not be greater than double the current value 8"
            ),
        ),
        (
            "background.threads",
            "4",
            thread_problem(
                "Dynamic thread count update validation failed for background.threads=4, "
                "value should be at least half the current value 10"
            ),
        ),
    ],
)
def test_a_bad_value_is_refused(kafka_version: str, name: str, value: str, returned: str) -> None:
    assert change(new_state(kafka_version), "", (name, SET, value)) == refused(kafka_version, "", returned)


@KAFKA_VERSIONS
def test_what_cannot_be_altered_is_read_only(kafka_version: str) -> None:
    state = new_state(kafka_version)
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    (result,) = ask(state, DescribeConfigsRequest(resources=(resource,)), 4).results
    is_read_only = {one.name: one.read_only for one in result.configs}
    assert is_read_only["num.partitions"]
    for name in ("log.cleaner.backoff.ms", "log.segment.bytes", "num.partitions", "max.connections", "broker.id"):
        error, message = change(state, "1", (name, SET, "20000000"))
        assert is_read_only[name] is ("Cannot update these configs dynamically" in (message or "")), (error, name)


@KAFKA_VERSIONS
def test_the_defaults_of_topics_can_be_altered(kafka_version: str) -> None:
    state = new_state(kafka_version, settings={"log.cleanup.policy": "compact", "log.roll.hours": "24"})
    assert change(state, "", ("log.message.timestamp.type", SET, "LogAppendTime"), ("log.roll.ms", SET, "5")) == (
        0,
        None,
    )
    stamps = [
        ("log.message.timestamp.type", "LogAppendTime", DYNAMIC_DEFAULT),
        ("log.message.timestamp.type", "CreateTime", DEFAULT),
    ]
    rolls = [
        ("log.roll.ms", "5", DYNAMIC_DEFAULT),
        ("log.roll.hours", "24", STATIC),
        ("log.roll.hours", "168", DEFAULT),
    ]
    policies = [("log.cleanup.policy", "compact", STATIC), ("log.cleanup.policy", "delete", DEFAULT)]
    assert sorted(described(state, TOPIC, "t", "message.timestamp.type", "segment.ms", "cleanup.policy")) == [
        ("cleanup.policy", "compact", STATIC, policies),
        ("message.timestamp.type", "LogAppendTime", DYNAMIC_DEFAULT, stamps),
        ("segment.ms", "5", DYNAMIC_DEFAULT, rolls),
    ]
    assert log_config(state.settings.current, {}).has_append_time
    assert change(state, "", ("log.roll.ms", DELETE, None)) == (0, None)
    assert described(state, TOPIC, "t", "segment.ms") == [("segment.ms", "86400000", DEFAULT, [])]


@KAFKA_VERSIONS
def test_a_created_topic_has_the_source_of_its_configs(kafka_version: str) -> None:
    state = new_state(kafka_version, settings={"log.roll.hours": "2", "log.roll.jitter.ms": "123"})
    assert change(state, "1", ("log.cleaner.delete.retention.ms", SET, "34")) == (0, None)
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=1000, validate_only=False)
    (created,) = ask(state, request, 5).topics
    found = {one.name: (one.value, one.config_source) for one in created.configs}
    assert found["segment.ms"] == ("7200000", DEFAULT if kafka_version == "2.8" else STATIC)
    assert (found["segment.jitter.ms"], found["delete.retention.ms"]) == (("123", STATIC), ("34", DYNAMIC))
    assert found["flush.ms"][1] == DEFAULT


@KAFKA_VERSIONS
def test_numbers_of_threads_are_described_and_have_no_effect(kafka_version: str) -> None:
    state = new_state(kafka_version)
    assert change(state, "1", ("num.io.threads", SET, "16"), ("log.cleaner.threads", SET, "2")) == (0, None)
    both = [("num.io.threads", "16", DYNAMIC), ("num.io.threads", "8", DEFAULT)]
    assert described(state, BROKER, "1", "num.io.threads") == [("num.io.threads", "16", DYNAMIC, both)]


@KAFKA_VERSIONS
def test_the_id_of_a_broker_is_fixed(kafka_version: str) -> None:
    names = "[broker.id]" if kafka_version == "4.4" else "Set(broker.id)"
    response = change(new_state(kafka_version), "1", ("broker.id", SET, "2"))
    assert response == refused(kafka_version, "1", f"Cannot update these configs dynamically: {names}")


@KAFKA_VERSIONS
def test_settings_of_plugins_are_kept_and_not_shown(kafka_version: str) -> None:
    """Measured on 2.4.1 and 4.4.0: the type is UNKNOWN, the value a secret, and the setting read-only."""
    state = new_state(kafka_version)
    assert change(state, "1", ("cleanup.policy", SET, "delete"), ("no.such", SET, "secret")) == (0, None)
    assert change(state, "", ("no.such", SET, "2")) == (0, None)
    both = [("no.such", None, DYNAMIC), ("no.such", None, DYNAMIC_DEFAULT)]
    assert described(state, BROKER, "1", "no.such") == [("no.such", None, DYNAMIC, both)]
    assert described(state, BROKER, "", "no.such") == [("no.such", None, DYNAMIC_DEFAULT, both[1:])]
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=("cleanup.policy",))
    (result,) = ask(state, DescribeConfigsRequest(resources=(resource,)), 4).results
    (found,) = result.configs
    assert (found.read_only, found.is_sensitive, found.config_type) == (True, True, 0)
    assert change(state, "1", ("no.such", DELETE, None), ("cleanup.policy", DELETE, None)) == (0, None)
    assert described(state, BROKER, "1", "cleanup.policy") == []


@KAFKA_VERSIONS
def test_few_settings_of_plugins_are_kept(kafka_version: str) -> None:
    state = new_state(kafka_version)
    refused_text = "kproto keeps at most 10000 characters of settings that it does not have"
    assert change(state, "1", ("a", SET, "x" * 9_000)) == (0, None)
    assert change(state, "1", ("b", SET, "x" * 1_000)) == (44, refused_text)
    assert change(state, "1", ("a", SET, "x"), ("b", SET, "x" * 1_000)) == (0, None)
    name = "listener.name.plaintext.no.such"
    assert change(state, "1", (name, SET, "1")) == (44, f"kproto knows no broker setting {name}")


@KAFKA_VERSIONS
def test_a_broker_changes_its_own_settings_alone(kafka_version: str) -> None:
    state = new_state(kafka_version, node_count=3)
    node = "Broker" if kafka_version == "2.8" else "Node"
    assert change(state, "3", ("log.retention.ms", SET, "5"), node_id=3) == (0, None)
    assert change(state, "3", ("log.retention.ms", SET, "5")) == (
        42,
        "Unexpected broker id, expected 1, but received 3",
    )
    assert change(state, "x", ("log.retention.ms", SET, "5")) == (42, f"{node} id must be an integer, but it is: x")
    for large in (str(2**31), "9" * 5000):
        returned = (42, f"{node} id must be an integer, but it is: {large}")
        assert change(state, large, ("log.retention.ms", SET, "5")) == returned
    assert described(state, BROKER, "3", "log.retention.ms", node_id=3)[0][1] == "5"
    assert described(state, BROKER, "1", "log.retention.ms")[0][1] is None
    assert change(state, "+1", ("log.retention.ms", SET, "5")) == (0, None)
    assert described(state, BROKER, "1", "log.retention.ms")[0][1] == "5"


@KAFKA_VERSIONS
def test_only_lists_have_items(kafka_version: str) -> None:
    returned = "Config value append is not allowed for config key: log.retention.ms"
    response = change(new_state(kafka_version), "", ("log.retention.ms", APPEND, "5"))
    assert response == (42 if kafka_version == "2.8" else 40, returned)


def test_a_value_is_required() -> None:
    asked = ("log.retention.ms", SET, None)
    assert change(new_state("4.4"), "x", asked) == (42, "Null value not supported for : log.retention.ms")
    assert change(new_state("2.8"), "x", asked) == (42, "Null value not supported for : SET:log.retention.ms")
    assert put(new_state("3.9"), "x", {"log.retention.ms": None}) == (
        42,
        "Null value not supported for : log.retention.ms",
    )
    assert put(new_state("2.8"), "x", {"log.retention.ms": None}) == (-1, None)


VALUES = (
    "", " 7 ", "-1", "0", "1", "5", "+3", "007", "0.5", "1.5", "1e3", "NaN", "Infinity", "-0.0", "1f", "0x1p-1", "true",
    "FALSE", "2147483648", "9223372036854775807", "a", ",", "a,b,a", "compact", " compact , delete", "delete,delete",
    "gzip", "producer", "uncompressed", "CreateTime", "PLAIN", "TLSv1.2", "required", "host:5", "a://b:1", "DEFAULT",
)  # fmt: skip


@pytest.mark.parametrize("kafka_version", ["2.8", "3.2", "3.9", "4.2", "4.3", "4.4"])
def test_what_can_be_altered_can_be_read_from_the_disk(kafka_version: str) -> None:
    """A start refuses a directory with a value that it does not accept."""
    settings = Settings(KafkaVersion.named(kafka_version))
    accepted = 0
    for name, node, value in product(SETTINGS, ("", "1"), VALUES):
        altered = changed_settings(node, {}, [ConfigChange(name, SET, value)], settings)
        if not isinstance(altered, Refusal):
            accepted += 1
            SETTINGS[name].check(altered[name])
    assert accepted > 200


def test_all_of_them_can_be_put_at_once() -> None:
    state = new_state("3.9")
    assert put(state, "", {"log.retention.ms": "5"}) == (0, None)
    assert put(state, "", {"log.segment.bytes": "2000000"}) == (0, None)
    assert [one[0] for one in described(state, BROKER, "")] == ["log.segment.bytes"]


def test_replicas_in_sync_are_one_number_for_all_where_kafka_needs_it() -> None:
    state = new_state("4.4")
    removed = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    altered = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    assert change(state, "", ("min.insync.replicas", SET, "2")) == (0, None)
    assert change(state, "", ("min.insync.replicas", DELETE, None)) == (40, removed)
    assert change(state, "1", ("min.insync.replicas", SET, "2")) == (40, altered)
    assert change(state, "1", ("min.insync.replicas", DELETE, None)) == (40, altered)
    assert put(state, "", {"log.retention.ms": "5"}) == (40, removed)
    assert put(state, "1", {}) == (0, None)
    assert change(new_state("3.9"), "1", ("min.insync.replicas", SET, "2")) == (0, None)


def test_what_is_only_checked_changes_nothing() -> None:
    state = new_state("3.9")
    assert change(state, "", ("log.retention.ms", SET, "7"), validate_only=True) == (0, None)
    assert described(state, BROKER, "") == []


def test_a_reset_forgets_what_was_changed() -> None:
    state = new_state("3.9")
    change(state, "", ("log.retention.ms", SET, "7"))
    change(state, "1", ("message.max.bytes", SET, "7"))
    state.reset()
    assert described(state, BROKER, "") == []
    assert described(state, BROKER, "1", "message.max.bytes")[0][1] == "1048588"


def test_a_limit_of_one_broker_acts_there() -> None:
    state = new_state(node_count=2)
    leader = state.cluster.topics["t"].partitions[0].leader
    assert change(state, str(leader), ("message.max.bytes", SET, "300"), node_id=leader) == (0, None)
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=batch(size=500)),))
    response = ask(state, ProduceRequest(acks=1, timeout_ms=1, topic_data=(data,)), 9, node_id=leader)
    assert response.responses[0].partition_responses[0].error_code == 10


@pytest.mark.parametrize(
    ("types", "listed"),
    [
        ((), [("1", 8), ("2", 8), ("1", 4), ("2", 4), ("t", 2), ("u", 2), ("__consumer_offsets", 2)]),
        ((2, 4), [("1", 4), ("2", 4), ("t", 2), ("u", 2), ("__consumer_offsets", 2)]),
        ((16, 32), []),
    ],
)
def test_what_has_configs_is_listed(types: tuple[int, ...], listed: list[tuple[str, int]]) -> None:
    state = new_state(node_count=2)
    response = ask(state, ListConfigResourcesRequest(resource_types=types), 1)
    assert response.error_code == 0
    assert [(one.resource_name, one.resource_type) for one in response.config_resources] == listed
    assert ask(state, ListConfigResourcesRequest(), 0).config_resources == ()


@pytest.mark.parametrize(
    ("kafka_version", "is_fixed", "type_"), [("2.8", False, 2), ("3.9", False, 2), ("4.4", True, 7)]
)
def test_a_broker_describes_the_addresses_of_its_listeners(kafka_version: str, is_fixed: bool, type_: int) -> None:
    """kafka-python's tests look for them (read-only as measured on 2.8.2, 3.9.2 and 4.4.0)."""
    listeners = "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    settings = {"listener.security.protocol.map": "OUTSIDE:PLAINTEXT"}
    with Broker.running(kafka_version=kafka_version, listeners=listeners, settings=settings) as broker:
        value = f"PLAINTEXT://{broker.bootstrap_servers},OUTSIDE://{broker.servers_of('OUTSIDE')}"
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name="1", configuration_keys=("advertised.listeners",)
        )
        with RawClient(broker.bootstrap_servers) as client:
            (result,) = client.ask(DescribeConfigsRequest(resources=(resource,), include_synonyms=True), 3).results
    (config,) = result.configs
    assert (config.value, config.read_only, config.config_type) == (value, is_fixed, type_)
    assert [(one.value, one.source) for one in config.synonyms] == [(value, STATIC)]


def test_an_unknown_kind_of_resource_is_refused() -> None:
    response = ask(new_state(), ListConfigResourcesRequest(resource_types=(7,)), 1)
    assert (response.error_code, response.config_resources) == (35, ())
