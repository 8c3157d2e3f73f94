"""Automatic commits of a consumer while its group rebalances.

librdkafka takes the partitions of a commit for lost if it waits behind a JoinGroup that librdkafka has given up, as the
topic has changed since. So nothing is committed then, and `close` revokes the partitions before it waits. A second
member, without a library, keeps the rebalance open until it leaves.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest

from kproto.client import Consumer
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest
from tests.kproto_client.kafka_fixture import KafkaFixture, read, unique_name
from tests.kproto_client.reset_cases import resets
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

STRATEGY = "cooperative-sticky"
JOIN_VERSION, LEAVE_VERSION = 3, 2
LEAVES_AFTER_S = 5.0
"""If the consumer does not revoke its partitions before."""
MEMBERS: dict[str, tuple[type[confluent_kafka.Consumer], dict[str, Any]]] = {
    "confluent": (confluent_kafka.Consumer, {}),
    "safe_latest": (Consumer, resets("safe_latest", "latest")),
    "parallel": (Consumer, {"enable_parallel_rebalance": True}),
}


class Lines(logging.Handler):
    """librdkafka's log."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n"


class Member:
    """A consumer whose log and callbacks are noted."""

    def __init__(self, kafka: KafkaFixture, kind: str, topic: str, group: str, interval_ms: int) -> None:
        self.calls: list[str] = []
        self.lines, logger = Lines(), logging.Logger("librdkafka", logging.DEBUG)
        logger.addHandler(self.lines)
        consumer_class, settings = MEMBERS[kind]
        own = {"partition_assignment_strategy": STRATEGY, "session_timeout_ms": 60_000}
        config = kafka.config(group, **settings, **own, auto_commit_interval_ms=interval_ms)
        self.consumer = consumer_class({**config, "debug": "cgrp"}, logger=logger)
        self.has_revoked = threading.Event()
        self.consumer.subscribe([topic], on_revoke=self._revoked, on_lost=lambda *_: self.calls.append("on_lost"))

    def _revoked(self, *_: object) -> None:
        self.calls.append("on_revoke")
        self.has_revoked.set()

    def poll_until_logged(self, text: str, change: Callable[[], object]) -> None:
        """Poll until a change of the group lets librdkafka log a text."""
        count = self.lines.text.count(text)
        change()

        def logged() -> bool:
            self.consumer.poll(0.01)
            return self.lines.text.count(text) > count

        wait_until(logged, text)

    @contextmanager
    def giving_up_its_join(self, kafka: KafkaFixture, topic: str, group: str) -> Iterator[Callable[[], object]]:
        """Let librdkafka give a JoinGroup up; the block gets a function that ends the rebalance."""
        with RawClient(kafka.bootstrap) as other:
            ids: list[str] = []
            self.poll_until_logged("SyncGroup response", lambda: ids.append(join(other, topic, group)))
            self.poll_until_logged("-> wait-join", lambda: kafka.expand(topic, 2))
            self.poll_until_logged("wait-join -> init", lambda: kafka.expand(topic, 3))

            def leave() -> None:
                self.calls.append("the other member leaves")
                other.ask(LeaveGroupRequest(group_id=group, member_id=ids[0]), LEAVE_VERSION)

            yield leave


def join(client: RawClient, topic: str, group: str) -> str:
    """Join the group; return the member id once the consumer has joined it again."""
    # Version 1, with empty user data and no owned partitions: without user data librdkafka crashes.
    subscription = struct.pack(">hih", 1, 1, len(topic)) + topic.encode() + struct.pack(">ii", 0, 0)
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name=STRATEGY, metadata=subscription),),
    )
    return str(client.ask(request, JOIN_VERSION).member_id)


@pytest.mark.parametrize("kind", MEMBERS)
def test_close_revokes_partitions_before_it_waits_for_a_commit(kafka: KafkaFixture, kind: str) -> None:
    topic, group = kafka.topic(), unique_name("group")
    kafka.write(topic, 5)
    kafka.commit(group, topic, 0)
    member = Member(kafka, kind, topic, group, interval_ms=60_000)
    assert read(member.consumer, 1) == [0]
    with member.giving_up_its_join(kafka, topic, group) as leave:

        def leave_after_it() -> None:
            member.has_revoked.wait(LEAVES_AFTER_S)
            leave()

        thread = threading.Thread(target=leave_after_it)
        thread.start()
        member.consumer.close()
        thread.join()
    assert member.calls == ["on_revoke", "the other member leaves"]


@pytest.mark.parametrize("kind", MEMBERS)
def test_nothing_is_committed_while_a_join_is_given_up(kafka: KafkaFixture, kind: str) -> None:
    topic, group = kafka.topic(), unique_name("group")
    kafka.write(topic, 5)
    kafka.commit(group, topic, 0)
    member = Member(kafka, kind, topic, group, interval_ms=100)
    read(member.consumer, 5)
    with member.giving_up_its_join(kafka, topic, group) as leave:
        kafka.write(topic, 5)
        assert read(member.consumer, 5, partition=0) == list(range(5, 10))
        intervals_end = time.monotonic() + 1.0
        while time.monotonic() < intervals_end:
            member.consumer.poll(0.05)
        member.poll_until_logged("-> steady", leave)
    wait_until(lambda: polled(member) and kafka.committed(group, topic) == 10, "the commit after the rebalance")
    member.consumer.close()
    assert "on_lost" not in member.calls
    assert kafka.committed_with_metadata(group, topic).leader_epoch == 0


def polled(member: Member) -> bool:
    member.consumer.poll(0.05)
    return True
