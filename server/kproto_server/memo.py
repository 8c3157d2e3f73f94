"""Remembered commits: the next OffsetCommit of a client differs from its last in correlation id and offsets only.

Theory of operation (D13: a fast path is never semantics). When the same commit has been accepted twice by the plain
path, `Memos` keeps what it needs to answer the next one without decoding it: the octets that must be the same, as one
masked number, and the answer. Which octets are offsets is not worked out by hand: the request is encoded with all
offsets 0 and with all -1, and where the two differ, there they are. A frame that equals the remembered one everywhere
else is, by the layout, the same request with other offsets, so what the plain path decides of it can only have changed
if the broker has:

- topics, partitions and leaders: `Cluster.version` is still what it was;
- the group: `commit_error`, the plain path's own decision, is asked again for every frame.

The offsets themselves are decoded when somebody looks (`OffsetStore.defer_commit`), which for most commits is never.
A log that keeps commits must see each of them, so with such a log nothing is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto import registry
from kproto_server.coordinator.commit import commit_error, expires_early, limits_of
from kproto_server.coordinator.offsets import MemoryOffsetLog

if TYPE_CHECKING:
    from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from kproto_server.call import Call
    from kproto_server.cluster.cluster import Node
    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.state import BrokerState

Key = tuple[int, bytes]
"""By which a memo is looked up: the frame's size, and its octets from the client id to about the group id."""
MEMOS_MAX = 10_000
"""Commits remembered; then all are forgotten, and the living ones are remembered again at their next commits."""
FRAME_SIZE_MAX_BYTES = 16_384
"""Larger commits are not remembered: their memos would hold much memory, and gain little of their cost."""
BARREN_MAX = 16
"""Memos made for the same key without ever being used before that is given up."""
SHORTEST_COMMIT = 20
"""Octets that every OffsetCommit has; shorter frames are looked up in vain, but safely."""
FIRST_VERSION = 2
"""Version 1 has a timestamp of the client's in each partition, which the plain path looks at."""

OFFSET_COMMIT = 8


class CommitMemo:
    """One accepted commit: what its like must have, how it is answered, and what it means."""

    __slots__ = (
        "_after",
        "_before",
        "_expires_after_ms",
        "_position",
        "_stored",
        "api_version",
        "client_id",
        "cluster_version",
        "expires_early",
        "frame",
        "hits",
        "layout",
        "mask",
        "node",
        "now_ms",
        "request",
        "size",
        "want",
    )

    def __init__(
        self, frame: bytes, position: int, mask: int, answer: bytes, call: Call, request: OffsetCommitRequest
    ) -> None:
        state = call.state
        self.size = len(frame)
        self.mask = mask
        self.want = int.from_bytes(frame, "big") & mask
        self.node: Node = call.node
        self.cluster_version = state.cluster.version
        self.api_version = call.api_version
        self.client_id = call.client_id
        self.layout = "v4 as released" if call.api_version == 4 else f"v{call.api_version}"
        self.request = request
        self.frame = frame
        self.now_ms = call.now_ms
        self.hits = 0
        self._position = position
        self._before, self._after = answer[:4], answer[8:]
        self._stored = _stored(state, request)
        _, entries = self._stored[0]
        first = entries[0][1]
        expire_ms = first.expire_timestamp_ms
        self._expires_after_ms = None if expire_ms is None else expire_ms - first.commit_timestamp_ms
        self.expires_early = expires_early(request, call.api_version, limits_of(state.settings))

    def answer(self, frame: bytes, now_ms: int, state: BrokerState) -> bytes:
        """Make this commit visible and return its answer, size included."""
        self.frame = frame
        self.now_ms = now_ms
        self.hits += 1
        state.offsets.defer_commit(self.request.group_id, self)
        return self._before + frame[4:8] + self._after

    def entries(self) -> CommitEntries:
        """What the last commit answered has stored: the remembered entries with its offsets and its time."""
        decode = registry.codec(OFFSET_COMMIT, self.api_version).decode_request
        request: OffsetCommitRequest = decode(self.frame, self._position)[0]
        commit_ms = self.now_ms
        expire_ms = None if self._expires_after_ms is None else commit_ms + self._expires_after_ms
        return [
            (
                name,
                [
                    (
                        index,
                        stored._replace(
                            offset=partition.committed_offset,
                            commit_timestamp_ms=commit_ms,
                            expire_timestamp_ms=expire_ms,
                        ),
                    )
                    for (index, stored), partition in zip(entries, topic.partitions, strict=True)
                ],
            )
            for (name, entries), topic in zip(self._stored, request.topics, strict=True)
        ]


class Memos:
    """The commits remembered, and those seen once."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._memos: dict[Key, CommitMemo] = {}
        self._made: dict[Key, int] = {}
        """Key -> how many memos were made of it in vain; 0: seen once."""

    def find(self, frame: bytes, node: Node) -> CommitMemo | None:
        """Return the memo that says how to answer this frame; None: the plain path does."""
        key = _key(frame)
        memo = self._memos.get(key)
        if memo is None or int.from_bytes(frame, "big") & memo.mask != memo.want or node is not memo.node:
            return None
        state = self._state
        if state.cluster.version != memo.cluster_version:
            del self._memos[key]
            return None
        request = memo.request
        group = state.groups.get(request.group_id)
        if group is None or commit_error(group, request, memo.api_version, state.profile):
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
        log = self._state.offsets.log
        if (
            call.api_version < FIRST_VERSION
            or len(frame) > FRAME_SIZE_MAX_BYTES
            or not isinstance(log, MemoryOffsetLog)
        ):
            return
        key = _key(frame)
        made = self._made.get(key)
        if made is None or len(self._made) > MEMOS_MAX:
            if len(self._made) > MEMOS_MAX:
                self._made.clear()
                self._memos.clear()
            self._made[key] = 0
            return
        if made >= BARREN_MAX or not _is_accepted(request, response):
            return
        mask = _mask(frame, position, call.api_version, request)
        if mask is None:
            return
        before = self._memos.get(key)
        self._made[key] = 1 if before is not None and before.hits else made + 1
        self._memos[key] = CommitMemo(frame, position, mask, answer, call, request)


def _key(frame: bytes) -> Key:
    """Return what to look a frame up by; of a frame of another API, or of none, it is something that is not found.

    The octet behind the client id's end is the low one of the group id's length, or, in flexible versions, the length
    plus one behind an empty tag section. Either way no offset is reached: those stand behind the topic's name.
    """
    if len(frame) < SHORTEST_COMMIT:
        return 0, b""
    place = 11 + frame[9]
    return len(frame), frame[8 : place + 1 + frame[place]] if place < len(frame) else b""


def _is_accepted(request: OffsetCommitRequest, response: OffsetCommitResponse) -> bool:
    """Whether every partition was asked for once, and stored."""
    asked = [(t.name, t.topic_id, p.partition_index) for t in request.topics for p in t.partitions]
    if not asked or len(set(asked)) != len(asked) or any(not t.partitions for t in request.topics):
        return False
    return not any(p.error_code for t in response.topics for p in t.partitions)


def _mask(frame: bytes, position: int, api_version: int, request: OffsetCommitRequest) -> int | None:
    """Return the octets that must be the same, as a number with their bits set; None: the body has other forms."""
    encode = registry.codec(OFFSET_COMMIT, api_version).encode_request
    if encode(request) != frame[position:]:
        return None
    zeros, ones = (int.from_bytes(encode(_with_offsets(request, offset)), "big") for offset in (0, -1))
    body_bits = 8 * (len(frame) - position)
    header = (b"\xff" * 4 + b"\0" * 4 + b"\xff" * (position - 8)) + b"\xff" * (len(frame) - position)
    return int.from_bytes(header, "big") ^ ((zeros ^ ones) & ((1 << body_bits) - 1))


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
