"""What a broker keeps of clients that push metrics, and for how long."""

from __future__ import annotations

import zlib

import pytest

from kproto.codes import ErrorCode
from kproto.records.compression import Compression
from kproto_server.client_metrics.matching import Client
from kproto_server.client_metrics.subscriptions import (
    CONTENT_MAX_BYTES,
    INSTANCES_MAX,
    PUSHES_MAX,
    PUSHES_MAX_BYTES,
    Instance,
    Sender,
)
from kproto_server.handlers._config_changes import CLIENT_METRICS_MAX
from kproto_server.state import BrokerState
from tests.coordinator.broker_state import NOW_MS, new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.telemetry.conversation import DELETE, SET, Administrator

ID = b"\x07" * 16
CLIENT = Client("id", "app-1", "librdkafka", "2.5", "127.0.0.1", "4711")
CONNECTION = object()
SENDER = Sender(1, CONNECTION)


def state_of(version: str = "4.4", **configs: str) -> BrokerState:
    state = new_state(version, settings={"client.telemetry.receiver.enable": "true"})
    state.settings.change_client_metrics("all", {"metrics": "*", "interval.ms": "1000", **configs})
    return state


def ask(state: BrokerState, now_ms: int = NOW_MS, sender: Sender = SENDER, number: int = 7) -> Instance | ErrorCode:
    return state.client_metrics.ask(bytes([*number.to_bytes(2, "big"), 1] + [7] * 13), CLIENT, sender, now_ms)


def push(
    state: BrokerState, payload: bytes, compression: Compression, now_ms: int = NOW_MS, *, is_terminating: bool = False
) -> ErrorCode:
    client_metrics = state.client_metrics
    instance = client_metrics.ask(ID, CLIENT, SENDER, now_ms)
    assert isinstance(instance, Instance)
    return client_metrics.push(
        ID,
        CLIENT,
        SENDER,
        now_ms,
        subscription_id=instance.subscription_id,
        compression=compression,
        payload=payload,
        is_terminating=is_terminating,
    )


def asked(state: BrokerState, now_ms: int = NOW_MS, sender: Sender = SENDER) -> bool:
    return isinstance(ask(state, now_ms, sender), Instance)


def test_each_node_knows_its_own_clients() -> None:
    state = state_of()
    assert asked(state)
    assert not asked(state)
    assert asked(state, sender=Sender(2, CONNECTION))


def test_the_end_of_its_connection_ends_a_client() -> None:
    for version, is_forgotten in (("3.9", False), ("4.4", True)):
        state = state_of(version)
        assert asked(state)
        state.client_metrics.disconnected(object())
        assert not asked(state)
        state.client_metrics.disconnected(CONNECTION)
        assert asked(state) is is_forgotten


def test_a_client_expires() -> None:
    state = state_of()
    instance = ask(state)
    assert ask(state, NOW_MS + 59_999) is instance
    assert ask(state, NOW_MS + 59_999 + 60_000) is not instance


def test_a_client_with_a_long_interval_expires_after_three() -> None:
    state = state_of(**{"interval.ms": "60000"})
    instance = ask(state)
    assert ask(state, NOW_MS + 179_999) is instance
    assert ask(state, NOW_MS + 179_999 + 180_000) is not instance


def test_the_client_that_asked_first_is_dropped() -> None:
    state = state_of()
    first, second = ask(state, number=0), ask(state, number=1)
    for number in range(2, INSTANCES_MAX):
        ask(state, number=number)
    assert ask(state, NOW_MS + 1000, number=0) is first
    ask(state, number=INSTANCES_MAX)
    assert ask(state, NOW_MS + 1000, number=1) is not second
    assert ask(state, NOW_MS + 2000, number=0) is first


def test_the_newest_pushes_are_kept() -> None:
    state = state_of()
    for number in range(PUSHES_MAX + 1):
        assert push(state, str(number).encode(), Compression.NONE, NOW_MS + 1000 * number) is ErrorCode.NONE
    pushes = state.client_metrics.pushes
    assert (len(pushes), pushes[0].content) == (PUSHES_MAX, b"1")
    large = bytes(1 << 20)
    for number in range(10):
        push(state, large, Compression.NONE, NOW_MS + 10_000_000 + 1000 * number)
    assert len(pushes) == PUSHES_MAX_BYTES // (2 * len(large))


def test_a_push_is_kept_as_it_was_sent() -> None:
    state = state_of()
    assert push(state, b"last", Compression.NONE, is_terminating=True) is ErrorCode.NONE
    (found,) = state.client_metrics.pushes
    assert (found.time_ms, found.node_id, found.client, found.client_instance_id) == (NOW_MS, 1, CLIENT, ID)
    assert (found.is_terminating, found.compression, found.payload) == (True, Compression.NONE, b"last")


def test_a_broker_without_a_receiver_keeps_nothing() -> None:
    state = new_state("4.4")
    state.settings.change_client_metrics("all", {"metrics": "*"})
    assert push(state, b"x", Compression.NONE) is ErrorCode.NONE
    assert not state.client_metrics.pushes


@pytest.mark.parametrize(("excess", "error"), [(0, ErrorCode.NONE), (1, ErrorCode.INVALID_RECORD)])
def test_content_has_a_limit(excess: int, error: ErrorCode) -> None:
    packer = zlib.compressobj(wbits=31)
    payload = packer.compress(bytes(CONTENT_MAX_BYTES + excess)) + packer.flush()
    assert push(state_of(), payload, Compression.GZIP) is error


@pytest.mark.parametrize(
    ("match", "metrics"),
    [
        ("client_source_port=47.*", ("*",)),
        ("client_source_port=47", ()),
        ("client_source_address=127\\.0\\.0\\.1,client_software_name=librdkafka", ("*",)),
        ("client_source_address=127\\.0\\.0\\.1,client_software_name=java", ()),
        ("client_software_version=2\\..", ("*",)),
        ("client_instance_id=id,client_id=app-1", ("*",)),
    ],
)
def test_clients_match_by_their_attributes(match: str, metrics: tuple[str, ...]) -> None:
    instance = ask(state_of(match=match))
    assert isinstance(instance, Instance)
    assert instance.metrics == metrics


def test_expressions_are_re2() -> None:
    administrator = Administrator(InMemoryTransport(new_state("4.4")), "4.4")
    administrator._change("a", (("match", SET, "client_id=(?!x)y"),))
    assert administrator.steps[-1][1] == [40, "Illegal client matching pattern: client_id=(?!x)y"]


def test_few_resources_are_kept() -> None:
    state = new_state("4.4")
    for number in range(CLIENT_METRICS_MAX):
        state.settings.change_client_metrics(str(number), {"metrics": "x"})
    administrator = Administrator(InMemoryTransport(state), "4.4")
    administrator._change("more", (("metrics", SET, "x"),))
    assert administrator.steps[-1][1][0] == ErrorCode.POLICY_VIOLATION
    administrator._change("0", (("metrics", SET, "y" * 9988),))
    assert administrator.steps[-1][1][0] == ErrorCode.NONE
    administrator._change("0", (("metrics", SET, "y" * 10_000),))
    assert administrator.steps[-1][1][0] == ErrorCode.POLICY_VIOLATION
    administrator._change("0", (("metrics", DELETE, None),))
    administrator._change("more", (("metrics", SET, "x"),))
    assert administrator.steps[-1][1] == [0, None]
