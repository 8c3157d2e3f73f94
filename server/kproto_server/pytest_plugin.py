"""Fixtures and a mark for tests against a broker, and what clients have sent, in the report of a test that fails.

The plugin is installed as an entry point, so pytest finds it without configuration. It imports nothing of the broker
before a test uses one. Its fixtures are synchronous: a broker has a thread of its own, so blocking tests, unittest's
classes and coroutines of asyncio, anyio and trio use the same ones.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Unpack

    from kproto_server.broker.broker import Broker, BrokerOptions

    BrokerFactory = Callable[..., Broker]

MARK = "kafka"
NOT_INHERITED = ("port", "data")
"""Options of the session's broker that a second broker can't have at the same time."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(brokers=3, kafka_version='2.0', settings={{...}}, faults=[...]): the test's kafka_broker is its own, "
        "with these arguments of kproto_server.Broker",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add what the clients of a test's brokers have sent to the report of its failure."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed and "kproto_server.broker.broker" in sys.modules:
        for broker in _brokers_of(item):
            with suppress(RuntimeError):  # it keeps no requests, or has ended meanwhile
                report.sections.append((f"Kafka requests of {broker!r}", broker.requests.summary()))


def _brokers_of(item: pytest.Item) -> list[Broker]:
    """Return the running brokers among the fixtures of a test, and in its factory's hand."""
    from kproto_server.broker.broker import Broker

    values: list[object] = []
    for value in (getattr(item, "funcargs", None) or {}).values():
        values += value.brokers if isinstance(value, _Factory) else [value]
    brokers = {id(one): one for one in values if isinstance(one, Broker) and one.is_running}
    return list(brokers.values())


@pytest.fixture(scope="session")
def kafka_broker_options() -> BrokerOptions:
    """Return the arguments of `Broker` for the brokers of this pytest session; override it in a conftest."""
    return {}


@pytest.fixture(scope="session")
def _kafka_broker_server(kafka_broker_options: BrokerOptions) -> Iterator[Broker]:
    from kproto_server.broker.broker import Broker

    with Broker.running(**kafka_broker_options) as broker:
        yield broker


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, kafka_broker_options: BrokerOptions) -> Iterator[Broker]:
    """Return a running broker without topics, groups or offsets, at ``kafka_broker.bootstrap_servers``.

    Each test has ports of its own, unless the options have a port: clients that an earlier test left running find no
    broker. A test with ``@pytest.mark.kafka(...)`` has a broker of its own.
    """
    marked = _marked(request.node)
    if marked:
        with _running(kafka_broker_options, marked) as own:
            yield own
        return
    shared: Broker = request.getfixturevalue("_kafka_broker_server")
    shared.reset(new_ports=not kafka_broker_options.get("port"))
    yield shared


@pytest.fixture(scope="module")
def kafka_broker_module(request: pytest.FixtureRequest, kafka_broker_options: BrokerOptions) -> Iterator[Broker]:
    """Return a running broker of the module: its tests share topics, groups and offsets."""
    with _running(kafka_broker_options, _marked(request.node)) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_broker_session(kafka_broker_options: BrokerOptions) -> Iterator[Broker]:
    """Return a running broker of the pytest session: all tests share topics, groups and offsets."""
    with _running(kafka_broker_options, {}) as broker:
        yield broker


@pytest.fixture
def kafka_broker_factory(kafka_broker_options: BrokerOptions) -> Iterator[BrokerFactory]:
    """Return a function that starts another broker, with arguments of `Broker`; it is stopped after the test."""
    with ExitStack() as stack:
        yield _Factory(stack, kafka_broker_options)


class _Factory:
    """Starts brokers, which the stack stops."""

    def __init__(self, stack: ExitStack, base: Mapping[str, Any]) -> None:
        self._stack = stack
        self._base = base
        self.brokers: list[Broker] = []

    def __call__(self, **options: Unpack[BrokerOptions]) -> Broker:
        """Start a broker and return it."""
        from kproto_server.broker.broker import Broker

        broker = self._stack.enter_context(Broker.running(**_with(self._base, options)))
        self.brokers.append(broker)
        return broker


@contextmanager
def _running(base: Mapping[str, Any], marked: Mapping[str, Any]) -> Iterator[Broker]:
    """Run a broker with the options of the session and those of marks; a wrong mark fails the test in one line."""
    from kproto_server.broker.broker import Broker

    problem = ""
    try:
        broker = Broker(**_with(base, marked))
    except ValueError as error:
        if not marked:
            raise
        problem = "; ".join(str(error).splitlines())
    if problem:  # outside of the handler, which pytest would show
        pytest.fail(f"@pytest.mark.{MARK}: {problem}", pytrace=False)
    with broker:
        yield broker


def _with(base: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in base.items() if name not in NOT_INHERITED} | dict(options)


def _marked(node: Any) -> dict[str, Any]:
    """Return the arguments of the marks of a test or module; the nearest mark with an argument counts."""
    found: dict[str, Any] = {}
    for mark in node.iter_markers(MARK):
        if mark.args:
            pytest.fail(f"@pytest.mark.{MARK}: arguments have names: brokers=3, not {mark.args[0]!r}", pytrace=False)
        found = dict(mark.kwargs) | found
    if found:
        _check_names(found)
    return found


def _check_names(found: Mapping[str, Any]) -> None:
    from difflib import get_close_matches

    from kproto_server.broker.broker import BrokerOptions

    known = sorted(BrokerOptions.__annotations__)
    for name in found:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            pytest.fail(f"@pytest.mark.{MARK} has no argument {name!r}: {hint}", pytrace=False)
