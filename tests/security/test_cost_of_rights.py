"""Checks of rights cost no more than in proportion to a request, and leave large responses in slices.

Method. A client may see every other topic. The steps of the broker for one request are counted; turns are given by the
test.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.headers import request_frame
from kproto.message import Request
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from kproto.messages.k30_create_acls import AclCreation, CreateAclsRequest
from kproto.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k41_describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kproto_server.authorization import checks
from kproto_server.authorization.table import install
from kproto_server.connection.connection import Connection
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.handlers import (
    k03_metadata,
    k09_offset_fetch,
    k15_describe_groups,
    k16_list_groups,
    k30_create_acls,
    k31_delete_acls,
    k32_describe_configs,
    k41_describe_delegation_token,
)
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.acls import IMPLYING, Acl, Authorizer, Operation, PatternType, Permission, ResourceType
from kproto_server.security.delegation_tokens import Principal, Token
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS, commit
from tests.robustness.steps import GROWTH_MAX, count_steps, growth
from tests.security.test_acls import ALICE, SETTINGS


def broker_of_alice(topic_count: int) -> InMemoryBroker:
    """Return a broker on which Alice may read the topics with an even number, and all groups."""
    names = [f"t{index}" for index in range(topic_count)]
    broker = InMemoryBroker(settings=SETTINGS, topics=dict.fromkeys(names, 1))
    authorizer = broker.state.cluster.authorizer
    assert authorizer is not None
    resources = [(ResourceType.TOPIC, name) for name in names[::2]] + [(ResourceType.GROUP, "*")]
    authorizer.replace(
        [
            Acl(kind, name, PatternType.LITERAL, ALICE, "*", operation, Permission.ALLOW)
            for kind, name in resources
            for operation in (Operation.READ, Operation.DESCRIBE_CONFIGS)
        ]
    )
    return broker


def responses_to(broker: InMemoryBroker, request: Request, version: int) -> tuple[list[int], bytes]:
    """Return the steps of each slice, and the response."""
    dispatcher = Dispatcher(broker.state, broker.observations, takes_turns=True)
    install(dispatcher)
    connection = Connection(dispatcher, broker.state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    connection.info.principal = ALICE
    received: list[bytes] = []
    data = request_frame(request, version, correlation_id=1)
    steps = [count_steps(lambda: received.append(connection.receive(data, NOW_MS)))]
    while dispatcher.turns:
        dispatcher.give_turn()
        dispatcher.take_runnable()
        steps.append(count_steps(lambda: received.append(connection.resume(NOW_MS))))
    assert connection.close_reason is None
    return steps, b"".join(received)


def offsets_of(count: int) -> ListOffsetsRequest:
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=-1),)
    topics = tuple(ListOffsetsTopic(name=f"t{index}", partitions=partitions) for index in range(count))
    return ListOffsetsRequest(replica_id=-1, topics=topics)


def configs_of(count: int) -> DescribeConfigsRequest:
    resources = tuple(
        DescribeConfigsResource(resource_type=2, resource_name=f"t{index}", configuration_keys=("retention.ms",))
        for index in range(count)
    )
    return DescribeConfigsRequest(resources=resources)


@pytest.mark.parametrize(("make", "version"), [(offsets_of, 5), (configs_of, 4)])
def test_denied_topics_are_not_compared_with_each_other(make: Any, version: int) -> None:
    """Each topic of the response was compared with each denied one: minutes for 10,000 topics."""
    broker = broker_of_alice(80)
    responses_to(broker, make(2), version)  # loads code, and generates the codecs
    assert growth(lambda size: sum(responses_to(broker, make(size), version)[0])) < GROWTH_MAX


EVERY_OFFSET = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),) * 6)
ALL_TOPICS = MetadataRequest(
    topics=tuple(MetadataRequestTopic(name=f"t{index}") for index in range(6)),
    include_topic_authorized_operations=True,
    include_cluster_authorized_operations=False,
)


@pytest.mark.parametrize(
    ("module", "limit", "request_", "version"),
    [
        (k03_metadata, "SMALL_PARTITIONS", ALL_TOPICS, 10),
        (k09_offset_fetch, "SMALL_OFFSETS", EVERY_OFFSET, 9),
        (k15_describe_groups, "SMALL_MEMBERS", DescribeGroupsRequest(groups=("g",) * 6), 5),
        (k32_describe_configs, "SMALL_CONFIGS", configs_of(6), 4),
    ],
)
def test_a_large_response_has_what_the_client_may_see(
    module: Any, limit: str, request_: Request, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = broker_of_alice(6)
    assert broker.state.cluster.ensure_offsets_topic(NOW_MS)
    commit(broker.state, "g", {f"t{index}": {0: 5} for index in range(6)})
    whole, at_once = responses_to(broker, request_, version)
    monkeypatch.setattr(module, limit, -1)
    slices, in_slices = responses_to(broker, request_, version)
    assert (len(whole), len(slices) > 1) == (1, True)
    assert in_slices == at_once
    if module is k03_metadata:
        topics = MetadataResponse.decode(in_slices[9:], version).topics
        assert [topic.error_code for topic in topics] == [0, 0, 0, 29, 29, 29]


def test_groups_are_checked_when_they_are_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k09_offset_fetch, "SMALL_OFFSETS", -1)
    broker = broker_of_alice(100)
    assert broker.state.cluster.ensure_offsets_topic(NOW_MS)
    commit(broker.state, "g", {f"t{index}": {0: 5} for index in range(100)})
    first = []
    for count in (1, 4, 8):
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),) * count)
        first.append(responses_to(broker, request, 9)[0][0])
    assert first[2] < 1.5 * first[1]


def plain_allows(acls: list[Acl], host: str, operation: Operation, name: str) -> bool:
    """Return what ACLs of topics allow Alice, by a look at each of them."""
    found = [one for one in acls if one.covers(name) and one.is_for(ALICE, host)]
    if any(one.permission == Permission.DENY and one.operation in (operation, Operation.ALL) for one in found):
        return False
    implying = (operation, Operation.ALL, *IMPLYING.get(operation, ()))
    return any(one.permission == Permission.ALLOW and one.operation in implying for one in found)


def test_rights_are_those_of_a_look_at_each_acl() -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    names, operations = ("a", "ab", "abc", "b", "*"), (Operation.READ, Operation.DESCRIBE, Operation.ALL)
    for _ in range(300):
        acls = [
            Acl(
                ResourceType.TOPIC,
                chance.choice(names),
                chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                chance.choice((ALICE, "User:*", "User:bob")),
                chance.choice(("*", "1.2.3.4")),
                chance.choice(operations),
                chance.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
            )
            for _ in range(chance.randrange(6))
        ]
        authorizer = Authorizer()
        authorizer.replace(acls)
        for name in ("a", "abc", "b", "c"):
            for operation in operations[:2]:
                expected = plain_allows(acls, "1.2.3.4", operation, name)
                assert authorizer.allows(ALICE, "1.2.3.4", operation, ResourceType.TOPIC, name) == expected


def test_a_right_is_checked_without_a_look_at_all_acls() -> None:
    """A request of 10,000 topics took half a minute with 10,000 ACLs."""
    steps = []
    for count in (100, 200):
        authorizer = Authorizer()
        authorizer.replace(
            Acl(ResourceType.TOPIC, f"t{index}", kind, ALICE, "*", Operation.READ, Permission.ALLOW)
            for index in range(count)
            for kind in (PatternType.LITERAL, PatternType.PREFIXED)
        )
        check = partial(authorizer.allows, ALICE, "::1", Operation.READ, ResourceType.TOPIC, "t1")
        assert check()
        steps.append(count_steps(check))
    assert steps[1] < 1.5 * steps[0]


def plain_allows_any(acls: list[Acl]) -> bool:
    """Return whether ACLs allow Alice to write to some topic, by a look at each pair of them."""
    own = [one for one in acls if one.operation in (Operation.WRITE, Operation.ALL)]
    denials = [one for one in own if one.permission == Permission.DENY]
    wildcard = "*", PatternType.LITERAL

    def is_denied(allowed: Acl) -> bool:
        return any(
            allowed.name.startswith(one.name)
            if one.pattern_type == PatternType.PREFIXED
            else one.name == allowed.name and allowed.pattern_type == PatternType.LITERAL
            for one in denials
        )

    return wildcard not in [(one.name, one.pattern_type) for one in denials] and any(
        (one.name, one.pattern_type) == wildcard or not is_denied(one)
        for one in own
        if one.permission == Permission.ALLOW
    )


def test_a_right_on_any_topic_is_that_of_a_look_at_each_pair_of_acls() -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    found = set()
    for _ in range(1000):
        acls = [
            Acl(
                ResourceType.TOPIC,
                "".join(chance.choices("abc", k=chance.choice((1, 2, 2, 3)))) if chance.randrange(20) else "*",
                chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                ALICE,
                "*",
                chance.choice((Operation.WRITE, Operation.ALL, Operation.READ)),
                chance.choice((Permission.ALLOW, Permission.DENY, Permission.DENY, Permission.DENY)),
            )
            for _ in range(chance.randrange(12))
        ]
        authorizer = Authorizer()
        authorizer.replace(acls)
        is_allowed = authorizer.allows_any(ALICE, "::1", Operation.WRITE, ResourceType.TOPIC)
        assert is_allowed == plain_allows_any(acls)
        found.add((is_allowed, bool(acls)))
    assert {(True, True), (False, True)} <= found


@pytest.mark.parametrize("kind", [PatternType.LITERAL, PatternType.PREFIXED])
def test_denials_are_not_compared_with_each_other_acl(kind: PatternType) -> None:
    """5000 ACLs that deny and 5000 that allow took 2 s for each InitProducerId."""

    def steps(count: int) -> int:
        authorizer = Authorizer()
        authorizer.replace(
            Acl(ResourceType.TOPIC, f"t{index:03}", kind, ALICE, "*", Operation.WRITE, permission)
            for permission in (Permission.DENY, Permission.ALLOW)
            for index in range(count)
        )
        return count_steps(lambda: authorizer.allows_any(ALICE, "::1", Operation.WRITE, ResourceType.TOPIC))

    assert growth(steps) < GROWTH_MAX


def creation(index: int, **fields: str) -> AclCreation:
    made = AclCreation(
        resource_type=2, resource_name=f"t{index}", principal=ALICE, host="*", operation=3, permission_type=3
    )
    return made.replace(**fields)


def deletion(index: int | None) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter=None if index is None else f"t{index}",
        pattern_type_filter=3,
        principal_filter=ALICE,
        host_filter="*",
        operation=3,
        permission_type=3,
    )


def test_there_are_few_acls_and_few_comparisons_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k30_create_acls, "ACLS_MAX", 100)
    monkeypatch.setattr(k31_delete_acls, "COMPARISONS_MAX", 250)
    admin = InMemoryBroker(settings=SETTINGS).connect()
    admin.connection.info.principal = "User:admin"

    def create(*creations: AclCreation) -> list[int]:
        response: Any = admin.ask(CreateAclsRequest(creations=creations), 1)
        return [one.error_code for one in response.results]

    def delete(*filters: DeleteAclsFilter) -> list[tuple[int, int]]:
        response: Any = admin.ask(DeleteAclsRequest(filters=filters), 1)
        return [(one.error_code, len(one.matching_acls)) for one in response.filter_results]

    refused = ErrorCode.POLICY_VIOLATION
    assert create(creation(0, host="h" * 10_000)) == [refused]
    assert create(*map(creation, range(100))) == [0] * 100
    assert create(creation(1), creation(100)) == [refused] * 2
    assert create(creation(1)) == [0], "it exists"
    assert delete(deletion(5), deletion(5), deletion(200)) == [(0, 1), (0, 0), (0, 0)]
    assert create(creation(100)) == [0]
    assert delete(*[deletion(None)] * 3) == [(refused, 0)] * 3
    assert delete(deletion(1), *[deletion(None)] * 2) == [(0, 1), (0, 99), (0, 0)]


def test_listed_groups_are_checked_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k16_list_groups, "SLICE_GROUPS", 4)
    monkeypatch.setattr(checks, "SLICE_ELEMENTS", 2)
    broker = broker_of_alice(1)
    assert broker.state.cluster.ensure_offsets_topic(NOW_MS)
    for index in range(8):
        commit(broker.state, f"g{index}", {"t0": {0: 5}})
    authorizer = broker.state.cluster.authorizer
    assert authorizer is not None
    authorizer.replace(
        Acl(ResourceType.GROUP, f"g{index}", PatternType.LITERAL, ALICE, "*", Operation.READ, Permission.ALLOW)
        for index in (1, 3, 4)
    )
    steps, response = responses_to(broker, ListGroupsRequest(), 2)
    assert len(steps) >= 2 + 8 // 2
    assert {group.group_id for group in ListGroupsResponse.decode(response[8:], 2).groups} == {"g1", "g3", "g4"}


def broker_with_tokens(count: int, renewer_count: int = 2) -> InMemoryBroker:
    """Return a broker with tokens of eight users; Alice may see those of the first one."""
    broker = InMemoryBroker(settings=SETTINGS | {"delegation.token.secret.key": "key"})
    cluster = broker.state.cluster
    assert cluster.delegation_tokens is not None
    assert cluster.authorizer is not None
    owners = [Principal("User", f"u{index}") for index in range(8)]
    renewers = tuple(Principal("User", f"r{index}") for index in range(renewer_count))
    cluster.delegation_tokens.replace(
        Token(f"token-{index}", owners[index % 8], owners[index % 8], renewers, 1, 2, 3) for index in range(count)
    )
    right = Acl(
        ResourceType.USER, "User:u0", PatternType.LITERAL, ALICE, "*", Operation.DESCRIBE_TOKENS, Permission.ALLOW
    )
    cluster.authorizer.replace([right])
    return broker


def tokens_of(*names: str) -> DescribeDelegationTokenRequest:
    return DescribeDelegationTokenRequest(
        owners=tuple(DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in names)
    )


EVERY_TOKEN = DescribeDelegationTokenRequest(owners=None)


@pytest.mark.parametrize(
    ("request_", "expected"), [(EVERY_TOKEN, 5), (tokens_of("u1", "u0"), 5), (tokens_of("r1"), 5), (tokens_of("u1"), 0)]
)
def test_many_tokens_are_described_in_slices(
    request_: DescribeDelegationTokenRequest, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 tokens of 2500 renewers each held the broker for 0.3 s."""
    broker = broker_with_tokens(40)
    whole, at_once = responses_to(broker, request_, 3)
    monkeypatch.setattr(k41_describe_delegation_token, "SMALL_TOKENS", 4)
    monkeypatch.setattr(checks, "SLICE_ELEMENTS", 2)
    slices, in_slices = responses_to(broker, request_, 3)
    assert (len(whole), len(slices) > 1) == (1, True)
    assert in_slices == at_once
    found = DescribeDelegationTokenResponse.decode(at_once[9:], 3).tokens
    assert [one.principal_name for one in found] == ["u0"] * expected


def test_many_tokens_are_described_in_slices_without_an_authorizer(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_tokens(40)
    broker.state.cluster.authorizer = None
    whole, at_once = responses_to(broker, EVERY_TOKEN, 3)
    monkeypatch.setattr(k41_describe_delegation_token, "SMALL_TOKENS", 4)
    slices, in_slices = responses_to(broker, EVERY_TOKEN, 3)
    assert (len(whole), len(slices) > 1) == (1, True)
    assert in_slices == at_once
    assert len(DescribeDelegationTokenResponse.decode(at_once[9:], 3).tokens) == 40


def test_tokens_are_not_compared_with_each_owner_of_a_request() -> None:
    """9000 owners and 1000 tokens held the broker for 5 s."""

    def steps(count: int) -> int:
        strangers = tokens_of(*(f"stranger-{index}" for index in range(count)))
        return sum(responses_to(broker_with_tokens(count), strangers, 3)[0])

    steps(1)  # loads code, and generates the codecs
    assert growth(steps) < GROWTH_MAX


def test_no_slice_takes_more_steps_when_more_tokens_exist() -> None:
    most = []
    for count in (8_000, 16_000):
        broker = broker_with_tokens(count)
        responses_to(broker_with_tokens(1), EVERY_TOKEN, 3)
        most.append(max(responses_to(broker, EVERY_TOKEN, 3)[0][1:]))
    assert most[1] < 1.5 * most[0]
