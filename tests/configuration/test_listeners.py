"""Kafka's settings of listeners become those of every node."""

from __future__ import annotations

import pytest

from kproto_server.configuration.listeners import Address, Listener, listeners_of
from kproto_server.configuration.setting_table import SettingError

KRAFT = {  # as in Kafka's own server.properties
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
}
ALL = "PLAINTEXT://h:1, SSL://h:2, SASL_PLAINTEXT://h:3, SASL_SSL://h:4"


def plain(name: str, bound: Address | None, advertised: Address | None) -> Listener:
    return Listener(name, "PLAINTEXT", bound, advertised)


@pytest.mark.parametrize(
    ("properties", "used", "unused"),
    [
        (KRAFT, [plain("PLAINTEXT", Address("", 9092), Address("localhost", 9092))], ()),
        ({"listeners": "plaintext://[::1]:7"}, [plain("PLAINTEXT", Address("::1", 7), None)], ()),
        (
            {"advertised.listeners": "PLAINTEXT://kproto:9092,SSL://kproto:9093"},
            [plain("PLAINTEXT", None, Address("kproto", 9092))],
            ("SSL",),
        ),
        (
            {
                "listeners": "SSL://:9094, INSIDE://:29092, OUTSIDE://:9092",
                "advertised.listeners": "INSIDE://kafka:29092,OUTSIDE://localhost:9092",
                "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            },
            [
                plain("INSIDE", Address("", 29092), Address("kafka", 29092)),
                plain("OUTSIDE", Address("", 9092), Address("localhost", 9092)),
            ],
            ("SSL",),
        ),
        ({}, [], ()),
    ],
)
def test_listeners_that_the_broker_can_have_are_used(
    properties: dict[str, str], used: list[Listener], unused: tuple[str, ...]
) -> None:
    found = listeners_of(properties)
    assert (list(found.used), found.unused) == (used, unused)


@pytest.mark.parametrize(
    ("has_tls", "has_sasl", "names"),
    [
        (False, False, ["PLAINTEXT"]),
        (True, False, ["PLAINTEXT", "SSL"]),
        (False, True, ["PLAINTEXT", "SASL_PLAINTEXT"]),
        (True, True, ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
    ],
)
def test_listeners_need_what_their_protocol_needs(has_tls: bool, has_sasl: bool, names: list[str]) -> None:
    found = listeners_of({"listeners": ALL}, has_tls=has_tls, has_sasl=has_sasl)
    assert [one.name for one in found.used] == names


@pytest.mark.parametrize(
    ("properties", "has_tls", "faults"),
    [
        ({"listeners": "9092"}, False, ["listeners can't be '9092': give NAME://HOST:PORT"]),
        (
            {"listeners": "PLAINTEXT://:99999"},
            False,
            ["listeners can't be 'PLAINTEXT://:99999': give NAME://HOST:PORT"],
        ),
        (
            {"listeners": "SSL://:9092"},
            False,
            [
                "listeners has no listener that can be opened: write --tls auto for SSL, --sasl PLAIN for "
                "SASL_PLAINTEXT, and both for SASL_SSL"
            ],
        ),
        (
            {"listeners": "PLAINTEXT://:9092"},
            True,
            ["listeners has no listener with TLS: add one with SSL or SASL_SSL, or leave out --tls"],
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
            False,
            ["advertised.listeners can't be '0.0.0.0': give a host that clients can connect to"],
        ),
        (
            {"listeners": "INSIDE://:9092,SSL://x"},
            False,
            [
                "listeners can't be 'SSL://x': give NAME://HOST:PORT",
                "listeners: no security protocol of INSIDE: add INSIDE:PLAINTEXT to listener.security.protocol.map",
            ],
        ),
        (
            {"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"},
            False,
            ["listeners has PLAINTEXT twice: give each listener a name of its own"],
        ),
    ],
)
def test_all_faults_are_listed(properties: dict[str, str], has_tls: bool, faults: list[str]) -> None:
    with pytest.raises(SettingError) as caught:
        listeners_of(properties, has_tls=has_tls)
    assert str(caught.value).splitlines() == faults
