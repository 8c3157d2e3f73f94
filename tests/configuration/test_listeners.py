"""Kafka's settings of listeners become the one address of a broker."""

from __future__ import annotations

import pytest

from kproto_server.configuration.listeners import Address, addresses
from kproto_server.configuration.setting_table import SettingError

KRAFT = {  # as in Kafka's own server.properties
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
}


@pytest.mark.parametrize(
    ("properties", "bound", "advertised", "unused"),
    [
        (KRAFT, Address("", 9092), Address("localhost", 9092), ()),
        ({"listeners": "PLAINTEXT://0.0.0.0:0"}, Address("0.0.0.0", 0), None, ()),  # noqa: S104
        ({"listeners": "plaintext://[::1]:7"}, Address("::1", 7), None, ()),
        ({"advertised.listeners": "PLAINTEXT://kproto:9092"}, None, Address("kproto", 9092), ()),
        (
            {
                "listeners": "SSL://:9094, INSIDE://:29092, OUTSIDE://:9092",
                "advertised.listeners": "INSIDE://kafka:29092,OUTSIDE://localhost:9092",
                "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            },
            Address("", 29092),
            Address("kafka", 29092),
            ("SSL", "OUTSIDE"),
        ),
    ],
)
def test_the_first_plaintext_listener_is_used(
    properties: dict[str, str], bound: Address | None, advertised: Address | None, unused: tuple[str, ...]
) -> None:
    found = addresses(properties)
    assert (found.bound, found.advertised, found.unused) == (bound, advertised, unused)


@pytest.mark.parametrize(
    ("properties", "faults"),
    [
        ({"listeners": "9092"}, ["listeners can't be '9092': give NAME://HOST:PORT"]),
        ({"listeners": "PLAINTEXT://:99999"}, ["listeners can't be 'PLAINTEXT://:99999': give NAME://HOST:PORT"]),
        (
            {"listeners": "SSL://:9092", "advertised.listeners": "SSL://x"},
            [
                "advertised.listeners can't be 'SSL://x': give NAME://HOST:PORT",
                "listeners has no PLAINTEXT listener: kproto serves neither TLS nor SASL",
            ],
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
            ["advertised.listeners can't be '0.0.0.0': give a host that clients can connect to"],
        ),
    ],
)
def test_all_faults_are_listed(properties: dict[str, str], faults: list[str]) -> None:
    with pytest.raises(SettingError) as caught:
        addresses(properties)
    assert str(caught.value).splitlines() == faults
