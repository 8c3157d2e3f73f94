"""A request with more elements than are accepted closes its connection, and its reason is reported.

Method. A broker without sockets gets requests with as many elements as are accepted, and with more.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto.declaration import TaggedField
from kproto.headers import TAGS_MAX, RequestHeader
from kproto.message import Request
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.requests.endpoint import elements_max
from kproto_server.testing import InMemoryBroker

REASON = "more elements than are accepted in one message"
PARTITION = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")


def find_coordinator(count: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(coordinator_keys=("",) * count)


def describe_groups(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=("",) * count)


def fetch_offsets(count: int) -> OffsetFetchRequest:
    topics = (OffsetFetchRequestTopic(name="t", partition_indexes=(0,) * (count - 1)),)
    return OffsetFetchRequest(group_id="g", topics=topics)


def commit(count: int) -> OffsetCommitRequest:
    topics = (OffsetCommitRequestTopic(name="t", partitions=(PARTITION,) * (count - 1)),)
    return OffsetCommitRequest(group_id="g", topics=topics)


def tagged(count: int) -> ApiVersionsRequest:
    tags = tuple(TaggedField(number + 100, b"") for number in range(count))
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    return tuple.__new__(ApiVersionsRequest, (*request[:-1], tags))  # type: ignore[index, type-var]  # a tuple


@pytest.mark.parametrize(
    ("make", "version"),
    [
        (find_coordinator, 4),
        (describe_groups, 5),
        (fetch_offsets, 5),
        (commit, 3),
        (commit, 4),
        (commit, 8),
        (tagged, 3),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_request_with_too_many_elements_closes_its_connection(make: Callable[[int], Request], version: int) -> None:
    broker = InMemoryBroker(topics={"t": 1})
    client = broker.connect()
    most = elements_max(make(2)._api_key)
    client.ask(make(most), version)
    assert client.close_reason is None
    client.send(make(most + 2), version)  # a single topic may not count
    assert client.close_reason == REASON
    assert not client.responses


def test_a_header_with_too_many_tags_closes_its_connection() -> None:
    def frame(count: int) -> bytes:
        tags = tuple(TaggedField(number, b"") for number in range(count))
        header = tuple.__new__(RequestHeader, (18, 3, 0, "", tags))  # type: ignore[type-var]  # a tuple
        body = header.encode(2) + tagged(0).encode(3)
        return len(body).to_bytes(4, "big") + body

    client = InMemoryBroker().connect()
    client.client.send(tagged(0), 3)
    client.send_bytes(frame(TAGS_MAX))
    assert len(client.responses) == 1
    client.send_bytes(frame(TAGS_MAX + 1))
    assert client.close_reason == REASON
