"""A user's correct program, which states the types that an editor shows (`assert_type`)."""

from __future__ import annotations

from typing import assert_type

from kproto import DecodeError
from kproto.client import CatchUpProgress, Event, OffsetRange, PositionReset, ProgressLine, ResetReason
from kproto.client_connection import ClientConnection, ReceivedResponse
from kproto.codes import ErrorCode
from kproto.declaration import TaggedField
from kproto.headers import read_response, request_frame, response_frame
from kproto.message import Request, Response
from kproto.messages.k03_metadata import MetadataRequest, MetadataResponseTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto_server import Broker


def commit(offset: int) -> OffsetCommitRequest:
    """Fields are passed by name; fields with a default are optional."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
    return OffsetCommitRequest(group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),))


def messages() -> None:
    """Messages are encoded to bytes and decoded from bytes."""
    request = commit(42)
    data = assert_type(request.encode(3), bytes)
    found = assert_type(OffsetCommitRequest.decode(data, 3), OffsetCommitRequest)
    assert_type(found.group_instance_id, str | None)
    assert_type(found.topics, tuple[OffsetCommitRequestTopic, ...])
    for topic in found.topics:
        for partition in topic.partitions:
            assert_type(partition, OffsetCommitRequestPartition)
            assert_type(partition.committed_offset, int)
            assert_type(partition.committed_metadata, str | None)
    assert_type(found.replace(group_id="other"), OffsetCommitRequest)
    assert_type(found.unknown_tagged_fields, tuple[TaggedField, ...])
    assert_type(MetadataRequest(topics=None).allow_auto_topic_creation, bool)
    assert_type(MetadataResponseTopic(error_code=0, name=None, partitions=()).topic_id, bytes)
    try:
        OffsetCommitRequest.decode(b"", 3)
    except DecodeError as error:
        assert_type((error.path, error.position), tuple[str, int])


def response_to_commit() -> OffsetCommitResponse:
    """Error codes are numbers with names."""
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=ErrorCode.NOT_COORDINATOR)
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=(partition,)),))


def frames() -> None:
    """Frames are built for both directions and read by the client's side of a connection."""
    assert_type(request_frame(commit(1), 3, correlation_id=7), bytes)
    client = ClientConnection("c")
    assert_type(client.send(commit(1), 3), bytes)
    frame = assert_type(response_frame(0, 0, response_to_commit().encode(3)), bytes)
    _, response = read_response(frame[4:], OffsetCommitResponse, 3)
    assert_type(response, OffsetCommitResponse)
    for received in client.receive(frame):
        assert_type(received, ReceivedResponse)


def broker() -> None:
    """A broker runs in this process."""
    with Broker.running(kafka_version="2.0") as running:
        assert_type(running, Broker)
        assert_type(running.bootstrap_servers, str)
        assert_type(running.clock.now_ms(), int)
        assert_type(running.observations.snapshot().largest_retention_ms, int | None)
        for logged in running.requests.where(api="OffsetCommit", group="g", error=0):
            assert_type((logged.client_id, logged.api_version), tuple[str, int])
            assert_type(logged.request, Request)
            assert_type(logged.response, Response | None)
        with running.faults.add(api="OffsetCommit", group="g", error="NOT_COORDINATOR", times=1) as rule:
            assert_type(rule.fired, int)


async def broker_from_a_task() -> None:
    """A broker runs in a task of trio or asyncio."""
    async with Broker(brokers=3, settings={"offsets.retention.minutes": 60}, clock="manual") as running:
        assert_type(running, Broker)
        running.clock.advance(days=8)
        running.stop_node(2)


def on_event(event: Event) -> None:
    """A consumer's events have types, and the progress line takes each of them."""
    if isinstance(event, PositionReset):
        assert_type((event.from_offset, event.to_offset), tuple[int | None, int])
        assert_type((event.reason, event.why), tuple[ResetReason, str])
    if isinstance(event, CatchUpProgress):
        assert_type(event.ranges, tuple[OffsetRange, ...])
        assert_type((event.records_per_s, event.seconds_left), tuple[float, float | None])
    ProgressLine()(event)


if __name__ == "__main__":
    messages()
    frames()
    broker()
