"""What the user sets reaches each connection: those of consumer 2 and of the checkpoint producer too."""

from __future__ import annotations

import json
import logging
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kproto.client import Consumer, further_clients
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import KafkaFixture, read, unique_name
from tests.kproto_client.parity import MODES
from tests.waiting import wait_until


class Messages(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def catching_up(kafka: KafkaFixture, config: dict[str, Any]) -> Consumer:
    """Return a consumer that has read one record of a catch-up."""
    topic, group = kafka.log(), unique_name("group")
    kafka.write(topic, 20_000)  # the clients of the catch-up live until its end
    kafka.commit(group, topic, 200)
    consumer = Consumer({**kafka.config(group), **MODES["parallel"], **config})
    consumer.subscribe([topic])
    assert read(consumer, 1) == [200]
    return consumer


def test_statistics_come_from_each_client_and_logs_from_each_consumer(kafka: KafkaFixture) -> None:
    names: set[str] = set()
    logger, messages = logging.getLogger(unique_name("logger")), Messages()
    logger.addHandler(messages)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False

    def on_statistics(text: str) -> None:
        names.add(json.loads(text)["name"])

    settings = {"stats_cb": on_statistics, "statistics.interval.ms": 20, "client.id": "mine"}
    consumer = catching_up(kafka, {**settings, "logger": logger, "debug": "broker", "log_level": 7})

    def reached() -> bool:
        consumer.poll(0.01)
        return any("mine#producer" in name for name in names) and sum("mine#consumer" in name for name in names) >= 2

    wait_until(reached, "the statistics of three clients")
    consumer.close()
    consumers = {name for name in names if "mine#consumer" in name}
    silent = {name for name in consumers if not any(name in text for text in messages.texts)}
    assert not silent, messages.texts[-20:]


def test_statistics_and_logs_come_after_the_catch_up_too(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the client of queries, the checkpoint producer, the admin client: in memory, their events wait for a poll."""
    monkeypatch.setattr(further_clients, "POLL_INTERVAL_S", 0.01)
    counts: Counter[str] = Counter()
    logger, messages = logging.getLogger(unique_name("logger")), Messages()
    logger.addHandler(messages)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    topic, group = behind(kafka, 0, 50)
    settings = {
        "stats_cb": lambda text: counts.update([json.loads(text)["name"]]),
        "statistics.interval.ms": 20,
        "client.id": "mine",
        "logger": logger,
        "debug": "broker",
        "log_level": 7,
    }
    with Consumer({**kafka.config(group), **MODES["all"], **settings}) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 50) == list(range(50))
        delegate = consumer._delegate
        assert delegate is not None
        assert delegate._parallel is not None

        def is_normal() -> bool:
            consumer.poll(0.01)
            return delegate.delivery._is_normal

        wait_until(is_normal, "the end of the catch-up and of its checkpoints")
        producer = delegate._parallel._checkpoint_topic._producer
        assert producer is not None
        counts.clear()

        def all_are_heard() -> bool:
            consumer.poll(0.01)
            often = {name for name, count in counts.items() if count >= 3}
            heard = [sum(f"mine#{kind}" in name for name in often) for kind in ("consumer", "producer")]
            return min(heard) >= 2 and all(any(name in text for text in messages.texts) for name in often)

        wait_until(all_are_heard, "the user's consumer and that of queries, the producer and the admin client")

        def is_empty() -> bool:
            consumer.poll(0.01)
            return len(producer) == 0

        wait_until(is_empty, "the last event of the producer")


def test_a_callback_may_close_the_consumer(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one of the client of queries: it is closed after its poll."""
    monkeypatch.setattr(further_clients, "POLL_INTERVAL_S", 0.01)
    topic, group = behind(kafka, 0, 5)

    def on_statistics(_: str) -> None:
        if delegate._clients._is_polling and not delegate.is_closing:
            consumer.close()

    config = {**kafka.config(group), **MODES["safe_latest"], "stats_cb": on_statistics, "statistics.interval.ms": 20}
    consumer = Consumer(config)
    assert consumer._delegate is not None
    delegate = consumer._delegate
    consumer.subscribe([topic])

    def is_closed() -> bool:
        with suppress(RuntimeError):  # the consumer is closed
            consumer.poll(0.01)
        return delegate.is_closed and not delegate._queries._clients

    wait_until(is_closed, "the end of each client")


def test_callbacks_of_queries_run_in_the_users_calls_only() -> None:
    """Another thread may close the client of queries."""
    called: list[str] = []
    clients = further_clients.FurtherClients({"error_cb": called.append, "statistics.interval.ms": 5})
    assert clients._while_polled(5) == 5
    callback = clients._while_polled(called.append)
    callback("close")
    clients.poll(lambda: callback("poll"))
    callback("close")
    assert called == ["poll"]


def test_without_callbacks_no_client_is_polled(kafka: KafkaFixture) -> None:
    """`poll` stays librdkafka's own."""
    topic, group = behind(kafka, 0, 5)
    with kafka.consumer(group, auto_offset_reset_on_no_initial_offset="earliest_on_start") as consumer:
        consumer.subscribe([topic])
        assert read(consumer, 5) == list(range(5))
        assert consumer._delivery is not None
        assert consumer._delivery.straight_until is None


def test_throttle_callbacks_are_given_to_each_polled_client() -> None:
    given = {"throttle_cb": print, "error_cb": print, "stats_cb": print, "on_commit": print}
    clients = further_clients.FurtherClients(given)
    assert clients._callbacks == dict.fromkeys(("throttle_cb", "error_cb", "stats_cb"), print)


def test_credentials_reach_open_clients_and_later_ones(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[str] = set()
    for each in (further_clients.FurtherConsumer, further_clients.FurtherProducer, AdminClient):

        def note(self: Any, username: str, password: str) -> None:
            reached.add(f"{type(self).__name__} {username} {password}")

        monkeypatch.setattr(each, "set_sasl_credentials", note)
    connection = {"bootstrap.servers": kafka.bootstrap}
    clients = further_clients.FurtherClients({})
    consumer = clients.consumer({**connection, "group.id": "g"})
    opened = [clients.producer(connection), clients.admin(connection)]
    clients.set_sasl_credentials("user", "secret")
    assert reached == {f"{each} user secret" for each in ("FurtherConsumer", "FurtherProducer", "AdminClient")}
    consumer.close()
    opened.clear()

    given: list[dict[str, Any]] = []
    monkeypatch.setattr(further_clients, "FurtherConsumer", given.append)
    monkeypatch.setattr(further_clients, "FurtherProducer", given.append)
    with pytest.raises(TypeError):  # the list's append returns no client
        clients.consumer(connection)
    with pytest.raises(TypeError):
        clients.producer(connection)
    assert given == [{**connection, "sasl.username": "user", "sasl.password": "secret"}] * 2


def test_the_users_call_reaches_the_further_clients(kafka: KafkaFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[tuple[str, str]] = []
    monkeypatch.setattr(
        further_clients.FurtherClients, "set_sasl_credentials", lambda _, *credentials: reached.append(credentials)
    )
    consumer = catching_up(kafka, {})
    consumer.set_sasl_credentials("user", "secret")
    consumer.close()
    assert reached == [("user", "secret")]


@pytest.mark.parametrize("mode", ["off", "latest", "safe_latest", "nearest", "parallel"])
@pytest.mark.parametrize("automatic", [True, False])
def test_commits_keep_the_leader_epoch(kafka: KafkaFixture, mode: str, automatic: bool) -> None:
    """KIP-320: after a restart, a client finds by the epoch whether the log was truncated."""
    topic, group = kafka.log(), unique_name("group")
    kafka.commit(group, topic, 200)
    with Consumer({**kafka.config(group, enable_auto_commit=automatic), **MODES[mode]}) as consumer:
        consumer.subscribe([topic])
        for _ in range(3):
            read(consumer, 50)
            if not automatic:
                (committed,) = consumer.commit(asynchronous=False)
                assert committed.leader_epoch == 0
    found = kafka.committed_with_metadata(group, topic)
    assert (found.offset, found.leader_epoch) == (350, 0)
