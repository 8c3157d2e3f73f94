"""The ``kafka_broker`` fixture: one broker for the pytest session, reset before each test.

The plugin is installed as an entry point, so pytest finds it without configuration. A test that needs another release
or more nodes makes a `Broker` of its own, or overrides ``kafka_broker_options``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.broker.broker import Broker, BrokerOptions


@pytest.fixture(scope="session")
def kafka_broker_options() -> BrokerOptions:
    """Return the arguments of `Broker` for the broker of this pytest session; override it in a conftest."""
    return {}


@pytest.fixture(scope="session")
def _kafka_broker_server(kafka_broker_options: BrokerOptions) -> Iterator[Broker]:
    from kproto_server.broker.broker import Broker

    with Broker.running(**kafka_broker_options) as broker:
        yield broker


@pytest.fixture
def kafka_broker(_kafka_broker_server: Broker, kafka_broker_options: BrokerOptions) -> Broker:
    """Return a running broker without topics, groups or offsets, at ``kafka_broker.bootstrap_servers``.

    Each test has ports of its own, unless the options have a port: clients that an earlier test left running find no
    broker.
    """
    _kafka_broker_server.reset(new_ports=not kafka_broker_options.get("port"))
    return _kafka_broker_server
