"""Credentials and tokens with real brokers: all clients of a consumer use them, also those that come later (SASL)."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import anyio.from_thread
import pytest
from confluent_kafka import KafkaError, Message
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion  # type: ignore[attr-defined]

from kproto.client import Consumer, aio
from tests.kproto_client.catch_up_cases import behind
from tests.kproto_client.kafka_fixture import LIMIT_S, KafkaFixture, unique_name
from tests.kproto_client.parity import MODES
from tests.oracle.cluster import NEWEST, real_kafka
from tests.oracle.ports import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.oracle

SECURITY = "org.apache.kafka.common.security"
LISTENER = "SASL_PLAINTEXT"
REAUTHENTICATION_S = 3.0
"""After this time the broker closes a connection that has not authenticated again (KIP-368). It refuses an attempt
within a second of the last one."""
TOKEN_S = 8.0
"""librdkafka requests the next token after four fifths of it; the connections of the last fifth last that long only."""
RECORDS = 3000
ERRORS = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
IN_BETWEEN = "not valid in current SASL state"
"""On a loaded machine, librdkafka begins to authenticate again while the broker still awaits the former token."""


@dataclass(frozen=True)
class Secured:
    """A broker with two listeners.

    Args:
        kafka: connects without authentication.
        bootstrap: the address of the other listener.
    """

    kafka: KafkaFixture
    bootstrap: str

    def set_password(self, user: str, password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        alteration = UserScramCredentialUpsertion(user, info, password.encode())
        for future in self.kafka.admin.alter_user_scram_credentials([alteration]).values():
            future.result(LIMIT_S)


@pytest.fixture(scope="module", params=[NEWEST])
def secured(request: pytest.FixtureRequest) -> Iterator[Secured]:
    address = f"127.0.0.1:{free_port()}"
    of_listener = f"listener.name.{LISTENER.lower()}"
    props = {
        "listeners": f"+{LISTENER}://{address}",
        "advertised.listeners": f"+{LISTENER}://{address}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{LISTENER}:{LISTENER}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        f"{of_listener}.scram-sha-256.sasl.jaas.config": f"{SECURITY}.scram.ScramLoginModule required;",
        f"{of_listener}.oauthbearer.sasl.jaas.config": (
            f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        "connections.max.reauth.ms": str(int(REAUTHENTICATION_S * 1000)),
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
    }
    with real_kafka(request.param, props=props) as cluster:
        yield Secured(KafkaFixture(cluster.bootstrap), address)


class AsyncConsumer:
    """`kproto.client.aio.Consumer` with blocking methods."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._portals = anyio.from_thread.start_blocking_portal()
        self._portal = self._portals.__enter__()
        self._consumer = self._portal.call(aio.Consumer, config)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._consumer, name)
        return lambda *args: self._portal.call(method, *args)

    def close(self) -> None:
        self._portal.call(self._consumer.aclose)
        self._portals.__exit__(None, None, None)


CONSUMERS: dict[str, Callable[[dict[str, Any]], Any]] = {"blocking": Consumer, "aio": AsyncConsumer}


class Program:
    """A consumer with all settings that has begun a catch-up, and the errors of its clients."""

    def __init__(self, secured: Secured, kind: str, config: dict[str, Any]) -> None:
        self._kafka = secured.kafka
        self._errors: list[KafkaError] = []
        self._topic, self._group = behind(self._kafka, 1, RECORDS)
        connection = {"bootstrap.servers": secured.bootstrap, "security.protocol": LISTENER, **config}
        # The records of a member that was lost on a loaded machine would be read again.
        connection["session.timeout.ms"] = int(LIMIT_S * 1000)
        config = {**self._kafka.config(self._group), **MODES["all"], **connection, "error_cb": self._errors.append}
        self.consumer = CONSUMERS[kind](config)
        self.consumer.subscribe([self._topic])
        self._offsets: dict[int, list[int]] = {0: [], 1: []}
        self._written = RECORDS
        self.read(lambda: bool(self._offsets[0]))

    def read(self, condition: Callable[[], bool]) -> None:
        def is_met() -> bool:
            message: Message | None = self.consumer.poll(0.02)
            if message is not None and message.error() is None:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self._offsets[partition].append(offset)
            return condition()

        wait_until(is_met, "records")

    def check(self, seconds: float) -> None:
        """Read the catch-up, new records, and after this time and another one those of a partition that is added."""
        self._read_for(seconds)
        self._errors.clear()  # connections that authenticated between the two changes of a password
        self._read_for(REAUTHENTICATION_S)
        # The last record is finished by the request for the next one; otherwise the revocation, which may come before
        # that request, leaves it to the next owner, and it is read again after the records of the other partition.
        self.read(lambda: True)
        self._kafka.expand(self._topic, 2)
        self._kafka.write(self._topic, 5, partition=1)
        self.read(lambda: len(self._offsets[1]) == 5)
        assert self._offsets == {0: list(range(1, self._offsets[0][-1] + 1)), 1: list(range(5))}
        self.consumer.close()
        assert self._kafka.committed(self._group, self._topic) == self._offsets[0][-1] + 1
        assert [each for each in self._errors if each.code() in ERRORS and IN_BETWEEN not in each.str()] == []

    def _read_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._kafka.write(self._topic, 1)
            self._written += 1
            self.read(lambda: self._offsets[0][-1] + 1 == self._written)


def new_credentials(secured: Secured, kind: str) -> None:
    """Each connection has to authenticate again, and the broker knows the new password only."""
    user = unique_name("user")
    secured.set_password(user, "first")
    settings = {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": user, "sasl.password": "first"}
    program = Program(secured, kind, settings)
    program.consumer.set_sasl_credentials(user, "second")
    secured.set_password(user, "second")
    program.check(REAUTHENTICATION_S)


def tokens(secured: Secured, kind: str) -> None:
    """Tokens expire while the consumer reads."""

    def encoded(part: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")

    def token(_: str) -> tuple[str, float]:
        now = time.time()
        claims = {"sub": "user", "iat": now - 1, "exp": now + TOKEN_S}
        return f"{encoded({'alg': 'none'})}.{encoded(claims)}.", now + TOKEN_S

    program = Program(secured, kind, {"sasl.mechanisms": "OAUTHBEARER", "oauth_cb": token})
    program.check(TOKEN_S)


def test_new_credentials_and_tokens_reach_each_connection(secured: Secured) -> None:
    """All programs at the same time: they wait for their connections to expire."""
    with ThreadPoolExecutor() as threads:
        runs = [threads.submit(each, secured, kind) for each in (new_credentials, tokens) for kind in CONSUMERS]
    for each in runs:
        each.result()
