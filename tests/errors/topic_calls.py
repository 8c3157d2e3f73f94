"""A call for each error that the docstrings of `Broker.topics` and `Broker.groups` name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kproto.errors import DecodeError, EncodeError, MissingPackage, UsageError
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto_server.broker import topics
from kproto_server.broker.own_requests import RequestRefused
from kproto_server.log_manager.retention_task import RetentionTask
from tests.errors.library_calls import without_packages
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server import Broker
    from kproto_server.broker.groups import BrokerGroups
    from kproto_server.network.server import Server

    Call = Callable[[Broker], object]

TOO_LARGE = 2**63


def read_what_is_damaged(broker: Broker) -> None:
    def damage(server: Server) -> None:
        batches = server.state.cluster.topics["damaged"].partitions[0].data._batches
        batches[0] = batches[0][:-1] + b"\xff"

    broker.topics.produce("damaged", "v")
    broker.run(damage)
    broker.topics.records("damaged")


def produce_compressed(broker: Broker) -> None:
    without_packages(lambda: broker.topics.produce("t", "v", compression="zstd"))()


def read_compressed(broker: Broker) -> None:
    broker.topics.produce("compressed", "v", compression="zstd")
    without_packages(lambda: broker.topics.records("compressed"))()


def expire_what_stays(broker: Broker) -> None:
    broker.topics.produce("t", "v")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics, "EXPIRE_S", 0.0)
        patch.setattr(RetentionTask, "check_topic", lambda *_: {0: 2**40})
        broker.topics.expire("t")


def set_start_offsets(broker: Broker, partition: int, offset: int) -> None:
    broker.topics.produce("t", "v")
    broker.groups.set_start_offsets("workers", {("t", partition): offset})


def of_group_without_members(call: Callable[[Broker], Callable[[str], object]], broker: Broker) -> None:
    broker.topics.produce("t", "v")
    broker.groups.commit("simple", {("t", 0): 1})
    call(broker)("simple")


def both(name: str, part: Callable[[Broker], Any], *arguments: Any, **wrong: Any) -> list[tuple[str, Any, Call]]:
    """Return the calls of both forms of a wait; ``wrong``: what is no valid argument."""
    method = name.partition(".")[2]

    def blocking(broker: Broker, **given: Any) -> None:
        getattr(part(broker), method)(*arguments, **given)

    def in_event_loop(broker: Broker, **given: Any) -> None:
        anyio.run(partial(getattr(part(broker), f"{method}_async"), *arguments, **given))

    return [
        (name, TimeoutError, partial(blocking, timeout_s=0.0)),
        (name, UsageError, partial(blocking, **wrong)),
        (f"{name}_async", TimeoutError, partial(in_event_loop, timeout_s=0.0)),
        (f"{name}_async", UsageError, partial(in_event_loop, **wrong)),
    ]


def groups_with_a_member(broker: Broker) -> BrokerGroups:
    """Return the groups; ``joining`` has a member."""
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    join = JoinGroupRequest(
        group_id="joining", session_timeout_ms=30_000, member_id="", protocol_type="consumer", protocols=protocols
    )
    broker.faults.clear()
    broker.groups.commit("joining", {})  # creates the topic of the offsets
    with RawClient(broker.bootstrap_servers) as client:
        client.send((join, 0))
        wait_until(lambda: broker.groups.state("joining") not in ("Dead", "Empty"), "the member")
    return broker.groups


def held(broker: Broker) -> BrokerGroups:
    """Return the groups; rebalances of ``held`` are held."""
    broker.groups.hold_rebalance("held")
    return broker.groups


TOPIC_CALLS: dict[str, tuple[tuple[str, type[BaseException], Call], ...]] = {
    "kproto_server.broker.topics": (
        ("BrokerTopics.describe", RequestRefused, lambda broker: broker.topics.describe("missing")),
        ("BrokerTopics.create", RequestRefused, lambda broker: broker.topics.create("a/b")),
        ("BrokerTopics.create", UsageError, lambda broker: broker.topics.create("a", partitions=-1)),
        ("BrokerTopics.delete", RequestRefused, lambda broker: broker.topics.delete("missing")),
        ("BrokerTopics.produce", RequestRefused, lambda broker: broker.topics.produce("a/b", "v")),
        ("BrokerTopics.produce", EncodeError, lambda broker: broker.topics.produce("t", "v", timestamp_ms=TOO_LARGE)),
        ("BrokerTopics.produce", MissingPackage, produce_compressed),
        ("BrokerTopics.produce", UsageError, lambda broker: broker.topics.produce("t", "v", records=["v"])),
        ("BrokerTopics.records", RequestRefused, lambda broker: broker.topics.records("missing")),
        ("BrokerTopics.records", DecodeError, read_what_is_damaged),
        ("BrokerTopics.records", MissingPackage, read_compressed),
        ("BrokerTopics.records", UsageError, lambda broker: broker.topics.records("t", limit=-1)),
        *both("BrokerTopics.wait_records", lambda broker: broker.topics, "missing", count=-1),
        ("BrokerTopics.delete_records", RequestRefused, lambda broker: broker.topics.delete_records("missing")),
        ("BrokerTopics.delete_records", UsageError, lambda broker: broker.topics.delete_records("t", before_offset=-1)),
        ("BrokerTopics.expire", TimeoutError, expire_what_stays),
        ("BrokerTopics.expire", RequestRefused, lambda broker: broker.topics.expire("missing")),
    ),
    "kproto_server.broker.groups": (
        ("BrokerGroups.commit", RequestRefused, lambda broker: broker.groups.commit("g", {("missing", 0): 1})),
        ("BrokerGroups.commit", UsageError, lambda broker: broker.groups.commit("g", {("missing", 0): -1})),
        ("BrokerGroups.set_start_offsets", RequestRefused, lambda broker: set_start_offsets(broker, 9, 0)),
        ("BrokerGroups.set_start_offsets", UsageError, lambda broker: set_start_offsets(broker, 0, -1)),
        ("BrokerGroups.delete", RequestRefused, lambda broker: broker.groups.delete("missing")),
        *both("BrokerGroups.wait_stable", lambda broker: broker.groups, "g", members=-1),
        *both("BrokerGroups.wait_committed", lambda broker: broker.groups, "g", {("t", 0): 9}, timeout_s=-1.0),
        *both("BrokerGroups.wait_lag", lambda broker: broker.groups, "g", timeout_s=-1.0),
        *both("BrokerGroups.wait_empty", groups_with_a_member, "joining", timeout_s=-1.0),
        *both("BrokerGroups.wait_state", lambda broker: broker.groups, "g", "Stable", timeout_s=-1.0),
        ("BrokerGroups.hold_rebalance", UsageError, lambda broker: broker.groups.hold_rebalance("g", at="x")),  # type: ignore[arg-type]  # the error
        *both("BrokerGroups.wait_held", held, "held", members=-1),
        ("BrokerGroups.force_rebalance", RequestRefused, lambda broker: broker.groups.force_rebalance("missing")),
        (
            "BrokerGroups.force_rebalance",
            UsageError,
            partial(of_group_without_members, lambda broker: broker.groups.force_rebalance),
        ),
        ("BrokerGroups.expire_member", RequestRefused, lambda broker: broker.groups.expire_member("missing")),
        (
            "BrokerGroups.expire_member",
            UsageError,
            partial(of_group_without_members, lambda broker: broker.groups.expire_member),
        ),
        ("BrokerGroups.freeze_heartbeats", RequestRefused, lambda broker: broker.groups.freeze_heartbeats("missing")),
        (
            "BrokerGroups.freeze_heartbeats",
            UsageError,
            partial(of_group_without_members, lambda broker: broker.groups.freeze_heartbeats),
        ),
    ),
}
