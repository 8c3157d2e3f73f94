"""The ``kafka_broker`` fixture works for users: pytest finds it through the entry point.

Method. Each test runs pytest on a test file of its own.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

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
        assert kafka_broker.observations.snapshot().clients
        (logged,) = kafka_broker.requests.where(api="Metadata")
        assert b"orders" in logged.frame

    def test_second(kafka_broker):
        addresses.add(kafka_broker.bootstrap_servers)
        assert not kafka_broker.observations.snapshot().clients
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


# The mark.


def test_a_mark_gives_a_test_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    outcomes = run(
        pytester,
        """
    import pytest

    pytestmark = pytest.mark.kafka(settings={"num.partitions": 2}, brokers=2)

    @pytest.mark.kafka(brokers=3, kafka_version="2.0", faults=[{"api": "Metadata", "delay_ms": 1}])
    def test_nearest_mark_counts(kafka_broker):
        assert kafka_broker.bootstrap_servers.count(",") == 2
        assert kafka_broker.kafka_version.name == "2.0"
        assert kafka_broker.settings.int("num.partitions") == 2
        assert len(kafka_broker.faults) == 1

    def test_mark_of_the_module(kafka_broker, kafka_broker_module, kafka_broker_session):
        assert kafka_broker.bootstrap_servers.count(",") == 1
        assert kafka_broker_module.bootstrap_servers.count(",") == 1
        assert "," not in kafka_broker_session.bootstrap_servers
    """,
    )
    assert outcomes == {"passed": 2}


def test_marked_brokers_have_neither_the_port_nor_the_directory_of_the_session(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def kafka_broker_options():
            return {{"port": {free_port()}, "data": {str(tmp_path / "data")!r}, "kafka_version": "2.0"}}
        """
    )
    outcomes = run(
        pytester,
        """
    import pytest

    def test_first(kafka_broker):
        metadata(kafka_broker, b"orders")

    @pytest.mark.kafka(clock="manual")
    def test_second(kafka_broker, kafka_broker_module, kafka_broker_session, kafka_broker_factory):
        for broker in (kafka_broker, kafka_broker_module, kafka_broker_session, kafka_broker_factory(clock="auto")):
            assert broker.kafka_version.name == "2.0"
            assert b"orders" not in metadata(broker)
    """,
    )
    assert outcomes == {"passed": 2}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("broker=3", "@pytest.mark.kafka has no argument 'broker': did you mean brokers?"),
        ("xyz=3", "@pytest.mark.kafka has no argument 'xyz': there are brokers, clock, "),
        ("3", "@pytest.mark.kafka: arguments have names: brokers=3, not 3"),
        ("brokers=0", "@pytest.mark.kafka: a broker has at least one node, not 0"),
        ("kafka_version='1.x'", "@pytest.mark.kafka: "),
        ("settings={'a': 1, 'b': 2}", "@pytest.mark.kafka: "),
        (
            "faults=[{'api': 'Nothing', 'close': True}]",
            "@pytest.mark.kafka: fault rule 1: there is no API 'Nothing': use ",
        ),
    ],
)
def test_a_wrong_mark_fails_the_test_in_one_line(pytester: pytest.Pytester, arguments: str, line: str) -> None:
    pytester.makepyfile(
        f"""
    import pytest

    @pytest.mark.kafka({arguments})
    def test_it(kafka_broker):
        pass
    """
    )
    result = pytester.runpytest("-p", "no:cacheprovider")
    assert result.parseoutcomes() == {"errors": 1}
    (found,) = [one for one in result.outlines if one.startswith("@pytest.mark.kafka")]
    assert found.startswith(line)
    assert "Traceback" not in result.stdout.str()


# Fixtures of other scopes.


def test_brokers_of_module_and_session_keep_their_content(pytester: pytest.Pytester) -> None:
    tests = """
    def test_first(kafka_broker_module, kafka_broker_session):
        metadata(kafka_broker_module, b"orders")
        metadata(kafka_broker_session, b"invoices")

    def test_second(kafka_broker_module, kafka_broker_session):
        assert b"orders" in metadata(kafka_broker_module)
        assert b"invoices" in metadata(kafka_broker_session)
        assert kafka_broker_module is not kafka_broker_session
    """
    pytester.makepyfile(
        test_other=f"""{PRELUDE}
    def test_third(kafka_broker_module, kafka_broker_session):
        assert b"orders" not in metadata(kafka_broker_module)
        assert b"invoices" in metadata(kafka_broker_session)
    """
    )
    assert run(pytester, tests, "test_it.py", "test_other.py") == {"passed": 3}


def test_the_factory_stops_its_brokers_after_the_test(pytester: pytest.Pytester) -> None:
    outcomes = run(
        pytester,
        """
    made = []

    def test_first(kafka_broker_factory):
        made.append(kafka_broker_factory())
        made.append(kafka_broker_factory(brokers=3))
        metadata(made[0], b"orders")
        assert b"orders" not in metadata(made[1])

    def test_second():
        assert not any(one.is_running for one in made)
    """,
    )
    assert outcomes == {"passed": 2}


# What a failing test shows.


def failing(pytester: pytest.Pytester, tests: str) -> str:
    """Run tests of which one fails, and return the output."""
    pytester.makepyfile(test_it=f"{PRELUDE}\n{tests}")
    result = pytester.runpytest("-p", "no:cacheprovider")
    assert result.parseoutcomes() == {"failed": 1}
    return result.stdout.str()


def test_a_failing_test_shows_the_requests_those_with_errors_first(pytester: pytest.Pytester) -> None:
    shown = failing(
        pytester,
        """
    def test_it(kafka_broker):
        with kafka_broker.faults.add(api="Metadata", error="UNKNOWN_TOPIC_OR_PARTITION", times=1):
            metadata(kafka_broker, b"orders")
        metadata(kafka_broker)
        assert False
    """,
    )
    title, _, rest = shown.partition("- Kafka requests of <Broker at 127.0.0.1:")[2].partition(">")
    assert title.endswith(", 1 node, 1 topic with 0 records, 0 groups, 2 requests")
    with_errors, _, others = rest.partition("The newest other requests:\n")
    assert "The newest requests with errors:\n1. Metadata v1 of '' at node 1, -" in with_errors
    assert ": UNKNOWN_TOPIC_OR_PARTITION\n   MetadataRequest(" in with_errors
    assert "name='orders'" in with_errors
    assert "\n   MetadataResponse(" in with_errors
    assert others.startswith("2. Metadata v1 of '' at node 1, 0.000 s: no error\n   MetadataRequest(")


def test_so_do_the_brokers_of_other_fixtures(pytester: pytest.Pytester) -> None:
    shown = failing(
        pytester,
        """
    import pytest, unittest
    from kproto_server import Broker

    @pytest.fixture
    def mine():
        with Broker.running(kafka_version="2.0") as broker:
            yield broker

    @pytest.fixture
    def same(mine):
        return mine

    @pytest.fixture
    def silent():
        with Broker.running(requests_kept=0) as broker:
            yield broker

    def test_it(same, silent, kafka_broker_factory):
        metadata(same, b"orders")
        kafka_broker_factory(brokers=3)
        assert False
    """,
    )
    assert shown.count("Kafka requests of") == 2
    assert shown.count("name='orders'") >= 1
    assert ", 3 nodes, 0 topics with 0 records, 0 groups, 0 requests>" in shown
    assert "no client has sent a request" in shown


def test_a_class_of_unittest_shows_them_too(pytester: pytest.Pytester) -> None:
    shown = failing(
        pytester,
        """
    import pytest, unittest

    class TestIt(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def use(self, kafka_broker):
            self.broker = kafka_broker

        def test_it(self):
            metadata(self.broker, b"orders")
            self.fail()
    """,
    )
    assert "The newest requests with errors:\n1. Metadata v1" in shown
