"""What commits of the same partitions have in common, whoever makes them: the longest part of what `memo` remembers."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kproto import registry
from kproto.headers import response_frame
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto_server.coordinator.commit import expires_early, limits_of
from kproto_server.coordinator.write_errors import commit_write_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.cluster.cluster import Node
    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.coordinator.offsets_log.commits import CommitTemplate
    from kproto_server.requests.context import RequestContext

    Encode = Callable[[OffsetCommitRequest], bytes]

OFFSET_COMMIT = 8
NO_MEMBER = OffsetCommitRequest(group_id="", topics=())
"""What all commits without generation and member have in common, as far as `commit_error` goes."""


def shape_of(
    frame: bytes, position: int, context: RequestContext, request: OffsetCommitRequest, answer: bytes
) -> Shape | None:
    """Return the shape of a frame whose body begins at a position; None: the body has other forms."""
    encode = registry.codec(OFFSET_COMMIT, context.api_version).encode_request
    if encode(request) != frame[position:] or not request.group_id:
        return None
    retention_ms = NO_MEMBER.retention_time_ms
    is_anonymous = request.replace(group_id="", topics=(), retention_time_ms=retention_ms) == NO_MEMBER
    names = ("a", "b")
    group = _different(position, *(encode(request.replace(group_id=_like(request.group_id, name))) for name in names))
    who = group if is_anonymous else _different(position, *(encode(_by(request, name)) for name in names))
    mask = _mask(frame, position, encode, request, who)
    return Shape(frame, mask, who, group, answer, context, request)


class Shape:
    """What all commits of the same partitions have in common, whoever makes them."""

    __slots__ = (
        "_expires_after_ms",
        "_offsets_of",
        "after_id",
        "api_version",
        "before_id",
        "client_id",
        "cluster_version",
        "coordinator",
        "expires_early",
        "group",
        "is_anonymous",
        "layout",
        "mask",
        "node",
        "own_mask",
        "record_count",
        "request",
        "size",
        "stored",
        "template",
        "want",
        "who",
    )

    def __init__(
        self,
        frame: bytes,
        mask: int,
        who: slice,
        group: slice,
        answer: bytes,
        context: RequestContext,
        request: OffsetCommitRequest,
    ) -> None:
        self.coordinator = coordinator = context.coordinator
        self.size = len(frame)
        self.mask = mask
        """The octets that all of them have in common, and of a frame which."""
        self.want = int.from_bytes(frame, "big") & mask
        self.own_mask = mask | int.from_bytes(b"\xff" * (who.stop - who.start), "big") << 8 * (len(frame) - who.stop)
        """And who commits."""
        self.who = who
        self.group = group
        """Where the group's id is, which has the same size in all frames of this shape."""
        self.is_anonymous = who is group
        """Whether nobody is named but the group: the commits of simple consumers."""
        self.node: Node = context.node
        self.cluster_version = context.cluster.version
        self.api_version = context.api_version
        self.client_id = context.client_id
        self.layout = "v4 as released" if context.api_version == 4 else f"v{context.api_version}"
        self.request = request
        self.stored = _stored(context, request)
        self.record_count = sum(len(partitions) for _, partitions in self.stored)
        self.expires_early = expires_early(request, context.api_version, limits_of(coordinator.settings.current))
        first = self.stored[0][1][0][1]
        expire_ms = first.expire_timestamp_ms
        self._expires_after_ms = None if expire_ms is None else expire_ms - first.commit_timestamp_ms
        self.before_id, self.after_id = answer[:4], answer[8:]
        """Of the answer to one that is accepted, size included: what stands around its correlation id."""
        self._offsets_of = _offsets_in(mask.to_bytes(len(frame), "big"), who).unpack_from
        self.template: CommitTemplate | None = None
        """Made when a batch is first needed: a log that keeps nothing needs none."""

    def refusal(self, frame: bytes, log_error: int) -> bytes:
        """Return the answer to a commit that could not be written (OC-35)."""
        error = commit_write_error(log_error, self.coordinator.behavior)
        codec = registry.codec(OFFSET_COMMIT, self.api_version)
        response = OffsetCommitResponse(
            topics=tuple(
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=error)
                        for p in topic.partitions
                    ),
                )
                for topic in self.request.topics
            )
        )
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        return response_frame(correlation_id, codec.response_header_version, codec.encode_response(response))

    def make_template(self) -> CommitTemplate:
        """Return the template of the batches of such commits, made at first use."""
        from kproto_server.coordinator.offsets_log.commits import CommitTemplate

        self.template = CommitTemplate(
            self.stored, self.coordinator.behavior, self.group, self._offsets_of, self._expires_after_ms
        )
        return self.template

    def entries(self, frame: bytes, now_ms: int) -> CommitEntries:
        """Return what a commit has stored: the remembered entries with its offsets and its time."""
        expire_ms = None if self._expires_after_ms is None else now_ms + self._expires_after_ms
        offsets = iter(self._offsets_of(frame))
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
    """Return a text of the same size in octets."""
    return letter * len(text.encode())


def _by(request: OffsetCommitRequest, letter: str) -> OffsetCommitRequest:
    """Return the request of another group, generation, member and instance."""
    instance = request.group_instance_id
    return request.replace(
        group_id=_like(request.group_id, letter),
        generation_id_or_member_epoch=-1 if letter == "a" else 0,
        member_id=_like(request.member_id, letter),
        group_instance_id=None if instance is None else _like(instance, letter),
    )


def _different(position: int, one: bytes, other: bytes) -> slice:
    """Return from where to where two bodies, which begin at a position, are not the same."""
    places = [place for place, (a, b) in enumerate(zip(one, other, strict=True), position) if a != b]
    return slice(places[0], places[-1] + 1)


def _mask(frame: bytes, position: int, encode: Encode, request: OffsetCommitRequest, who: slice) -> int:
    """Return the octets that must be the same whoever commits, as a number with their bits set."""
    zeros, ones = encode(_with_offsets(request, 0)), encode(_with_offsets(request, -1))
    mask = bytearray(b"\xff" * 4 + b"\0" * 4 + b"\xff" * (len(frame) - 8))
    for place, (zero, one) in enumerate(zip(zeros, ones, strict=True), position):
        if zero != one:
            mask[place] = 0
    mask[who] = bytes(who.stop - who.start)
    return int.from_bytes(mask, "big")


def _offsets_in(mask: bytes, who: slice) -> Struct:
    """Return what reads all offsets of a frame: behind who commits, they are where the mask has nothing."""
    layout = [f">{who.stop}x"]
    position: int = who.stop
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


def _stored(context: RequestContext, request: OffsetCommitRequest) -> CommitEntries:
    """Return what the table has of the partitions of a request that was just accepted."""
    stored = []
    offsets = context.coordinator.offsets.of_group(request.group_id)
    for topic in request.topics:
        known = context.cluster.topic_by_id(topic.topic_id)
        name = topic.name if known is None or topic.name else known.name
        stored.append((name, [(p.partition_index, offsets[name][p.partition_index]) for p in topic.partitions]))
    return stored
