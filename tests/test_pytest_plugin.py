"""The ``kafka_broker`` fixture as users have it: found through the entry point, in runs of pytest of their own."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping

import pytest

pytest_plugins = ["pytester"]

ASK = '''
    import socket

    def metadata(broker, topic=b""):
        """Ask for a topic, which makes it, or for all; return the names as the answer has them."""
        names = len(topic).to_bytes(2, "big") + topic
        body = bytes.fromhex("0003 0001 00000001 ffff") + (b"\\x00\\x00\\x00\\x01" + names if topic else b"\\xff" * 4)
        host, port = broker.bootstrap_servers.split(",")[0].split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(len(body).to_bytes(4, "big") + body)
            stream = connection.makefile("rb")
            return stream.read(int.from_bytes(stream.read(4), "big"))
'''


def run(pytester: pytest.Pytester, tests: str, *args: str) -> Mapping[str, int]:
    """Run these tests; return how many ended how."""
    pytester.makepyfile(test_it=f"{ASK}\n{tests}")
    result = pytester.runpytest("-p", "no:cacheprovider", *args)
    assert result.ret == 0, result.stdout.str()
    return result.parseoutcomes()


def test_the_entry_point_names_the_plugin() -> None:
    (entry,) = importlib.metadata.entry_points(group="pytest11", name="kproto")
    assert entry.value == "kproto_server.pytest_plugin"


def test_a_test_gets_a_running_broker_without_saying_where_from(pytester: pytest.Pytester) -> None:
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


def test_the_broker_stays_and_what_a_test_made_is_forgotten(pytester: pytest.Pytester) -> None:
    outcomes = run(
        pytester,
        """
    addresses = set()

    def test_first(kafka_broker):
        addresses.add(kafka_broker.bootstrap_servers)
        metadata(kafka_broker, b"orders")
        assert kafka_broker.snapshot().clients
        (asked,) = kafka_broker.requests.where(api="Metadata")
        assert b"orders" in asked.frame

    def test_second(kafka_broker):
        addresses.add(kafka_broker.bootstrap_servers)
        assert not kafka_broker.snapshot().clients
        assert len(kafka_broker.requests) == 0
        assert b"orders" not in metadata(kafka_broker)

    def test_third(kafka_broker):
        assert addresses == {kafka_broker.bootstrap_servers}
    """,
    )
    assert outcomes == {"passed": 3}


def test_options_are_overridden_in_a_conftest(pytester: pytest.Pytester) -> None:
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


def test_a_run_that_does_not_ask_for_it_starts_nothing(pytester: pytest.Pytester) -> None:
    """pytest reads every plugin there is at each start: ours must cost nothing. In a new process, where nobody did."""
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


def test_each_process_of_xdist_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
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


def test_its_fixtures_are_listed_with_what_they_are(pytester: pytest.Pytester) -> None:
    listed = pytester.runpytest("--fixtures", "-p", "no:cacheprovider").stdout
    listed.fnmatch_lines(
        ["kafka_broker_options*", "*Return the arguments of `Broker`*", "kafka_broker*", "*a running broker*"]
    )
