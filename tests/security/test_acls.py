"""ACLs: who may do what, and where they are kept."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern
from kafka.admin import ResourceType as KafkaResourceType
from kafka.errors import TopicAuthorizationFailedError

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kproto.messages.k30_create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kproto.messages.k57_update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.authorization.other_checks import configs
from kproto_server.broker.broker import Broker
from kproto_server.configuration.setting_table import SettingError
from kproto_server.configuration.settings import Settings
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.security.acls import Acl, AclFilter, Authorizer, Operation, PatternType, Permission, ResourceType
from kproto_server.testing import InMemoryBroker
from tests.network.raw_client import RawClient
from tests.security.acl_cases import BATCH

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SETTINGS = {"authorizer.class.name": STANDARD, "super.users": "User:admin"}
ALICE, HERE = "User:alice", "127.0.0.1"
TOPIC = ResourceType.TOPIC


def acl(
    name: str = "orders",
    operation: Operation = Operation.READ,
    permission: Permission = Permission.ALLOW,
    pattern_type: PatternType = PatternType.LITERAL,
    principal: str = ALICE,
    host: str = "*",
) -> Acl:
    return Acl(TOPIC, name, pattern_type, principal, host, operation, permission)


def may(acls: list[Acl], operation: Operation = Operation.READ, name: str = "orders", **values: Any) -> bool:
    authorizer = Authorizer(["User:admin"], **values)
    authorizer.replace(acls)
    return authorizer.allows(ALICE, HERE, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], False),
        ([acl()], True),
        ([acl("ord", pattern_type=PatternType.PREFIXED)], True),
        ([acl("ord")], False),
        ([acl("*")], True),
        ([acl(operation=Operation.ALL)], True),
        ([acl(principal="User:*")], True),
        ([acl(principal="User:bob")], False),
        ([acl(host=HERE)], True),
        ([acl(host="10.0.0.1")], False),
        ([acl(operation=Operation.WRITE)], False),
        ([acl(), acl(permission=Permission.DENY)], False),
        ([acl(), acl("or", permission=Permission.DENY, pattern_type=PatternType.PREFIXED)], False),
        ([acl(), acl(operation=Operation.ALL, permission=Permission.DENY)], False),
        ([acl(), acl(permission=Permission.DENY, host="10.0.0.1")], True),
        ([acl(), acl(operation=Operation.WRITE, permission=Permission.DENY)], True),
    ],
)
def test_an_acl_that_matches_decides(acls: list[Acl], expected: bool) -> None:
    assert may(acls) is expected


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_some_operations_allow_describe_and_deny_nothing_else(operation: Operation) -> None:
    assert may([acl(operation=operation)], Operation.DESCRIBE)
    denied = acl(operation=operation, permission=Permission.DENY)
    assert may([acl(operation=Operation.DESCRIBE), denied], Operation.DESCRIBE)


def test_alter_configs_allows_describe_configs() -> None:
    assert may([acl(operation=Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS)
    assert not may([acl(operation=Operation.ALTER)], Operation.DESCRIBE_CONFIGS)


def test_resources_without_acls_are_for_all_if_the_setting_says_so() -> None:
    others = acl(principal="User:bob")
    assert may([], allows_without_acls=True)
    assert not may([others], allows_without_acls=True)
    assert may([others], name="other", allows_without_acls=True)


def test_super_users_may_do_everything() -> None:
    authorizer = Authorizer(["User:admin"])
    authorizer.replace([acl("*", Operation.ALL, Permission.DENY, principal="User:*")])
    assert authorizer.allows("User:admin", HERE, Operation.READ, TOPIC, "orders")
    assert authorizer.allows_any("User:admin", HERE, Operation.WRITE, TOPIC)


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], False),
        ([acl(operation=Operation.WRITE)], True),
        ([acl(operation=Operation.READ)], False),
        ([acl(operation=Operation.WRITE), acl("*", Operation.WRITE, Permission.DENY)], False),
        ([acl(operation=Operation.WRITE), acl("orders", Operation.ALL, Permission.DENY)], False),
        ([acl(operation=Operation.WRITE), acl("o", Operation.WRITE, Permission.DENY, PatternType.PREFIXED)], False),
        ([acl("*", Operation.WRITE), acl("o", Operation.WRITE, Permission.DENY, PatternType.PREFIXED)], True),
    ],
)
def test_a_right_on_any_topic_lets_idempotent_producers_begin(acls: list[Acl], expected: bool) -> None:
    authorizer = Authorizer()
    authorizer.replace(acls)
    assert authorizer.allows_any(ALICE, HERE, Operation.WRITE, TOPIC) is expected


@pytest.mark.parametrize("is_standard", [False, True])
def test_acls_on_all_topics_end_the_rights_of_others_in_kraft(is_standard: bool) -> None:
    """`allow.everyone.if.no.acl.found` and a right on any topic; measured on 2.8.2 and 4.4.0."""
    authorizer = Authorizer(allows_without_acls=True, is_standard=is_standard)
    authorizer.replace([acl("orders", Operation.WRITE, principal="User:bob")])
    assert authorizer.allows_any(ALICE, HERE, Operation.WRITE, TOPIC)
    authorizer.replace([acl("*", Operation.WRITE, principal="User:bob")])
    assert authorizer.allows_any(ALICE, HERE, Operation.WRITE, TOPIC) is not is_standard


def test_filters_select_acls() -> None:
    prefixed = acl("ord", pattern_type=PatternType.PREFIXED)
    everything = acl("*")
    acls = [acl(), prefixed, everything, acl("other")]

    def found(**values: Any) -> list[Acl]:
        return list(filter(AclFilter(**values).matches, acls))

    assert found() == acls
    assert found(name="orders") == [acl()]
    assert found(name="orders", pattern_type=PatternType.MATCH) == [acl(), prefixed, everything]
    assert found(pattern_type=PatternType.PREFIXED) == [prefixed]
    assert found(principal="User:bob") == found(operation=Operation.WRITE) == found(permission=Permission.DENY) == []


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("4.4", "kafka.security.authorizer.AclAuthorizer"),
        ("2.0", "kafka.security.authorizer.AclAuthorizer"),
        ("4.4", "x"),
    ],
)
def test_a_release_has_its_own_authorizers(release: str, name: str) -> None:
    with pytest.raises(SettingError, match=r"authorizer\.class\.name cannot be"):
        Settings.from_mapping({"authorizer.class.name": name}, KafkaVersion.named(release))


def test_super_users_are_principals() -> None:
    with pytest.raises(SettingError, match="'admin' is no principal"):
        Settings.from_mapping({"super.users": "User:kproto; admin"})


def create(broker: InMemoryBroker, *acls: Acl) -> None:
    admin = broker.connect()
    admin.connection.info.principal = "User:admin"
    creations = tuple(
        AclCreation(
            resource_type=one.resource_type,
            resource_name=one.name,
            resource_pattern_type=one.pattern_type,
            principal=one.principal,
            host=one.host,
            operation=one.operation,
            permission_type=one.permission,
        )
        for one in acls
    )
    response = admin.ask(CreateAclsRequest(creations=creations), 2)
    assert isinstance(response, CreateAclsResponse)
    assert not any(one.error_code for one in response.results)


@pytest.mark.parametrize("pattern_type", [-128, -5, 0, 5])
def test_an_unknown_pattern_type_is_refused(pattern_type: int) -> None:
    """The error is that of 2.0.1. A negative one was accepted, and the file with it could not be read."""
    settings = SETTINGS | {"authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer"}
    client = InMemoryBroker(kafka_version="2.0", settings=settings).connect()
    client.connection.info.principal = "User:admin"
    creation = AclCreation(
        resource_type=2, resource_name="orders", resource_pattern_type=pattern_type, principal=ALICE, host="*",
        operation=3, permission_type=3,
    )  # fmt: skip
    response = client.ask(CreateAclsRequest(creations=(creation,)), 1)
    assert isinstance(response, CreateAclsResponse)
    (result,) = response.results
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, "patternType must not be UNKNOWN")


def test_acls_decide_from_the_next_request_on() -> None:
    broker = InMemoryBroker(settings=SETTINGS, topics={"orders": 1})
    alice = broker.connect()
    alice.connection.info.principal = ALICE
    request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),), allow_auto_topic_creation=False)

    def error() -> int:
        response = alice.ask(request, 8)
        assert isinstance(response, MetadataResponse)
        return response.topics[0].error_code

    assert error() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    create(broker, acl(operation=Operation.DESCRIBE))
    assert error() == ErrorCode.NONE
    create(broker, acl(operation=Operation.ALL, permission=Permission.DENY))
    assert error() == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_messages_name_the_api_where_kafka_quotes_the_request() -> None:
    alice = InMemoryBroker(settings=SETTINGS).connect()
    alice.connection.info.principal = ALICE
    features = alice.ask(UpdateFeaturesRequest(feature_updates=()), 1)
    assert isinstance(features, UpdateFeaturesResponse)
    assert features.error_message == "Request UpdateFeatures needs ALTER permission."
    describe = DescribeAclsRequest(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=None,
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    described = alice.ask(describe, 2)
    assert isinstance(described, DescribeAclsResponse)
    assert described.error_message == "Request DescribeAcls is not authorized."


@pytest.mark.parametrize("names", [("secret",), ("orders", "secret")])
def test_a_produce_without_acks_closes_the_connection_if_a_topic_is_denied(names: tuple[str, ...]) -> None:
    broker = InMemoryBroker(settings=SETTINGS, topics={"orders": 1, "secret": 1})
    create(broker, acl(operation=Operation.WRITE))
    alice = broker.connect()
    alice.connection.info.principal = ALICE

    def produce(*names: str) -> None:
        data = tuple(
            TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=BATCH),))
            for name in names
        )
        alice.send(ProduceRequest(transactional_id=None, acks=0, timeout_ms=1000, topic_data=data), 9)

    produce("orders")
    assert alice.close_reason is None
    produce(*names)
    assert alice.close_reason is not None
    orders, secret = (broker.state.cluster.topics[name].partitions[0].data for name in ("orders", "secret"))
    assert (orders.next_offset, secret.next_offset) == (len(names), 0)


@pytest.mark.parametrize("names", [("orders",), ("orders", "secret")])
def test_a_large_produce_without_acks_is_done_in_slices(names: tuple[str, ...]) -> None:
    """Other clients are served between two slices; what is denied closes the connection after the last one."""
    broker = InMemoryBroker(settings={**SETTINGS, "compression.type": "gzip"}, topics={"orders": 4, "secret": 1})
    create(broker, acl(operation=Operation.WRITE))
    alice = broker.connect()
    alice.connection.info.principal = ALICE
    records = build_record_batch([Record(b"k", bytes(900_000), timestamp=1)])
    partitions = tuple(PartitionProduceData(index=index, records=records) for index in range(4))
    data = tuple(TopicProduceData(name=name, partition_data=partitions) for name in names)
    alice.send(ProduceRequest(transactional_id=None, acks=0, timeout_ms=1000, topic_data=data), 9)
    assert (alice.close_reason is not None) is ("secret" in names)
    assert [one.data.next_offset for one in broker.state.cluster.topics["orders"].partitions] == [1, 1, 1, 1]
    assert broker.state.cluster.topics["secret"].partitions[0].data.next_offset == 0


def test_a_fetch_session_keeps_topics_that_may_not_be_read() -> None:
    broker = InMemoryBroker(settings=SETTINGS, topics={"orders": 1})
    alice = broker.connect()
    alice.connection.info.principal = ALICE
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)

    def fetch(session_id: int, epoch: int, *topics: FetchTopic) -> FetchResponse:
        request = FetchRequest(
            replica_id=-1, max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=topics,
            forgotten_topics_data=(),
        )  # fmt: skip
        response = alice.ask(request, 11)
        assert isinstance(response, FetchResponse)
        return response

    def errors(response: FetchResponse) -> list[int]:
        return [one.error_code for topic in response.responses for one in topic.partitions]

    first = fetch(0, 0, FetchTopic(topic="orders", partitions=(partition,)))
    assert errors(first) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert errors(fetch(first.session_id, 1)) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    create(broker, acl())
    assert errors(fetch(first.session_id, 2)) in ([], [ErrorCode.NONE])


def test_a_test_adds_describes_and_removes_acls() -> None:
    with Broker.running(settings=SETTINGS) as broker:
        broker.acls.add("User:alice", "READ", "TOPIC", "ord", pattern_type="PREFIXED", host=HERE)
        broker.acls.add("User:bob", "ALTER", "CLUSTER", permission="DENY")
        assert [tuple(one) for one in broker.acls.describe()] == [
            ("User:alice", "READ", "TOPIC", "ord", "ALLOW", HERE, "PREFIXED"),
            ("User:bob", "ALTER", "CLUSTER", "kafka-cluster", "DENY", "*", "LITERAL"),
        ]
        assert broker.acls.remove("User:dave") == 0
        assert broker.acls.remove("User:bob", "ALTER", "CLUSTER", permission="DENY") == 1
        assert broker.acls.remove() == 1
        assert broker.acls.describe() == ()


def test_a_seed_has_acls() -> None:
    given = {"principal": ALICE, "operation": "READ", "resource_type": "TOPIC", "name": "orders"}
    with Broker.running(settings=SETTINGS, seed={"acls": [given]}) as broker:
        broker.reset()
        assert [one.name for one in broker.acls.describe()] == ["orders"]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
@pytest.mark.parametrize(
    ("connected", "host", "expected"),
    [("[::1]", "0:0:0:0:0:0:0:1", True), ("[::1]", "::1", False), ("127.0.0.1", HERE, True)],
)
def test_the_host_of_an_acl_is_an_address_as_java_has_it(connected: str, host: str, expected: bool) -> None:
    """The hosts are compared as texts. A listener on IPv6 has clients of IPv4, too."""
    with Broker.running(settings=SETTINGS, host="::") as broker:
        broker.topics.create("orders")
        broker.acls.add("User:ANONYMOUS", "DESCRIBE", "TOPIC", "orders", host=host)
        with RawClient(f"{connected}:{broker.bootstrap_servers.rpartition(':')[2]}") as client:
            (topic,) = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),)), 1).topics
        assert (topic.error_code == ErrorCode.NONE) is expected


def test_wrong_acls_of_a_seed_are_reported_together() -> None:
    acls: list[Any] = [
        {"principal": ALICE, "operation": "READS", "resource_type": "TOPIC"},
        {"principal": ALICE, "operation": "READ"},
        {"principal": 5, "operation": "READ", "resource_type": "TOPIC", "names": "orders"},
    ]
    with pytest.raises(UsageError) as raised:
        Broker(seed={"acls": acls})
    lines = str(raised.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "acls[0]", "acls[1]", "acls[2]", "acls[2].principal", "acls",
    ]  # fmt: skip


def test_a_broker_without_an_authorizer_checks_nothing() -> None:
    broker = InMemoryBroker()
    assert broker.dispatcher.cached_commits is not None
    own = broker.dispatcher.endpoints._own  # type: ignore[attr-defined]  # behind those that throttle
    assert type(own).__name__ == "_Endpoints"


def test_acls_survive_restarts_and_snapshots(tmp_path: Path) -> None:
    sasl: Any = {"sasl": ["PLAIN"], "users": {"admin": "admin-secret", "alice": "alice-secret"}, "settings": SETTINGS}
    orders = ResourcePattern(KafkaResourceType.TOPIC, "orders")
    read = ACL(ALICE, "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, orders)

    def login(user: str) -> dict[str, Any]:
        return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": user,
                "sasl_plain_password": f"{user}-secret"}  # fmt: skip

    def send(broker: Broker) -> None:
        servers = broker.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers, enable_idempotence=False, **login("alice")) as producer:
            producer.send("orders", b"one").get(20)

    with Broker.running(data=str(tmp_path), **sasl) as broker:
        broker.topics.create("orders")
        with pytest.raises(TopicAuthorizationFailedError):
            send(broker)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, **login("admin"))
        admin.create_acls([read])
        admin.close()
        send(broker)
        snapshot = broker.snapshot()
        broker.reset()
        broker.topics.create("orders")
        with pytest.raises(TopicAuthorizationFailedError):
            send(broker)
        broker.restore(snapshot)
        send(broker)
    with Broker.running(data=str(tmp_path), **sasl) as broker:
        send(broker)


class Incomparable(SimpleNamespace):
    """A resource of a request."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("takes quadratic time")

    __hash__ = None


def test_the_resources_of_a_request_are_not_compared_with_each_other() -> None:
    resources = (Incomparable(resource_type=2, resource_name="topic"), Incomparable(resource_type=4, resource_name="1"))
    asked: Any = SimpleNamespace(
        request=SimpleNamespace(resources=resources, replace=SimpleNamespace),
        rights=SimpleNamespace(on_topic=lambda operation, name: True, on_cluster=lambda operation: False),
        context=SimpleNamespace(api_key=32, api_version=4, behavior=KafkaVersion.named("4.4").behavior),
    )
    performed = SimpleNamespace(results=(), replace=SimpleNamespace)
    response = configs("results", Operation.DESCRIBE_CONFIGS)(asked, lambda request: performed)
    assert [one.resource_name for one in response.results] == ["1"]


@pytest.mark.parametrize(("release", "accepts"), [("3.3", True), ("3.8", True), ("3.9", False)])
def test_a_principal_without_a_type_matches_no_client(release: str, accepts: bool) -> None:
    """KRaft brokers before 3.9 accept the ACL, and fail requests about its resource from then on (3.6.2)."""
    broker = InMemoryBroker(kafka_version=release, settings=SETTINGS, topics={"orders": 1})
    admin, alice = broker.connect(), broker.connect()
    admin.connection.info.principal, alice.connection.info.principal = "User:admin", ALICE
    creation = AclCreation(
        resource_type=TOPIC,
        resource_name="orders",
        resource_pattern_type=PatternType.LITERAL,
        principal="bob",
        host="*",
        operation=Operation.DESCRIBE,
        permission_type=Permission.ALLOW,
    )
    created: Any = admin.ask(CreateAclsRequest(creations=(creation,)), 3)
    assert [one.error_code == 0 for one in created.results] == [accepts]
    response: Any = alice.ask(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),)), 9)
    assert response.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("release", "of_refused_group"), [("3.4", [30]), ("3.5", []), ("3.8", []), ("3.9", [30])])
def test_offsets_of_old_versions(release: str, of_refused_group: list[int]) -> None:
    """Measured on 3.4.1, 3.5.2, 3.8.1 and 3.9.2: v1 of a refused group may have no topics, and v0 needs ZooKeeper."""
    broker = InMemoryBroker(kafka_version=release, settings=SETTINGS, topics={"orders": 1})
    broker.state.cluster.ensure_offsets_topic(broker.clock.now_ms())
    client = broker.connect()
    client.connection.info.principal = ALICE
    topics = (OffsetFetchRequestTopic(name="orders", partition_indexes=(0,)),)
    request = OffsetFetchRequest(group_id="g", topics=topics)
    response: Any = client.ask(request, 1)
    assert [partition.error_code for topic in response.topics for partition in topic.partitions] == of_refused_group
    of_group = Acl(ResourceType.GROUP, "g", PatternType.LITERAL, ALICE, "*", Operation.DESCRIBE, Permission.ALLOW)
    broker.state.cluster.change_acls([of_group])
    response = client.ask(request, 0)
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION
