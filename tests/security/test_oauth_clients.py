"""Client libraries write a record and read it in a group, with OAUTHBEARER and unsecured tokens.

`test_security_page.py` reads from the names of the tests which libraries are tested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.security.oauth import unsecured_token
from tests.oracle.cluster import NEWEST
from tests.security.oauth_scripts import BEARER, now_s
from tests.security.test_client_settings import run_aiokafka, run_franz_go, run_java, run_kafkajs
from tests.waiting import LIMIT_S

LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def bearer_broker() -> Iterator[Broker]:
    with Broker.running(sasl=BEARER) as running:
        yield running


def test_confluent_kafka(bearer_broker: Broker) -> None:
    confluent_kafka: Any = pytest.importorskip("confluent_kafka")
    settings = {
        "bootstrap.servers": bearer_broker.bootstrap_servers,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": BEARER,
        "oauth_cb": lambda _: (unsecured_token("alice", issued_s=now_s()), now_s() + 3600),
    }
    producer = confluent_kafka.Producer(settings)
    producer.produce("confluent", b"v")
    assert producer.flush(LIMIT_S) == 0
    consumer = confluent_kafka.Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])
    assert consumer.poll(LIMIT_S).value() == b"v"
    consumer.close()


def test_kafka_python(bearer_broker: Broker) -> None:
    kafka_python: Any = pytest.importorskip("kafka")
    oauth: Any = pytest.importorskip("kafka.net.sasl.oauth")

    class Tokens(oauth.AbstractTokenProvider):  # type: ignore[misc]  # a class that is imported late
        def token(self) -> str:
            return unsecured_token("alice", issued_s=now_s())

    settings = {
        "bootstrap_servers": bearer_broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": BEARER,
        "sasl_oauth_token_provider": Tokens(),
    }
    with kafka_python.KafkaProducer(**settings) as producer:
        producer.send("python", b"v").get(LIMIT_S)
    consumer = kafka_python.KafkaConsumer("python", group_id="g", auto_offset_reset="earliest", **settings)
    assert next(consumer).value == b"v"
    consumer.close()


def test_aiokafka(bearer_broker: Broker) -> None:
    abc: Any = pytest.importorskip("aiokafka.abc")

    class Tokens(abc.AbstractTokenProvider):  # type: ignore[misc]  # a class that is imported late
        async def token(self) -> str:
            return unsecured_token("alice", issued_s=now_s())

    async def run() -> bytes:
        settings = {
            "bootstrap_servers": bearer_broker.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": BEARER,
            "sasl_oauth_token_provider": Tokens(),
        }
        return await run_aiokafka(**settings)

    assert asyncio.run(run()) == b"v"


@pytest.mark.oracle
@pytest.mark.parametrize("release", ["2.0.1", NEWEST])
def test_java(bearer_broker: Broker, release: str, tmp_path: Path) -> None:
    settings = {
        "bootstrap.servers": bearer_broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": BEARER,
        "sasl.jaas.config": f'{LOGIN} required unsecuredLoginStringClaim_sub="alice";',
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    assert run_java(release, lines, tmp_path, "toolpath") == "v"  # the client reads tokens with Jackson


def test_franz_go(bearer_broker: Broker, tmp_path: Path) -> None:
    servers, token = bearer_broker.bootstrap_servers, unsecured_token("alice", issued_s=now_s())
    settings = f"""options := []kgo.Opt{{
    kgo.SeedBrokers("{servers}"),
    kgo.SASL(oauth.Auth{{Token: "{token}"}}.AsMechanism()),
}}"""
    assert run_franz_go(settings, tmp_path) == "v"


def test_kafkajs(bearer_broker: Broker, tmp_path: Path) -> None:
    servers, token = bearer_broker.bootstrap_servers, unsecured_token("alice", issued_s=now_s())
    settings = f"""brokers: ["{servers}"],
sasl: {{ mechanism: "oauthbearer", oauthBearerProvider: async () => ({{ value: "{token}" }}) }},"""
    assert run_kafkajs(settings, tmp_path) == "v"
