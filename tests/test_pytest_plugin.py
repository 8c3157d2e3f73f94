"""The ``kafka_broker`` fixture works for users: pytest finds it through the entry point.

Method. Each test runs pytest on a test file of its own.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping

import pytest

from tests.oracle.ports import free_port

pytest_plugins = ["pytester"]

PRELUDE = '''
    import socket

    def metadata(broker, topic=b""):
        """Request one topic, which creates it, or all topics; return the bytes of the response."""
        names = len(topic).to_bytes(2, "big") + topic
        body = bytes.fromhex("0003 0001 00000001 ffff") + (b"\\x00\\x00\\x00\\x01" + names if topic else b"\\xff" * 4)
        host, port = broker.bootstrap_servers.split(",")[0].split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(len(body).to_bytes(4, "big") + body)
            stream = connection.makefile("rb")
            return stream.read(int.from_bytes(stream.read(4), "big"))
'''


def run(pytester: pytest.Pytester, tests: str, *args: str) -> Mapping[str, int]:
    """Run these tests; return the number of tests for each outcome."""
    pytester.makepyfile(test_it=f"{PRELUDE}\n{tests}")
    result = pytester.runpytest("-p", "no:cacheprovider", *args)
    assert result.ret == 0, result.stdout.str()
    return result.parseoutcomes()


def test_the_entry_point_names_the_plugin() -> None:
    (entry,) = importlib.metadata.entry_points(group="pytest11", name="kproto")
    assert entry.value == "kproto_server.pytest_plugin"


def test_the_fixture_needs_no_import_and_no_configuration(pytester: pytest.Pytester) -> None:
    outcomes = run(
        pytester,
        """
    def test_it(kafka_broker):
        assert b"orders" in metadata(kafka_broker, b"orders")
        assert b"orders" in metadata(kafka_broker)
        kafka_broker.clock.advance(days=8)
    """,
    )
    assert outcomes == {"passed": 1}


def test_all_tests_share_one_broker_that_is_reset_before_each(pytester: pytest.Pytester) -> None:
    outcomes = run(
        pytester,
        """
    addresses = set()

    def test_first(kafka_broker):
        addresses.add(kafka_broker.bootstrap_servers)
        metadata(kafka_broker, b"orders")
        assert kafka_broker.snapshot().clients
        (logged,) = kafka_broker.requests.where(api="Metadata")
        assert b"orders" in logged.frame

    def test_second(kafka_broker):
        addresses.add(kafka_broker.bootstrap_servers)
        assert not kafka_broker.snapshot().clients
        assert len(kafka_broker.requests) == 0
        assert b"orders" not in metadata(kafka_broker)

    def test_third(kafka_broker):
        assert len(addresses) == 2
        assert kafka_broker.bootstrap_servers not in addresses, "each test has a port of its own"
    """,
    )
    assert outcomes == {"passed": 3}


def test_a_broker_with_a_port_keeps_it(pytester: pytest.Pytester) -> None:
    port = free_port()
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_broker_options():
            return {{"port": {port}}}
        """
    )
    outcomes = run(
        pytester,
        f"""
    import pytest

    @pytest.mark.parametrize("number", range(3))
    def test_it(kafka_broker, number):
        assert kafka_broker.bootstrap_servers == "127.0.0.1:{port}"
        metadata(kafka_broker)
    """,
    )
    assert outcomes == {"passed": 3}


def test_the_clock_of_one_test_is_not_that_of_the_next(pytester: pytest.Pytester) -> None:
    outcomes = run(
        pytester,
        """
    import time

    def test_first(kafka_broker):
        kafka_broker.clock.advance(days=8)

    def test_second(kafka_broker):
        assert abs(kafka_broker.clock.now_ms() - time.time() * 1000) < 3_600_000
    """,
    )
    assert outcomes == {"passed": 2}


def test_a_conftest_overrides_the_options(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_broker_options():
            settings = {"num.partitions": 5}
            return {"kafka_version": "2.0", "brokers": 3, "started": 1, "settings": settings, "clock": "manual"}
        """
    )
    outcomes = run(
        pytester,
        """
    def test_it(kafka_broker):
        assert kafka_broker.kafka_version.name == "2.0"
        assert len(kafka_broker.bootstrap_servers.split(",")) == 3
        assert kafka_broker.settings.int("num.partitions") == 5
        before = kafka_broker.clock.now_ms()
        metadata(kafka_broker)
        assert kafka_broker.clock.now_ms() == before
    """,
    )
    assert outcomes == {"passed": 1}


def test_a_run_that_does_not_use_the_fixture_starts_no_broker(pytester: pytest.Pytester) -> None:
    """pytest imports all installed plugins at each start, so this one imports nothing. The run is a new process."""
    pytester.makepyfile(
        """
    import sys, threading

    def test_it():
        ours = {name for name in sys.modules if name.partition(".")[0] in ("kproto", "kproto_server")}
        assert ours == {"kproto_server", "kproto_server.pytest_plugin"}
        assert "kproto-broker" not in {thread.name for thread in threading.enumerate()}
    """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.parseoutcomes() == {"passed": 1}, result.stdout.str()


def test_each_xdist_worker_has_its_own_broker(pytester: pytest.Pytester) -> None:
    outcomes = run(
        pytester,
        """
    import pytest

    @pytest.mark.parametrize("number", range(6))
    def test_it(kafka_broker, number):
        topic = b"orders-%d" % number
        metadata(kafka_broker, topic)
        assert metadata(kafka_broker).count(b"orders-") == 1
    """,
        "-n",
        "2",
    )
    assert outcomes == {"passed": 6}


def test_pytest_lists_the_fixtures_with_their_descriptions(pytester: pytest.Pytester) -> None:
    listed = pytester.runpytest("--fixtures", "-p", "no:cacheprovider").stdout
    listed.fnmatch_lines(
        ["kafka_broker_options*", "*Return the arguments of `Broker`*", "kafka_broker*", "*a running broker*"]
    )
