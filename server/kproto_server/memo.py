"""Remembered commits: the next OffsetCommit of a client differs from its last in correlation id and offsets only.

Theory of operation (D13: a fast path is never semantics). When a commit like the last one of its group has been
accepted by the plain path, `Memos` keeps what it needs to answer the next one without decoding it:

- a `Shape`, shared by all groups that commit the same partitions alike: the octets that must be the same, as one masked
  number, the answer, and what is stored. Which octets are offsets is not worked out by hand: the request is encoded
  with all offsets 0 and with all -1, and where the two differ, there they are. Who commits, from the group's id to the
  member's, is found in the same way;
- a `CommitMemo` a group: who it was, octet by octet, and its last frame.

A frame that equals the remembered one everywhere else is, by the layout, the same request with other offsets, so what
the plain path decides of it can only have changed if the broker has:

- topics, partitions and leaders: `Cluster.version` is still what it was;
- the group: `commit_error`, the plain path's own decision, is asked again for every frame.

The offsets themselves are decoded when somebody looks (`OffsetStore.defer_commit`), which for most commits is never.
A log that keeps commits must see each of them. There the shape has the record batch too, as a `CommitTemplate`, which
takes the offsets from where the mask says that they are; answer and table wait for the sync.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING

from kproto import registry
from kproto.headers import response_frame
from kproto.messages.k08_offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto_server.coordinator.change_log import Change, WrittenChangeLog
from kproto_server.coordinator.commit import append_error, commit_error, expires_early, limits_of
from kproto_server.coordinator.partitioning import OFFSETS_TOPIC, partition_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto_server.call import Call
    from kproto_server.cluster.cluster import Node
    from kproto_server.coordinator.log_records.commits import CommitTemplate
    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.session import Session
    from kproto_server.state import BrokerState

    Encode = Callable[[OffsetCommitRequest], bytes]

Key = tuple[int, bytes]
"""By which a memo is looked up: the frame's size, and its octets from the client id to about the group id."""
MEMOS_SIZE_MAX_BYTES = 64 << 20
"""Of the frames remembered; the oldest memos go first, and come back with their group's next commits."""
ALIKE_MAX = 64
"""Shapes of one size and version; then they are forgotten, and come back with the next commits."""
FRAME_SIZE_MAX_BYTES = 16_384
"""Larger commits are not remembered: their memos would hold much memory, and gain little of their cost."""
KEYS_MAX = 250_000
"""Keys seen once or given up that are kept in mind; then all are forgotten."""
BARREN_MAX = 16
"""Memos made for the same key without ever being used before that is given up."""
SHORTEST_COMMIT = 20
"""Octets that every OffsetCommit has; shorter frames are looked up in vain, but safely."""
FIRST_VERSION = 2
"""Version 1 has a timestamp of the client's in each partition, which the plain path looks at."""

OFFSET_COMMIT = 8


class PendingCommit(Change):
    """A commit answered from memory whose batch is in the log's queue."""

    __slots__ = ("_frame", "_memo", "_now_ms", "_session", "answer")

    def __init__(self, memo: CommitMemo, frame: bytes, now_ms: int, session: Session) -> None:
        self.group_id = memo.group_id
        self.commits = memo.shape.stored
        self.answer: bytes | None = None
        self._memo = memo
        self._frame = frame
        self._now_ms = now_ms
        self._session = session

    def settle(self, error: int) -> None:
        """Apply, if there was no error, and answer."""
        memo, frame = self._memo, self._frame
        if error:
            self.answer = memo.shape.refusal(frame, error)
        else:
            memo.apply(frame, self._now_ms)
            self.answer = memo.shape.success(frame)
        self._session.release()


class Shape:
    """What all commits of the same partitions have in common, whoever makes them."""

    __slots__ = (
        "_after",
        "_before",
        "_expires_after_ms",
        "_offsets",
        "_template",
        "api_version",
        "client_id",
        "cluster_version",
        "expires_early",
        "layout",
        "mask",
        "node",
        "record_count",
        "request",
        "size",
        "state",
        "stored",
        "want",
        "who",
    )

    def __init__(
        self,
        frame: bytes,
        mask: int,
        who: slice,
        answer: bytes,
        call: Call,
        request: OffsetCommitRequest,
    ) -> None:
        self.state = state = call.state
        self.size = len(frame)
        self.mask = mask
        self.want = int.from_bytes(frame, "big") & mask
        self.who = who
        self.node: Node = call.node
        self.cluster_version = state.cluster.version
        self.api_version = call.api_version
        self.client_id = call.client_id
        self.layout = "v4 as released" if call.api_version == 4 else f"v{call.api_version}"
        self.request = request
        self.stored = _stored(state, request)
        self.record_count = sum(len(partitions) for _, partitions in self.stored)
        self.expires_early = expires_early(request, call.api_version, limits_of(state.settings))
        first = self.stored[0][1][0][1]
        expire_ms = first.expire_timestamp_ms
        self._expires_after_ms = None if expire_ms is None else expire_ms - first.commit_timestamp_ms
        self._before, self._after = answer[:4], answer[8:]
        self._offsets = _offsets_in(mask.to_bytes(len(frame), "big"), who)
        self._template: CommitTemplate | None = None
        """Made when a batch is first needed: a log that keeps nothing needs none."""

    def success(self, frame: bytes) -> bytes:
        """Return the answer to a commit that was accepted, size included."""
        return self._before + frame[4:8] + self._after

    def refusal(self, frame: bytes, log_error: int) -> bytes:
        """Return the answer to a commit that could not be written (OC-35)."""
        error = append_error(log_error, self.state.profile)
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

    def batch(self, group_id: str, frame: bytes, now_ms: int) -> bytes:
        """Return a commit as a record batch of `record_count` records."""
        template = self._template
        if template is None:
            from kproto_server.coordinator.log_records.commits import CommitTemplate

            template = self._template = CommitTemplate(self.stored, self.state.profile)
        expires_after_ms = self._expires_after_ms
        expire_ms = None if expires_after_ms is None else now_ms + expires_after_ms
        return template.batch(group_id, self._offsets.unpack_from(frame), now_ms, expire_ms)

    def entries(self, frame: bytes, now_ms: int) -> CommitEntries:
        """Return what a commit has stored: the remembered entries with its offsets and its time."""
        expire_ms = None if self._expires_after_ms is None else now_ms + self._expires_after_ms
        offsets = iter(self._offsets.unpack_from(frame))
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


class CommitMemo:
    """The last commit of one member, or of a group without members."""

    __slots__ = (
        "_frame",
        "_is_deferred",
        "_now_ms",
        "_partition",
        "_who",
        "expires_early",
        "group_id",
        "hits",
        "is_forgotten",
        "request",
        "shape",
    )

    def __init__(self, shape: Shape, frame: bytes, call: Call, request: OffsetCommitRequest) -> None:
        cluster = call.state.cluster
        self.shape = shape
        self.request = request.replace(topics=())
        """Who commits; what, is the shape's."""
        self.group_id = request.group_id
        self.expires_early = shape.expires_early
        self.hits = 0
        self._is_deferred = False
        """Whether the table asks for the last commit when somebody looks."""
        self.is_forgotten = False
        """Whether another one has its place, or none."""
        self._who = frame[shape.who]
        self._partition = partition_for(request.group_id, len(cluster.topics[OFFSETS_TOPIC].partitions))
        self._frame = frame
        self._now_ms = call.now_ms

    def is_of(self, frame: bytes) -> bool:
        """Whether a frame has the same commit, offsets aside."""
        shape = self.shape
        if len(frame) != shape.size:
            return False
        return int.from_bytes(frame, "big") & shape.mask == shape.want and frame[shape.who] == self._who

    def answer(self, frame: bytes, now_ms: int, session: Session) -> bytes | PendingCommit:
        """Make this commit visible and return its answer; with a log that keeps it, once it is there."""
        self.hits += 1
        shape = self.shape
        if self.request.member_id:
            group = shape.state.groups.get(self.group_id)
            if group is not None and shape.state.profile.commits_are_heartbeats:
                group.note_commit(self.request.member_id, now_ms)
        log = shape.state.log
        if not log.keeps:
            self.apply(frame, now_ms)
            return shape.success(frame)
        batch = shape.batch(self.group_id, frame, now_ms)
        if isinstance(log, WrittenChangeLog):
            error = log.write(self._partition, batch, shape.record_count)
            if error:
                return shape.refusal(frame, error)
            self.apply(frame, now_ms)
            return shape.success(frame)
        pending = PendingCommit(self, frame, now_ms, session)
        log.append(self._partition, pending, batch, shape.record_count)
        return pending

    def apply(self, frame: bytes, now_ms: int) -> None:
        """Make this commit visible."""
        self._frame = frame
        self._now_ms = now_ms
        if not self._is_deferred:
            self._is_deferred = True
            self.shape.state.offsets.defer_commit(self.group_id, self)

    def entries(self) -> CommitEntries:
        """What the last commit that was made visible has stored; it is in the table from now on."""
        self._is_deferred = False
        return self.shape.entries(self._frame, self._now_ms)


class Memos:
    """The commits remembered, and those seen once."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._memos: dict[Key, CommitMemo] = {}
        self._keys: deque[Key] = deque()
        """Of the memos, the oldest first."""
        self._size_bytes = 0
        """Of the frames that they hold."""
        self._alike: dict[tuple[int, int], list[Shape]] = {}
        """Shapes by size of the frame and version."""
        self._made: dict[Key, int] = {}
        """Key -> how many memos were made of it in vain; 0: seen once."""

    def find(self, frame: bytes, node: Node, last: CommitMemo | None = None) -> CommitMemo | None:
        """Return the memo that says how to answer this frame; None: the plain path does.

        ``last``: what was found last on this connection, which mostly does again.
        """
        memo = last
        if memo is None or memo.is_forgotten or not memo.is_of(frame):
            memo = self._memos.get(_key(frame))
            if memo is None or not memo.is_of(frame):
                return None
        state, shape = self._state, memo.shape
        if state.cluster.version != shape.cluster_version or node is not shape.node or state.unavailable:
            return None
        if commit_error(state.groups.get(memo.group_id), memo.request, shape.api_version, state.profile):
            return None
        return memo

    def learn(
        self,
        frame: bytes,
        position: int,
        call: Call,
        request: OffsetCommitRequest,
        response: OffsetCommitResponse,
        answer: bytes,
    ) -> None:
        """Take note of a commit that the plain path has answered; remember it if it comes again."""
        if call.api_version < FIRST_VERSION or len(frame) > FRAME_SIZE_MAX_BYTES:
            return
        key = _key(frame)
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= KEYS_MAX:
                self._made.clear()
            self._made[key] = 0
            return
        if made >= BARREN_MAX or not _is_accepted(request, response) or _depends_on_the_group(request):
            return
        shape = self._shape(frame, position, call, request, answer)
        if shape is None:
            return
        before = self._memos.get(key)
        self._made[key] = 1 if before is not None and before.hits else made + 1
        self._memos[key] = CommitMemo(shape, frame, call, request)
        if before is not None:
            before.is_forgotten = True
        else:
            self._keys.append(key)
            self._size_bytes += len(frame)
            while self._size_bytes > MEMOS_SIZE_MAX_BYTES:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        key = self._keys.popleft()
        memo = self._memos.pop(key)
        memo.is_forgotten = True
        self._size_bytes -= key[0]
        self._state.offsets.of_group(memo.group_id)  # has what it deferred put into the table

    def _shape(
        self, frame: bytes, position: int, call: Call, request: OffsetCommitRequest, answer: bytes
    ) -> Shape | None:
        """Return the shape of a frame; None: its body has other forms."""
        number, cluster_version = int.from_bytes(frame, "big"), call.state.cluster.version
        alike = self._alike.setdefault((len(frame), call.api_version), [])
        for shape in alike:
            if (
                number & shape.mask == shape.want
                and shape.node is call.node
                and shape.cluster_version == cluster_version
            ):
                return shape
        made = self._new_shape(frame, position, call, request, answer)
        if made is not None:
            if len(alike) >= ALIKE_MAX:
                alike.clear()
            alike.append(made)
        return made

    def _new_shape(
        self, frame: bytes, position: int, call: Call, request: OffsetCommitRequest, answer: bytes
    ) -> Shape | None:
        encode = registry.codec(OFFSET_COMMIT, call.api_version).encode_request
        if encode(request) != frame[position:]:
            return None
        who = _who(frame, position, encode, request)
        mask = _mask(frame, position, encode, request, who)
        return Shape(frame, mask, who, answer, call, request)


def _key(frame: bytes) -> Key:
    """Return what to look a frame up by; of a frame of another API, or of none, it is something that is not found.

    The octet behind the client id's end is the low one of the group id's length, or, in flexible versions, the length
    plus one behind an empty tag section. Either way no offset is reached: those stand behind the topic's name.
    """
    if len(frame) < SHORTEST_COMMIT:
        return 0, b""
    place = 11 + frame[9]
    return len(frame), frame[8 : place + 1 + frame[place]] if place < len(frame) else b""


def _depends_on_the_group(request: OffsetCommitRequest) -> bool:
    """Whether it matters to a commit without a generation that its group is there: a simple group is only its offsets,
    and `Memos.find` does not look for those."""
    names_a_member = request.member_id != "" or request.group_instance_id is not None
    return request.generation_id_or_member_epoch < 0 and names_a_member


def _is_accepted(request: OffsetCommitRequest, response: OffsetCommitResponse) -> bool:
    """Whether every partition was asked for once, and stored."""
    asked = [(t.name, t.topic_id, p.partition_index) for t in request.topics for p in t.partitions]
    if not asked or len(set(asked)) != len(asked) or any(not t.partitions for t in request.topics):
        return False
    return not any(p.error_code for t in response.topics for p in t.partitions)


def _who(frame: bytes, position: int, encode: Encode, request: OffsetCommitRequest) -> slice:
    """Return where a frame says who commits: group, generation, member and instance."""
    one, other = (
        encode(
            request.replace(
                group_id=letter * len(request.group_id.encode()),
                generation_id_or_member_epoch=number,
                member_id=letter * len(request.member_id.encode()),
                group_instance_id=None
                if request.group_instance_id is None
                else letter * len(request.group_instance_id.encode()),
            )
        )
        for letter, number in (("a", 0), ("b", -1))
    )
    different = [place for place, (a, b) in enumerate(zip(one, other, strict=True), position) if a != b]
    return slice(different[0], different[-1] + 1)


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


def _stored(state: BrokerState, request: OffsetCommitRequest) -> CommitEntries:
    """Return what the table has of the partitions of a request that was just accepted."""
    stored = []
    offsets = state.offsets.of_group(request.group_id)
    for topic in request.topics:
        known = state.cluster.topic_by_id(topic.topic_id)
        name = topic.name if known is None or topic.name else known.name
        stored.append((name, [(p.partition_index, offsets[name][p.partition_index]) for p in topic.partitions]))
    return stored
