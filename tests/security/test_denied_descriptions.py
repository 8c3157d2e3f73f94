"""Descriptions of groups with topics that the client may not see, as 4.0.2, 4.1.2, 4.2.2 and 4.4.0 give them."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k30_create_acls import AclCreation, CreateAclsRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, TopicInfo, Topology
from kproto.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kproto_server.authorization import group_checks
from kproto_server.authorization.checks import Asked
from kproto_server.deferred import at_once
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.security.acls import Operation, PatternType, Permission, ResourceType
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
OF_MEMBERS = "The group has described topic(s) that the client is not authorized to describe."
OF_TOPOLOGY = "The described group uses topics that the client is not authorized to describe."
NO_OPERATIONS = -(2**31)


class Clients:
    """A broker with the topics "open" and "secret", and a client that may soon not see the second any more."""

    def __init__(self, kafka_version: str = "4.4") -> None:
        topics = {"open": 1, "secret": 1}
        self.broker = InMemoryBroker(kafka_version=kafka_version, settings=SETTINGS, topics=topics)
        for name in (OFFSETS_TOPIC, SHARE_STATE_TOPIC):
            self.broker.state.cluster.ensure_internal_topic(name, self.broker.clock.now_ms())
        self.client: ConnectedPair = self.broker.connect()
        self.client.connection.info.principal = "User:alice"

    def ask(self, request: Any, version: int) -> Any:
        response: Any = self.client.ask(request, version)
        self.broker.advance(milliseconds=1000)
        return response

    def join_consumer_group(self, group_id: str, **subscription: Any) -> None:
        """Join, and send heartbeats until the member has what it was assigned."""
        epoch = 0
        for _ in range(3):
            request = ConsumerGroupHeartbeatRequest(
                group_id=group_id,
                member_id=MEMBER,
                member_epoch=epoch,
                rebalance_timeout_ms=-1 if epoch else 60_000,
                topic_partitions=None if epoch else (),
                **({} if epoch else subscription),
            )
            response = self.ask(request, 1)
            assert response.error_code == 0
            epoch = response.member_epoch

    def join_streams_group(self, group_id: str, **topics: Any) -> None:
        subtopology = Subtopology(
            **{
                "subtopology_id": "0",
                "source_topics": ("open",),
                "source_topic_regex": (),
                "state_changelog_topics": (),
                "repartition_sink_topics": (),
                "repartition_source_topics": (),
                "copartition_groups": (),
                **topics,
            }
        )
        request = StreamsGroupHeartbeatRequest(
            group_id=group_id,
            member_id=MEMBER,
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            topology=Topology(epoch=0, subtopologies=(subtopology,)),
            active_tasks=(),
            standby_tasks=(),
            warmup_tasks=(),
            process_id="p",
            client_tags=(),
            endpoint_information_epoch=0,
        )
        assert self.ask(request, 0).error_code == 0

    def hide(self, *topics: str) -> None:
        creations = [
            AclCreation(
                resource_type=ResourceType.TOPIC,
                resource_name=topic,
                resource_pattern_type=PatternType.LITERAL,
                principal="User:alice",
                host="*",
                operation=Operation.DESCRIBE,
                permission_type=Permission.DENY,
            )
            for topic in topics
        ]
        response = self.ask(CreateAclsRequest(creations=tuple(creations)), 3)
        assert not any(one.error_code for one in response.results)

    def described(self, request: Any, version: int) -> dict[str, tuple[int, str | None, bool]]:
        """Return error code, error message and whether there are members, by group."""
        found = {}
        for group in self.ask(request, version).groups:
            found[group.group_id] = (group.error_code, group.error_message, bool(group.members))
            assert (group.authorized_operations == NO_OPERATIONS) == bool(group.error_code)
        return found


@pytest.mark.parametrize("kafka_version", ["4.0", "4.1", "4.2", "4.4"])
def test_assigned_topics_of_consumer_groups(kafka_version: str) -> None:
    """A subscription alone does not hide a group."""
    clients = Clients(kafka_version)
    clients.join_consumer_group("open", subscribed_topic_names=("open",))
    clients.join_consumer_group("both", subscribed_topic_names=("open", "secret"))
    clients.join_consumer_group("regex", subscribed_topic_regex="sec.*")
    clients.join_consumer_group("absent", subscribed_topic_names=("open", "ghost"))
    clients.hide("secret", "ghost")
    group_ids = ("both", "open", "regex", "both", "absent")
    request = ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=True)
    assert sorted(group.group_id for group in clients.ask(request, 1).groups) == sorted(group_ids)
    assert clients.described(request, 1) == {
        "both": (DENIED, OF_MEMBERS, False),
        "open": (0, None, True),
        "regex": (DENIED, OF_MEMBERS, False),
        "absent": (0, None, True),
    }


def test_assigned_topics_of_share_groups() -> None:
    clients = Clients()
    for group_id, topics in {"open": ("open",), "both": ("open", "secret"), "absent": ("open", "ghost")}.items():
        epoch = 0
        for _ in range(3):
            request = ShareGroupHeartbeatRequest(
                group_id=group_id,
                member_id=MEMBER,
                member_epoch=epoch,
                rack_id=None,
                subscribed_topic_names=None if epoch else topics,
            )
            epoch = clients.ask(request, 1).member_epoch
    clients.hide("secret", "ghost")
    describe = ShareGroupDescribeRequest(group_ids=("open", "both", "absent"), include_authorized_operations=True)
    assert clients.described(describe, 1) == {
        "open": (0, None, True),
        "both": (DENIED, OF_MEMBERS, False),
        "absent": (0, None, True),
    }


def test_topics_of_topologies() -> None:
    info = TopicInfo(name="secret", partitions=1, replication_factor=1, topic_configs=())
    variants: dict[str, dict[str, Any]] = {
        "source": {"source_topics": ("secret",)},
        "sink": {"repartition_sink_topics": ("secret",)},
        "repartition": {"repartition_source_topics": (info,)},
        "changelog": {"state_changelog_topics": (info.replace(partitions=0),)},
        "absent": {"source_topics": ("ghost",)},
        "open": {},
    }
    clients = Clients()
    for group_id, topics in variants.items():
        clients.join_streams_group(group_id, **topics)
    clients.hide("secret", "ghost")
    request = StreamsGroupDescribeRequest(group_ids=(*variants, "none"), include_authorized_operations=True)
    assert clients.described(request, 0) == {
        **dict.fromkeys(variants, (DENIED, OF_TOPOLOGY, False)),
        "open": (0, None, True),
        "none": (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.", False),
    }


def test_errors_of_hidden_groups_are_counted() -> None:
    clients = Clients()
    clients.join_consumer_group("both", subscribed_topic_names=("secret",))
    clients.hide("secret")
    request = ConsumerGroupDescribeRequest(group_ids=("both", "both", "none"), include_authorized_operations=False)
    clients.ask(request, 1)
    [seen] = clients.broker.observations.snapshot().clients
    counts = {row.error_code: row.count for row in seen.errors if row.api_key == request._api_key}
    assert counts == {DENIED: 2, ErrorCode.GROUP_ID_NOT_FOUND: 1}


class SeesOpen:
    """The rights to see the topic "open" alone."""

    def on_topic(self, operation: Operation, name: str) -> bool:
        return name == "open"


def group_of(topics: dict[str, int], epoch: int = 1) -> DescribedGroup:
    """Return the description of a group: topics with the number of members that they are assigned to."""
    members = [
        Member(
            member_id=f"{topic} {number}",
            member_epoch=epoch,
            client_id="",
            client_host="",
            subscribed_topic_names=(),
            assignment=Assignment(topic_partitions=()),
            target_assignment=Assignment(
                topic_partitions=(TopicPartitions(topic_id=bytes(16), topic_name=topic, partitions=(0,)),)
            ),
        )
        for topic, count in topics.items()
        for number in range(count)
    ]
    return DescribedGroup(
        error_code=0,
        group_id="g",
        group_state="Stable",
        group_epoch=epoch,
        assignment_epoch=epoch,
        assignor_name="uniform",
        members=tuple(members),
    )


def test_members_are_looked_at_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group that the request names twice, once; and again if the group has changed before it is encoded."""
    monkeypatch.setattr(group_checks, "SLICE_TOPICS", 20)

    class OfOneRequest:
        api_version = 1
        behavior = KafkaVersion.named().behavior

    class Request:
        include_authorized_operations = False

    context: Any = OfOneRequest()
    rights: Any = SeesOpen()
    asked = Asked(Request(), context, rights)
    group = group_of({"open": 100})
    response = ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=(group, group))
    steps = group_checks._shown_in_slices(asked, group_checks.ASSIGNED_TOPICS, response)
    assert [next(steps) for _ in range(10)] == [None] * 10
    shown = at_once(steps)
    assert shown(group) is group
    assert shown(group_of({"open": 1, "secret": 1}, epoch=2)).error_code == DENIED
    assert shown(group_of({"open": 2}, epoch=2)).error_code == 0
