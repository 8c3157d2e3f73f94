"""Subscriptions by regular expressions (KIP-848) find the topics that the client may describe."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kproto_server.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "offsets.topic.num.partitions": "3",
}


def acl(resource_type: ResourceType, name: str) -> Acl:
    return Acl(resource_type, name, PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW)


class Member:
    """A member of the group "g" that subscribes to all topics."""

    def __init__(self, broker: InMemoryBroker, user: str) -> None:
        self._broker = broker
        self._user = user
        self._client: ConnectedPair = broker.connect(user)
        self._client.connection.info.principal = f"User:{user}"
        self._epoch = 0
        self._owned: tuple[TopicPartitions, ...] = ()

    def beat(self) -> None:
        has_joined = self._epoch > 0
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self._user,
            member_epoch=self._epoch,
            rebalance_timeout_ms=-1 if has_joined else 10_000,
            subscribed_topic_regex=None if has_joined else ".*",
            topic_partitions=self._owned,
        )
        response: Any = self._client.ask(request, 1)
        assert response.error_code == 0
        self._epoch = response.member_epoch
        if response.assignment is not None:
            self._owned = response.assignment.topic_partitions
        self._broker.advance(milliseconds=1001)

    @property
    def topics(self) -> set[str]:
        found = [self._broker.state.cluster.topic_by_id(one.topic_id) for one in self._owned]
        return {topic.name for topic in found if topic is not None}


def broker_with_acls(kafka_version: str) -> InMemoryBroker:
    broker = InMemoryBroker(settings=SETTINGS, topics={"open": 1, "other": 1, "secret": 1}, kafka_version=kafka_version)
    cluster = broker.state.cluster
    cluster.ensure_offsets_topic(broker.clock.now_ms())
    cluster.change_acls(
        [acl(ResourceType.GROUP, "g"), acl(ResourceType.TOPIC, "open"), acl(ResourceType.TOPIC, "other")]
    )
    return broker


@pytest.mark.parametrize("kafka_version", ["4.0", "4.4"])
def test_the_sender_that_has_an_expression_matched_decides_what_it_finds(kafka_version: str) -> None:
    """As 4.4.0: until the next match, which another member may begin, even a super user gets what alice may see."""
    broker = broker_with_acls(kafka_version)
    alice, admin = Member(broker, "alice"), Member(broker, "admin")
    for _ in range(4):
        alice.beat()
    assert alice.topics == {"open", "other"}
    for _ in range(3):
        admin.beat()
        alice.beat()
    assert alice.topics | admin.topics == {"open", "other"}
    broker.advance(milliseconds=10_000)
    broker.state.cluster.create_topic("new", partition_count=1, replication_factor=1)
    for _ in range(4):
        admin.beat()
        alice.beat()
    assert alice.topics | admin.topics == {"__consumer_offsets", "new", "open", "other", "secret"}


def test_4_0_0_finds_topics_that_alice_may_not_see() -> None:
    """Measured: it matches expressions without an authorizer."""
    broker = broker_with_acls("4.0.0")
    alice = Member(broker, "alice")
    for _ in range(4):
        alice.beat()
    assert alice.topics == {"__consumer_offsets", "open", "other", "secret"}
