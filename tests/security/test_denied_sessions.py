"""Sessions of Fetch and ShareFetch keep topics that the client may not read (the responses are those of 4.4.0)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k78_share_fetch import AcknowledgementBatch, ShareFetchRequest
from kproto.messages.k78_share_fetch import FetchPartition as SharePartition
from kproto.messages.k78_share_fetch import FetchTopic as ShareTopic
from kproto.messages.k79_share_acknowledge import AcknowledgementBatch as AcknowledgedBatch
from kproto.messages.k79_share_acknowledge import AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest
from kproto_server.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair
from tests.security.acl_cases import BATCH
from tests.security.test_acls import ALICE, SETTINGS

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
MAX_WAIT_MS = 500
GROUP, GROUP_CONFIGS, SET = "g", 32, 0
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def acl(resource_type: ResourceType, name: str, operation: Operation = Operation.READ) -> Acl:
    return Acl(resource_type, name, PatternType.LITERAL, ALICE, "*", operation, Permission.ALLOW)


ORDERS, SECRET = acl(ResourceType.TOPIC, "orders"), acl(ResourceType.TOPIC, "secret")
READS_GROUP = acl(ResourceType.GROUP, GROUP)


class Alice:
    """A client that may do what the ACLs say, and its broker, which has the topics orders and secret."""

    def __init__(self) -> None:
        self.broker = InMemoryBroker(kafka_version="4.4", settings=SETTINGS, topics={"orders": 1, "secret": 1})
        self.pair: ConnectedPair = self.broker.connect()
        self.pair.connection.info.principal = ALICE
        self.names = {topic.topic_id: name for name, topic in self.broker.state.cluster.topics.items()}
        self.ids = {name: topic_id for topic_id, name in self.names.items()}

    def may(self, *acls: Acl) -> None:
        authorizer = self.broker.state.cluster.authorizer
        assert authorizer is not None
        authorizer.replace(acls)

    def ask(self, request: Any, version: int) -> tuple[Any, bool]:
        """Return the response, and whether it has waited."""
        self.pair.send(request, version)
        waits = bool(self.pair.client.in_flight)
        if waits:
            self.broker.advance(milliseconds=MAX_WAIT_MS)
        return self.pair.responses.pop(), waits

    def as_admin(self, request: Any, version: int) -> Any:
        admin = self.broker.connect()
        admin.connection.info.principal = "User:admin"
        return admin.ask(request, version)


class FetchSession:
    """A session of Fetch."""

    def __init__(self, alice: Alice) -> None:
        self._alice = alice
        self._id = self._epoch = 0

    def fetch(self, *names: str) -> tuple[dict[str, int], bool]:
        """Return the error codes of the topics in the response, and whether it has waited."""
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            replica_id=-1, max_wait_ms=MAX_WAIT_MS, min_bytes=1, session_id=self._id, session_epoch=self._epoch,
            topics=tuple(FetchTopic(topic=name, partitions=(partition,)) for name in names), forgotten_topics_data=(),
        )  # fmt: skip
        response, waits = self._alice.ask(request, 12)
        assert not response.error_code
        self._id, self._epoch = response.session_id, self._epoch + 1
        return {topic.topic: topic.partitions[0].error_code for topic in response.responses}, waits


def test_a_fetch_waits_unless_all_topics_of_its_session_are_denied() -> None:
    alice = Alice()
    session = FetchSession(alice)
    both = {"orders": DENIED, "secret": DENIED}
    assert session.fetch("orders", "secret") == (both, False)
    assert session.fetch() == (both, False)
    assert session.fetch("orders") == (both, False)
    alice.may(ORDERS)
    assert session.fetch() == ({"orders": 0, "secret": DENIED}, True)
    assert session.fetch() == ({"secret": DENIED}, True)
    assert session.fetch("secret") == ({"secret": DENIED}, True)
    alice.may()
    assert session.fetch() == (both, False)


def fetched(alice: Alice, *names: str, version: int = 12, **values: Any) -> tuple[dict[str, tuple[int, bool]], bool]:
    """Return of each topic in the response the error code, and whether it has records, and whether it has waited."""
    partition = FetchPartition(partition=0, fetch_offset=values.pop("fetch_offset", 0), partition_max_bytes=1000)
    given = {"topic_id": alice.ids} if version >= 13 else {}
    topics = tuple(
        FetchTopic(topic=name, partitions=(partition,), **{field: ids[name] for field, ids in given.items()})
        for name in names
    )
    request = FetchRequest(
        replica_id=-1, max_wait_ms=MAX_WAIT_MS, min_bytes=1, topics=topics, forgotten_topics_data=(), **values
    )
    response, waits = alice.ask(request, version)
    assert not response.error_code
    return {
        topic.topic or alice.names[topic.topic_id]: (one.error_code, bool(one.records))
        for topic in response.responses
        for one in topic.partitions
    }, waits


@pytest.mark.parametrize("version", [4, 12, 17])
def test_the_records_of_denied_topics_use_up_no_limit_and_end_no_wait(version: int) -> None:
    alice = Alice()
    alice.may(ORDERS)
    data = TopicProduceData(name="secret", partition_data=(PartitionProduceData(index=0, records=BATCH),))
    produce = ProduceRequest(transactional_id=None, acks=1, timeout_ms=1000, topic_data=(data,))
    alice.as_admin(produce, 9)
    both = "secret", "orders"
    denied = {"secret": (DENIED, False)}
    assert fetched(alice, *both, version=version) == ({**denied, "orders": (0, False)}, True)
    assert fetched(alice, *both, version=version, fetch_offset=9) == ({**denied, "orders": (1, False)}, False)
    alice.as_admin(produce.replace(topic_data=(data.replace(name="orders"),)), 9)
    assert fetched(alice, *both, version=version, max_bytes=1) == ({**denied, "orders": (0, True)}, False)
    assert fetched(alice, "secret", version=version) == (denied, False)


class ShareSession:
    """A session of ShareFetch, whose member has joined."""

    def __init__(self, alice: Alice) -> None:
        self._alice = alice
        self._epoch = 0
        assert alice.broker.state.cluster.ensure_offsets_topic(alice.broker.clock.now_ms())
        earliest = AlterableConfig(name="share.auto.offset.reset", config_operation=SET, value="earliest")
        resource = AlterConfigsResource(resource_type=GROUP_CONFIGS, resource_name=GROUP, configs=(earliest,))
        alice.as_admin(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
        data = tuple(
            TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=BATCH),))
            for name in ("orders", "secret")
        )
        alice.as_admin(ProduceRequest(transactional_id=None, acks=1, timeout_ms=1000, topic_data=data), 9)
        join = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=MEMBER, member_epoch=0, subscribed_topic_names=("orders", "secret")
        )
        assert not alice.as_admin(join, 1).error_code

    def fetch(
        self, *names: str, acknowledges: tuple[str, ...] = (), epoch: int | None = None
    ) -> tuple[dict[str, Any], bool]:
        """Return error codes of fetch and acknowledgement and the number of acquired batches by topic, and whether the
        response has waited."""
        batch = (AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(1,)),)
        topics = tuple(
            ShareTopic(
                topic_id=self._alice.ids[name],
                partitions=(
                    SharePartition(partition_index=0, acknowledgement_batches=batch if name in acknowledges else ()),
                ),
            )
            for name in dict.fromkeys((*names, *acknowledges))
        )
        request = ShareFetchRequest(
            group_id=GROUP, member_id=MEMBER, share_session_epoch=self._epoch if epoch is None else epoch,
            max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=1000, max_records=10, batch_size=10, topics=topics,
            forgotten_topics_data=(),
        )  # fmt: skip
        response, waits = self._alice.ask(request, 1)
        assert not response.error_code
        self._epoch += 1
        return {
            self._alice.names[topic.topic_id]: (one.error_code, one.acknowledge_error_code, len(one.acquired_records))
            for topic in response.responses
            for one in topic.partitions
        }, waits

    def acknowledge(self, *names: str) -> dict[str, int]:
        """Acknowledge the first record of topics; return their error codes."""
        batch = AcknowledgedBatch(first_offset=0, last_offset=0, acknowledge_types=(1,))
        partitions = (AcknowledgePartition(partition_index=0, acknowledgement_batches=(batch,)),)
        topics = tuple(AcknowledgeTopic(topic_id=self._alice.ids[name], partitions=partitions) for name in names)
        request = ShareAcknowledgeRequest(
            group_id=GROUP, member_id=MEMBER, share_session_epoch=self._epoch, topics=topics
        )
        response, _ = self._alice.ask(request, 1)
        self._epoch += 1
        return {self._alice.names[topic.topic_id]: topic.partitions[0].error_code for topic in response.responses}


def test_a_share_session_keeps_topics_that_may_not_be_read() -> None:
    """A client names a topic once: it gets an error in each response, and records as soon as it may read them."""
    alice = Alice()
    session = ShareSession(alice)
    alice.may(READS_GROUP, ORDERS)
    secret = {"secret": (DENIED, 0, 0)}
    assert session.fetch("orders", "secret") == ({"orders": (0, 0, 1), **secret}, False)
    assert session.fetch() == (secret, True)
    assert session.fetch() == (secret, True)
    acknowledged, waits = session.fetch(acknowledges=("orders", "secret"))
    assert (acknowledged, waits) == ({"orders": (0, 0, 0), "secret": (DENIED, DENIED, 0)}, True)
    alice.may(READS_GROUP, ORDERS, SECRET)
    assert session.fetch() == ({"secret": (0, 0, 1)}, False)
    alice.may(READS_GROUP, ORDERS)
    assert session.acknowledge("secret") == {"secret": DENIED}
    alice.may(READS_GROUP)
    both = {"orders": (DENIED, 0, 0), "secret": (DENIED, 0, 0)}
    assert session.fetch() == (both, False)
    assert session.fetch(acknowledges=("secret",), epoch=-1) == ({"secret": (0, DENIED, 0)}, False)
