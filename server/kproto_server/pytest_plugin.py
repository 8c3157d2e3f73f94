"""The ``kafka_broker`` fixture: one broker for the session, forgotten between tests.

Installed as an entry point; ``pytest`` finds it without being told. A test that needs another release or more nodes
makes a `Broker` of its own, or overrides ``kafka_broker_options``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.broker.broker import Broker, BrokerOptions


@pytest.fixture(scope="session")
def kafka_broker_options() -> BrokerOptions:
    """Arguments of `Broker` for this session's broker; override it in a conftest to change them."""
    return {}


@pytest.fixture(scope="session")
def _kafka_broker_server(kafka_broker_options: BrokerOptions) -> Iterator[Broker]:
    from kproto_server.broker.broker import Broker

    with Broker.running(**kafka_broker_options) as broker:
        yield broker


@pytest.fixture
def kafka_broker(_kafka_broker_server: Broker) -> Broker:
    """A running broker without topics, groups or offsets: ``kafka_broker.bootstrap_servers`` is its address."""
    _kafka_broker_server.reset()
    return _kafka_broker_server
