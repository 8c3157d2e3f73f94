"""A call for each error that the docstrings of the broker name: module -> (function, error, call)."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from kproto.errors import LogError, ProtocolError, UsageError
from kproto_server import Broker
from kproto_server.clock import Clock, ClockMode
from kproto_server.configuration.settings import SettingError, Settings
from kproto_server.network.listening import CannotListen
from kproto_server.observation.logged import LoggedRequest, NotKept
from kproto_server.releases.kafka_version import KafkaVersion, UnknownKafkaVersion

if TYPE_CHECKING:
    from collections.abc import Callable


def start_on_the_port_of(broker: Broker) -> None:
    Broker(port=int(broker.bootstrap_servers.rpartition(":")[2])).start()


def start_in_a_used_directory(_: Broker) -> None:
    with tempfile.TemporaryDirectory() as folder, Broker.running(data=folder):
        Broker(data=folder).start()


def stop_after_a_failure(_: Broker) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    failing = Broker()
    failing.start()
    failing._post(fail)
    failing.stop()


def requests_of_a_broker_without_log(_: Broker) -> None:
    with Broker.running(requests_kept=0) as broker:
        broker.requests.where()


def logged(*, is_whole: bool = True) -> LoggedRequest:
    """Return a logged Metadata request of a version that does not exist."""
    return LoggedRequest(
        number=1,
        time_ms=0,
        responded_ms=0,
        node_id=1,
        client_id="c",
        client_host="h",
        software_name="",
        software_version="",
        api_key=3,
        api_version=99,
        correlation_id=1,
        frame=b"",
        response_frame=b"",
        is_whole=is_whole,
        has_whole_response=is_whole,
    )


BROKER_CALLS: dict[str, tuple[tuple[str, type[BaseException], Callable[[Broker], object]], ...]] = {
    "kproto_server.broker.broker": (
        ("Broker", ValueError, lambda _: Broker(brokers=0)),
        ("Broker", CannotListen, start_on_the_port_of),
        ("Broker", LogError, start_in_a_used_directory),
        ("Broker", RuntimeError, lambda _: Broker().snapshot()),
        ("Broker.start", RuntimeError, lambda broker: broker.start()),
        ("Broker.start", CannotListen, start_on_the_port_of),
        ("Broker.start", LogError, start_in_a_used_directory),
        ("Broker.stop", RuntimeError, stop_after_a_failure),
        ("Broker.stop_node", UsageError, lambda broker: broker.stop_node(2)),
        ("Broker.start_node", UsageError, lambda broker: broker.start_node(2)),
    ),
    "kproto_server.broker.clock": (("BrokerClock.advance", UsageError, lambda broker: broker.clock.advance(days=-1)),),
    "kproto_server.broker.groups": (
        ("BrokerGroups.wait_stable", TimeoutError, lambda broker: broker.groups.wait_stable("g", timeout_s=0.0)),
    ),
    "kproto_server.broker.requests": (
        ("BrokerRequests", RuntimeError, requests_of_a_broker_without_log),
        ("BrokerRequests.where", UsageError, lambda broker: broker.requests.where(api="Metaphor")),
        ("BrokerRequests.wait", TimeoutError, lambda broker: broker.requests.wait(timeout_s=0.0)),
        ("BrokerRequests.wait", UsageError, lambda broker: broker.requests.wait(error="NO_SUCH_ERROR")),
    ),
    "kproto_server.observation.logged": (
        ("LoggedRequest.request", NotKept, lambda _: logged(is_whole=False).request),
        ("LoggedRequest.request", ProtocolError, lambda _: logged().request),
        ("LoggedRequest.response", NotKept, lambda _: logged(is_whole=False).response),
        ("LoggedRequest.response", ProtocolError, lambda _: logged().response),
    ),
    "kproto_server.clock": (
        ("Clock.advance", UsageError, lambda _: Clock(0.0, 0.0).advance(-1.0)),
        ("ClockMode", UsageError, lambda _: ClockMode(rate=-1.0)),
        ("ClockMode.parse", UsageError, lambda _: ClockMode.parse("sundial")),
    ),
    "kproto_server.configuration.settings": (
        ("Settings.from_mapping", SettingError, lambda _: Settings.from_mapping({"no.such.setting": "1"})),
        ("Settings.with_values", SettingError, lambda _: Settings().with_values({"num.partitions": "none"})),
        ("Settings.with_config_file", SettingError, lambda _: Settings().with_config_file({"num.partitions": "none"})),
        ("Settings.with_assignments", SettingError, lambda _: Settings().with_assignments(["num.partitions"])),
    ),
    "kproto_server.releases.kafka_version": (
        ("KafkaVersion.named", UnknownKafkaVersion, lambda _: KafkaVersion.named("9.9")),
    ),
}
