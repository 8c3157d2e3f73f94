"""The oldest release of brokers that serves each setting, and the refusal of older ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kproto.client import Consumer, UnsupportedBroker
from kproto.client.broker_queries import finds_offsets_by_time, partitions_of_topic
from kproto_server import Broker
from tests.kproto_client.kafka_fixture import KafkaFixture, start_position
from tests.kproto_client.parity import MODES
from tests.oracle.cluster import real_kafka
from tests.waiting import wait_until

RECORDS = 3
COMMITTED = 1
NO_REQUEST_FOR_VERSIONS: dict[str, Any] = {"api.version.request": False}
CONNECTIONS: dict[str, dict[str, Any]] = {
    "0.8.2.2": {**NO_REQUEST_FOR_VERSIONS, "broker.version.fallback": "0.8.2"},
    "0.9.0.1": {**NO_REQUEST_FOR_VERSIONS, "broker.version.fallback": "0.9.0"},
    "0.10.0.1": {},
    "0.10.1.1": {},
}
"""librdkafka's settings for brokers of each release."""
NO_GROUPS = "0.8.2.2"
"""librdkafka does not join a group of brokers that do not assign partitions."""
SAFE_LATEST_FROM = "0.10.1.1"
FURTHER_MODES = {
    **MODES,
    "nearest": {**MODES["nearest"], "auto.offset.reset": "earliest"},
    "merge=false": {**MODES["parallel"], "parallel.rebalance.merge": False},
}
SETTINGS = {"group.initial.rebalance.delay.ms": 0}
INITIAL = "auto_offset_reset_on_no_initial_offset"
END_MODES = frozenset({"off", "latest", "latest_on_start", "safe_latest", "parallel", "merge=false", "all"})
"""Modes in which a group without committed offset starts at the log end."""


def start(kafka: KafkaFixture, release: str, mode: str, topic: str, committed: int | None) -> int | str:
    """Return where a group with this committed offset starts, or the error."""
    group = f"{mode} from {committed}"
    if committed is not None:
        kafka.commit(group, topic, committed)
    with Consumer({**kafka.config(group), **FURTHER_MODES[mode]}) as consumer:
        if release == NO_GROUPS:
            consumer.assign([TopicPartition(topic, 0)])
        else:
            consumer.subscribe([topic])
        return start_position(consumer)


def starts(kafka: KafkaFixture, release: str) -> dict[tuple[str, int | None], int | str]:
    """Return the start positions in all modes, without and with a committed offset, and after an invalid one."""
    topic = "topic-of-old-brokers"  # librdkafka cannot parse short responses of Metadata v0
    kafka.write(topic, RECORDS)
    kafka.commit("first", topic, 0)
    runs = [(mode, committed) for mode in FURTHER_MODES for committed in (None, COMMITTED)]
    runs.append(("nearest", 900))
    with ThreadPoolExecutor(len(runs)) as threads:
        return dict(zip(runs, threads.map(lambda run: start(kafka, release, run[0], topic, run[1]), runs), strict=True))


def expected(release: str) -> dict[tuple[str, int | None], int | str]:
    found: dict[tuple[str, int | None], int | str] = {("nearest", 900): RECORDS}
    for mode, settings in FURTHER_MODES.items():
        is_refused = "safe_latest" in settings.values() and release != SAFE_LATEST_FROM
        found[mode, None] = "UnsupportedBroker" if is_refused else RECORDS if mode in END_MODES else 0
        found[mode, COMMITTED] = "UnsupportedBroker" if is_refused else COMMITTED
    return found


def safe_latest_without_timestamps(kafka: KafkaFixture) -> None:
    """CK-22: brokers find no offset by timestamp in topics of an old message format, which have none."""
    topic = kafka.topic(message_format_version="0.9.0")
    kafka.write(topic, RECORDS)
    with kafka.consumer("no timestamps", **{INITIAL: "safe_latest"}) as consumer:
        consumer.subscribe([topic])
        assert start_position(consumer) == RECORDS


@pytest.mark.oracle
@pytest.mark.parametrize("release", CONNECTIONS)
def test_real_kafka(release: str) -> None:
    with real_kafka(release) as cluster:
        kafka = KafkaFixture(cluster.bootstrap, CONNECTIONS[release])
        assert starts(kafka, release) == expected(release)
        if release == SAFE_LATEST_FROM:
            safe_latest_without_timestamps(kafka)


@pytest.mark.parametrize("release", CONNECTIONS)
def test_kproto(release: str) -> None:
    with Broker.running(kafka_version=release.rpartition(".")[0], settings=SETTINGS) as broker:
        kafka = KafkaFixture(broker.bootstrap_servers, CONNECTIONS[release])
        assert starts(kafka, release) == expected(release)


def test_the_refusal_names_the_reason_and_seek_ends_it() -> None:
    topic = "orders"
    with Broker.running(kafka_version="0.10.0", settings=SETTINGS) as broker:
        kafka = KafkaFixture(broker.bootstrap_servers)
        kafka.write(topic, RECORDS)
        with kafka.consumer("billing", **{INITIAL: "safe_latest"}) as consumer:
            consumer.subscribe([topic])
            errors: list[UnsupportedBroker] = []

            def is_raised() -> bool:
                try:
                    assert consumer.poll(0.1) is None
                except UnsupportedBroker as error:
                    errors.append(error)
                return bool(errors)

            wait_until(is_raised, "UnsupportedBroker")
            text = (
                "safe_latest needs brokers of Kafka 0.10.1 or newer; with older ones use latest_on_start and "
                "auto.offset.reset=earliest: orders [0]"
            )
            assert errors[0].args[0].code() == KafkaError._UNSUPPORTED_FEATURE
            assert errors[0].args[0].str() == text
            assert consumer.poll(0.1) is None
            consumer.seek(TopicPartition(topic, 0, COMMITTED))
            assert start_position(consumer) == COMMITTED


def test_brokers_are_asked_once() -> None:
    with Broker.running(settings=SETTINGS) as broker:
        kafka = KafkaFixture(broker.bootstrap_servers)
        topics = [kafka.topic(), kafka.topic()]
        with kafka.consumer("billing", **{INITIAL: "safe_latest"}) as consumer:
            for topic in topics:
                consumer.subscribe([topic])
                assert start_position(consumer) == 0
        assert len(broker.requests.where(api="ListOffsets", topic=topics[0])) == 3
        assert len(broker.requests.where(api="ListOffsets", topic=topics[1])) == 2


@pytest.mark.parametrize("query", [finds_offsets_by_time, partitions_of_topic])
@pytest.mark.parametrize("error", [None, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)])
def test_a_topic_without_partitions_is_an_error_that_is_repeated(query: Any, error: KafkaError | None) -> None:
    """CK-24: a broker that has just started does not know the topic yet."""
    client: Any = SimpleNamespace(
        list_topics=lambda *_, **__: SimpleNamespace(topics={"a": SimpleNamespace(partitions={}, error=error)})
    )
    with pytest.raises(KafkaException):
        query(client, "a", 1.0)
