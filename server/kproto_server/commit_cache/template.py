"""Request templates: what commits of the same partitions by the same client have in common, in whichever group."""

# Theory of operation
# ===================
#
# The bytes of an OffsetCommit frame are of four kinds:
#
#     constant        API key, version, client id, sizes, topics, partitions, leader epochs, metadata, retention time
#     correlation id  bytes 4 to 7
#     sender          group id, generation, member id, group instance id: one run of bytes, with their sizes inside
#     offsets         8 bytes for each partition
#
# A template has a mask with the bits of the constant bytes. Masking and comparing are done on the frame as one large
# integer: two operations of the interpreter, whatever the number of partitions. If they match, only correlation id,
# sender and offsets can differ from the request that the template was made of. A commit without generation and member
# (a *simple* commit) has the group id alone as its sender.
#
# The positions of offsets and sender are found by encoding the request twice with values that differ in every byte, and
# comparing the results. So they follow from the codec, in all versions. A request whose frame is not what the codec
# would encode (tagged fields, sizes in more bytes than needed, bytes after the body) gets no template.

# Two other modules recognize bytes that repeat, and share no code with this one. `coordinator.loading.batch_templates`
# also masks large integers, but by bits, with two masks, and makes them by reading a record batch field by field; what
# both have in common is the comparison, one expression in a loop that a call would slow down by 3 %.
# `storage.batch_layouts` has to find one of many layouts: a dictionary by the bytes between the values does so in
# 0.16 us for a batch of one record and 0.6 us for ten; a dictionary by masked integers takes 0.3 and 1.1 us.

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kproto import registry
from kproto.headers import response_frame
from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from kproto_server.coordinator.commit import expires_early, limits_of
from kproto_server.coordinator.write_errors import commit_write_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.cluster.node import Node
    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.coordinator.offsets_log.commits import CommitTemplate
    from kproto_server.observation.observe import Observations, RepeatedRequests
    from kproto_server.requests.context import ConnectionInfo, RequestContext

    Encode = Callable[[OffsetCommitRequest], bytes]

OFFSET_COMMIT = 8
LAST_VERSION_WITH_LAYOUT = 4
"""Up to this version `Observations` counts the layout, too."""
NO_MEMBER = OffsetCommitRequest(group_id="", topics=())
"""The member of all simple commits."""


def make_template(
    frame: bytes, body_position: int, context: RequestContext, request: OffsetCommitRequest, response: bytes
) -> RequestTemplate | None:
    """Return the template of an accepted request; None: its frame is not what the codec encodes.

    ``response`` is the frame of its response.
    """
    encode = registry.codec(OFFSET_COMMIT, context.api_version).encode_request
    if encode(request) != frame[body_position:] or not request.group_id:
        return None
    retention_ms = NO_MEMBER.retention_time_ms
    is_simple = request.replace(group_id="", topics=(), retention_time_ms=retention_ms) == NO_MEMBER
    group, other_group = (request.replace(group_id=_like(request.group_id, letter)) for letter in "ab")
    group_slice = _difference(body_position, encode(group), encode(other_group))
    sender = group_slice
    if not is_simple:
        sender = _difference(body_position, *(encode(_with_sender(request, letter)) for letter in "ab"))
    mask = _mask(frame, body_position, encode, request, sender)
    return RequestTemplate(frame, mask, sender, group_slice, response, context, request)


class RequestTemplate:
    """What commits of the same partitions by clients with the same client id have in common."""

    def __init__(
        self,
        frame: bytes,
        mask: int,
        sender: slice,
        group: slice,
        response: bytes,
        context: RequestContext,
        request: OffsetCommitRequest,
    ) -> None:
        self.frame_size: int = len(frame)
        self.mask: int = mask
        """Has the bits of the constant bytes."""
        self.constant: int = int.from_bytes(frame, "big") & mask
        self.sender: slice = sender
        """Where the sender is in each frame."""
        self.group: slice = group
        """Where the group id is in each frame; its size is constant."""
        self.is_simple: bool = sender is group

        # What the decisions depended on.
        self.node: Node = context.node
        self.cluster_version: int = context.cluster.version

        self.api_version: int = context.api_version
        self._behavior = context.coordinator.behavior
        self._client_id = context.client_id
        self._layout: str | None = None
        if context.api_version <= LAST_VERSION_WITH_LAYOUT:
            self._layout = "v4 as released" if context.api_version == 4 else f"v{context.api_version}"
        self._retention_time_ms = request.retention_time_ms

        self.stored: CommitEntries = _stored(context, request)
        """What the offset store has after this commit, for all but offsets and times."""
        self.record_count: int = sum(len(partitions) for _, partitions in self.stored)
        limits = limits_of(context.settings.current)
        self.expires_early: bool = expires_early(request, context.api_version, limits)
        first = self.stored[0][1][0][1]
        expire_ms = first.expire_timestamp_ms
        self._expires_after_ms = None if expire_ms is None else expire_ms - first.commit_timestamp_ms
        self._offsets_in = _offsets_in(mask.to_bytes(len(frame), "big"), sender).unpack_from
        """Returns the offsets in a frame."""

        self.response_head: bytes = response[:4]
        self.response_tail: bytes = response[8:]
        """The response frame before and after its correlation id."""
        self.batch_template: CommitTemplate | None = None
        """Made for the first record batch: a log that keeps none needs none."""

    def member_of(self, request: OffsetCommitRequest) -> OffsetCommitRequest:
        """Return a request with the member of another one, and nothing else."""
        return NO_MEMBER if self.is_simple else request.replace(group_id="", topics=())

    def counter(self, observations: Observations, connection: ConnectionInfo) -> RepeatedRequests:
        """Return the counter of requests with this template on a connection."""
        return observations.repeated(
            connection, self._client_id, OFFSET_COMMIT, self.api_version, self._layout, self._retention_time_ms
        )

    def make_batch_template(self) -> CommitTemplate:
        """Make the template of the record batches of these commits."""
        from kproto_server.coordinator.offsets_log.commits import CommitTemplate

        self.batch_template = CommitTemplate(
            self.stored, self._behavior, self.group, self._offsets_in, self._expires_after_ms
        )
        return self.batch_template

    def failure(self, frame: bytes, log_error: int) -> bytes:
        """Return the response to a commit whose write failed: the same error for each partition (OC-35)."""
        error = commit_write_error(log_error, self._behavior)
        codec = registry.codec(OFFSET_COMMIT, self.api_version)
        header_size = 5 if codec.response_header_version else 4
        accepted, _ = codec.decode_response(self.response_tail, header_size - 4)
        topics = tuple(
            topic.replace(partitions=tuple(p.replace(error_code=error) for p in topic.partitions))
            for topic in accepted.topics
        )
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        body = codec.encode_response(accepted.replace(topics=topics))
        return response_frame(correlation_id, codec.response_header_version, body)

    def entries(self, frame: bytes, now_ms: int) -> CommitEntries:
        """Return what the offset store has after a commit."""
        expire_ms = None if self._expires_after_ms is None else now_ms + self._expires_after_ms
        offsets = iter(self._offsets_in(frame))
        return [
            (
                name,
                [
                    (
                        index,
                        stored._replace(
                            offset=next(offsets), commit_timestamp_ms=now_ms, expire_timestamp_ms=expire_ms
                        ),
                    )
                    for index, stored in partitions
                ],
            )
            for name, partitions in self.stored
        ]


def _like(text: str, letter: str) -> str:
    """Return a text of the same size in bytes, of one letter."""
    return letter * len(text.encode())


def _with_sender(request: OffsetCommitRequest, letter: str) -> OffsetCommitRequest:
    """Return the request with another group, generation, member and instance, each of the same size."""
    instance = request.group_instance_id
    return request.replace(
        group_id=_like(request.group_id, letter),
        generation_id_or_member_epoch=-1 if letter == "a" else 0,
        member_id=_like(request.member_id, letter),
        group_instance_id=None if instance is None else _like(instance, letter),
    )


def _difference(position: int, one: bytes, other: bytes) -> slice:
    """Return the slice from the first to the last byte in which two bodies at a position differ."""
    positions = [index for index, (a, b) in enumerate(zip(one, other, strict=True), position) if a != b]
    return slice(positions[0], positions[-1] + 1)


def _mask(frame: bytes, body_position: int, encode: Encode, request: OffsetCommitRequest, sender: slice) -> int:
    """Return a number of the frame's size that has the bits of the constant bytes."""
    zeros, ones = encode(_with_offsets(request, 0)), encode(_with_offsets(request, -1))
    mask = bytearray(b"\xff" * 4 + b"\0" * 4 + b"\xff" * (len(frame) - 8))
    for position, (zero, one) in enumerate(zip(zeros, ones, strict=True), body_position):
        if zero != one:
            mask[position] = 0
    mask[sender] = bytes(sender.stop - sender.start)
    return int.from_bytes(mask, "big")


def _offsets_in(mask: bytes, sender: slice) -> Struct:
    """Return the struct of a frame's offsets: where the mask has no bits behind the sender."""
    layout = [f">{sender.stop}x"]
    position: int = sender.stop
    while (start := mask.find(b"\0", position)) >= 0:
        layout.append(f"{start - position}xq")
        position = start + 8
    return Struct("".join(layout))


def _with_offsets(request: OffsetCommitRequest, offset: int) -> OffsetCommitRequest:
    return request.replace(
        topics=tuple(
            topic.replace(partitions=tuple(p.replace(committed_offset=offset) for p in topic.partitions))
            for topic in request.topics
        )
    )


def is_stored(context: RequestContext, request: OffsetCommitRequest) -> bool:
    """Return whether the offset store has all partitions of a request that was accepted."""
    offsets = context.coordinator.offsets.of_group(request.group_id)
    return context.coordinator.partition_of(request.group_id) is not None and all(
        part.partition_index in offsets.get(_name(context, topic), ())
        for topic in request.topics
        for part in topic.partitions
    )


def _stored(context: RequestContext, request: OffsetCommitRequest) -> CommitEntries:
    """Return what the offset store has of the partitions of a request that was just accepted."""
    stored = []
    offsets = context.coordinator.offsets.of_group(request.group_id)
    for topic in request.topics:
        name = _name(context, topic)
        stored.append((name, [(p.partition_index, offsets[name][p.partition_index]) for p in topic.partitions]))
    return stored


def _name(context: RequestContext, topic: OffsetCommitRequestTopic) -> str:
    known = context.cluster.topic_by_id(topic.topic_id)
    return topic.name if known is None or topic.name else known.name
