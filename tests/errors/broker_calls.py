"""A call for each error that the docstrings of the broker name: module -> (function, error, call)."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import anyio

from kproto.errors import LogError, ProtocolError, UsageError
from kproto_server import Broker
from kproto_server.broker.acls import AclDescription, creation_of
from kproto_server.broker.own_requests import RequestRefused
from kproto_server.clock import Clock, ClockMode
from kproto_server.configuration.authorizers import STANDARD
from kproto_server.configuration.settings import SettingError, Settings, connection_overrides
from kproto_server.network.listening import CannotListen
from kproto_server.observation.logged import LoggedRequest, NotKept
from kproto_server.releases.kafka_version import KafkaVersion, UnknownKafkaVersion
from tests.control.client import commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.broker.broker import BrokerOptions
    from kproto_server.network.server import Server
    from kproto_server.snapshots.snapshot import BrokerSnapshot


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
    failing._running_thread()._post(fail)
    failing.stop()


def add_an_acl_that_is_refused(_: Broker) -> None:
    with Broker.running(settings={"authorizer.class.name": STANDARD}) as broker:
        broker.acls.add("alice", "READ", "TOPIC", "orders")


def start_with_a_seed_that_is_refused(_: Broker) -> None:
    seed = {"topics": {"orders": {"records": ["x" * 2000]}}}
    Broker(seed=seed, settings={"message.max.bytes": 1000}).start()


def snapshot_of(**options: Unpack[BrokerOptions]) -> BrokerSnapshot:
    with Broker.running(**options) as broker:
        commit(broker)
        return broker.snapshot()


def snapshot_while_groups_are_loaded(_: Broker) -> None:
    with Broker.running() as broker:
        broker.run(lambda server: server.state.coordinator.unavailable.update({0: 14}))
        broker.snapshot()


def restore_on_a_failed_disk(_: Broker) -> None:
    snapshot = snapshot_of()
    with tempfile.TemporaryDirectory() as folder, Broker.running(data=folder) as broker:

        def fail(server: Server) -> None:
            assert server._persistence is not None
            server._persistence.log_dir.writer.failure = "a sync has failed"

        broker.run(fail)
        broker.restore(snapshot)


def reset_on_a_failed_disk(_: Broker) -> None:
    with tempfile.TemporaryDirectory() as folder, Broker.running(data=folder) as broker:
        commit(broker)
        (Path(folder) / "kproto.recovery").unlink(missing_ok=True)
        (Path(folder) / "kproto.recovery").mkdir()
        broker.reset()


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
        ("Broker.start", UsageError, start_with_a_seed_that_is_refused),
        ("Broker.stop", RuntimeError, stop_after_a_failure),
        ("Broker.servers_of", UsageError, lambda broker: broker.servers_of("OUTSIDE")),
        ("Broker.client_settings", UsageError, lambda broker: broker.client_settings("java", listener="OUTSIDE")),
        ("Broker.tls", RuntimeError, lambda broker: broker.tls),
    ),
    "kproto_server.broker.controls": (
        ("BrokerControls.client_settings", UsageError, lambda broker: broker.client_settings("cobol")),
        ("BrokerControls.snapshot", UsageError, snapshot_while_groups_are_loaded),
        ("BrokerControls.restore", UsageError, lambda broker: broker.restore(snapshot_of(kafka_version="2.0"))),
        ("BrokerControls.restore", LogError, restore_on_a_failed_disk),
        ("BrokerControls.reset", LogError, reset_on_a_failed_disk),
        ("BrokerControls.stop_node", UsageError, lambda broker: broker.stop_node(2)),
        ("BrokerControls.start_node", UsageError, lambda broker: broker.start_node(2)),
    ),
    "kproto_server.broker.cluster": (
        ("BrokerCluster.move_leader", UsageError, lambda broker: broker.cluster.move_leader("t", 0)),
        ("BrokerCluster.move_coordinator", UsageError, lambda broker: broker.cluster.move_coordinator(group="g")),
        ("BrokerCluster.crash", UsageError, lambda broker: broker.cluster.crash(2)),
        ("BrokerCluster.disconnect", UsageError, lambda broker: broker.cluster.disconnect(2)),
        ("BrokerCluster.stop_replication", UsageError, lambda broker: broker.cluster.stop_replication(2)),
        ("BrokerCluster.start_replication", UsageError, lambda broker: broker.cluster.start_replication(2)),
        ("BrokerCluster.disk", UsageError, lambda broker: broker.cluster.disk(2, full=True)),
        ("BrokerCluster.network", UsageError, lambda broker: broker.cluster.network(2, refuse=True)),
    ),
    "kproto_server.broker.acls": (
        ("BrokerAcls.describe", UsageError, lambda broker: broker.acls.describe()),
        ("BrokerAcls.add", UsageError, lambda broker: broker.acls.add("User:alice", "READS", "TOPIC")),
        ("BrokerAcls.add", RequestRefused, add_an_acl_that_is_refused),
        ("BrokerAcls.remove", UsageError, lambda broker: broker.acls.remove()),
        ("creation_of", UsageError, lambda broker: creation_of(AclDescription("User:alice", "READ", "TOPICS"))),
    ),
    "kproto_server.broker.client_metrics": (
        ("BrokerClientMetrics.subscribe", RequestRefused, lambda broker: broker.client_metrics.subscribe("")),
        ("BrokerClientMetrics.unsubscribe", RequestRefused, lambda broker: broker.client_metrics.unsubscribe("")),
    ),
    "kproto_server.broker.quotas": (
        ("BrokerQuotas.set", RequestRefused, lambda broker: broker.quotas.set(user="alice", producer_byte_rate=1.5)),
    ),
    "kproto_server.broker.faults": (
        (
            "BrokerFault.wait_fired",
            TimeoutError,
            lambda broker: broker.faults.add(close=True).wait_fired(timeout_s=0.0),
        ),
        (
            "BrokerFault.wait_fired_async",
            TimeoutError,
            lambda broker: anyio.run(partial(broker.faults.add(close=True).wait_fired_async, timeout_s=0.0)),
        ),
        ("BrokerFault.wait_fired", UsageError, lambda broker: broker.faults.add(close=True).wait_fired(-1)),
        (
            "BrokerFault.wait_fired_async",
            UsageError,
            lambda broker: anyio.run(partial(broker.faults.add(close=True).wait_fired_async, timeout_s=-1.0)),
        ),
        ("BrokerFaults.add", UsageError, lambda broker: broker.faults.add(api="Metaphor", close=True)),
        ("BrokerFaults.load", UsageError, lambda broker: broker.faults.load("no-such-file.yaml")),
    ),
    "kproto_server.broker.clock": (("BrokerClock.advance", UsageError, lambda broker: broker.clock.advance(days=-1)),),
    "kproto_server.broker.requests": (
        ("BrokerRequests", RuntimeError, requests_of_a_broker_without_log),
        ("BrokerRequests.where", UsageError, lambda broker: broker.requests.where(api="Metaphor")),
        ("BrokerRequests.wait", TimeoutError, lambda broker: broker.requests.wait(timeout_s=0.0)),
        ("BrokerRequests.wait", UsageError, lambda broker: broker.requests.wait(error="NO_SUCH_ERROR")),
        (
            "BrokerRequests.wait_async",
            TimeoutError,
            lambda broker: anyio.run(partial(broker.requests.wait_async, timeout_s=0.0)),
        ),
        (
            "BrokerRequests.wait_async",
            UsageError,
            lambda broker: anyio.run(partial(broker.requests.wait_async, error="NO_SUCH_ERROR")),
        ),
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
        ("connection_overrides", SettingError, lambda _: connection_overrides("10.0.0.1=5")),
        ("Settings.from_mapping", SettingError, lambda _: Settings.from_mapping({"no.such.setting": "1"})),
        ("Settings.with_values", SettingError, lambda _: Settings().with_values({"num.partitions": "none"})),
        ("Settings.with_config_file", SettingError, lambda _: Settings().with_config_file({"num.partitions": "none"})),
        ("Settings.with_assignments", SettingError, lambda _: Settings().with_assignments(["num.partitions"])),
        (
            "Settings.checked",
            SettingError,
            lambda _: (
                Settings()
                .with_values({"group.share.max.size": "1000", "group.share.max.share.sessions": "1"})
                .checked()
            ),
        ),
    ),
    "kproto_server.releases.kafka_version": (
        ("KafkaVersion.named", UnknownKafkaVersion, lambda _: KafkaVersion.named("9.9")),
    ),
}
