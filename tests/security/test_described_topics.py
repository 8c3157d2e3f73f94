"""DescribeTopicPartitions of a client that may see some topics (the responses are those of 4.4.0)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k75_describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from kproto_server.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kproto_server.testing import InMemoryBroker
from tests.security.test_acls import ALICE, SETTINGS

DENIED, INVALID = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST


def described(names: str, cursor: tuple[str, int] | None, limit: int = 2000) -> tuple[list[tuple[str, Any]], Any]:
    """Describe topics (one letter each) for Alice, who may see b and g; a, s and o exist, too.

    Returns:
        Of each topic the number of partitions or the error code, and the next cursor.
    """
    broker = InMemoryBroker(kafka_version="4.4", settings=SETTINGS, topics={"a": 2, "b": 2, "g": 2, "o": 2, "s": 2})
    authorizer = broker.state.cluster.authorizer
    assert authorizer is not None
    authorizer.replace(
        Acl(ResourceType.TOPIC, name, PatternType.LITERAL, ALICE, "*", Operation.DESCRIBE, Permission.ALLOW)
        for name in "bg"
    )
    client = broker.connect()
    client.connection.info.principal = ALICE
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response: Any = client.ask(request, 0)
    following = response.next_cursor
    return (
        [(topic.name, ErrorCode(topic.error_code) or len(topic.partitions)) for topic in response.topics],
        following and (following.topic_name, following.partition_index),
    )


@pytest.mark.parametrize("cursor", [None, ("a", 0), ("a", 5), ("aa", 1)])
def test_all_topics_from_a_cursor_on(cursor: tuple[str, int] | None) -> None:
    assert described("", cursor) == ([("b", 2), ("g", 2)], None)


def test_named_topics_from_a_cursor_on() -> None:
    assert described("sabg", ("a", 1)) == ([("b", 2), ("g", 2), ("a", DENIED), ("s", DENIED)], None)
    assert described("asb", None, 1) == ([("b", 1), ("a", DENIED), ("s", DENIED)], ("b", 1))
    assert described("asbg", ("b", 1), 1) == ([("b", 1), ("s", DENIED)], ("g", 0))
    assert described("sa", None) == ([("a", DENIED), ("s", DENIED)], None)


def test_a_bad_cursor_refuses_all() -> None:
    assert described("sab", ("z", 1)) == ([("s", INVALID), ("a", INVALID), ("b", INVALID)], None)
    assert described("sa", ("s", -1)) == ([("s", INVALID), ("a", INVALID)], None)
