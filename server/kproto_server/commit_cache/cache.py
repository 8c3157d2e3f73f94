"""Remembered commits: the next OffsetCommit of a client differs from its last in correlation id and offsets only.

Theory of operation (D13: a fast path is never semantics). When a commit like the last one of its group has been
accepted by the plain path, `Memos` keeps what it needs to answer the next one without decoding it:

- a `Shape`, shared by all groups that commit the same partitions alike: the octets that must be the same, as one masked
  number, the answer, and what is stored. Which octets are offsets is not worked out by hand: the request is encoded
  with all offsets 0 and with all -1, and where the two differ, there they are. Who commits, from the group's id to the
  member's, is found in the same way;
- a `CommitMemo` a group: its last frame.

A frame that equals the remembered one everywhere else is, by the layout, the same request with other offsets, so what
the plain path decides of it can only have changed if the broker has:

- topics, partitions and leaders: `Cluster.version` is still what it was;
- the group: `commit_error`, the plain path's own decision, is asked again for every frame.

The offsets themselves are decoded when somebody looks (`OffsetStore.last_commits`), which for most commits is never.
A log that keeps commits must see each of them. There the shape has the record batch too, as a `CommitTemplate`, and
takes the offsets from where the mask says that they are; answer and table wait for the sync.

There may be a memo a group, so each octet of one counts: it is found by the group's id, where its offsets are looked
for too, and what groups have in common is in one place. Those of two clients of one group take turns there, but each
connection keeps the one that it had last. All memos together are bounded. If there is no room for a new one, the oldest
that was not used since its last turn is forgotten; but each time one was, the new one has to wait for its next commit:
or else a hundred thousand groups that commit in turn would each find that theirs has just gone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from zlib import crc32

from kproto_server.commit_cache.template import NO_MEMBER, shape_of
from kproto_server.coordinator.change_log import Change, UnsyncedChangeLog
from kproto_server.coordinator.commit import commit_error

if TYPE_CHECKING:
    from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitResponse
    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.commit_cache.template import Shape
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.offsets import CommitEntries, OffsetStore
    from kproto_server.requests.connection import Session
    from kproto_server.requests.context import RequestContext

MEMOS_SIZE_MAX_BYTES = 40 << 20
"""Of all memos, about."""
MEMO_SIZE_BYTES = 300
"""What a memo takes besides its frame: objects, and its places in dictionaries."""
ALIKE_MAX = 64
"""Shapes of one size and version; then they are forgotten, and come back with the next commits."""
FRAME_SIZE_MAX_BYTES = 16_384
"""Larger commits are not remembered: their memos would hold much memory, and gain little of their cost."""
SIGHTS = 1 << 19
SIGHTS_MAX = 200_000
"""Commits seen once or given up that are kept in mind, an octet each; then all are forgotten."""
BARREN_MAX = 16
"""Memos made for the same commit without ever being used before that is given up."""
SHORTEST_COMMIT = 20
"""Octets that every OffsetCommit has; shorter frames are looked up in vain, but safely."""
FIRST_VERSION = 2
"""Version 1 has a timestamp of the client's in each partition, which the plain path looks at."""
FIRST_FLEXIBLE_VERSION = 8
FRESH, USED, IDLE = range(3)
"""A memo was never used; was; was not since its last turn to be forgotten."""
INJECTIVE = "surrogateescape"
"""How octets that are no UTF-8 are read: no two groups' become the same string."""


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
            memo.apply(frame, self._now_ms, self._session)
            self.answer = memo.shape.before_id + frame[4:8] + memo.shape.after_id
        self._session.release()


class CommitMemo:
    """The last commit of one member, or of a group without members."""

    __slots__ = (
        "_now_ms",
        "_partition",
        "frame",
        "group_id",
        "is_deferred",
        "is_forgotten",
        "own",
        "request",
        "shape",
        "use",
    )

    def __init__(self, shape: Shape, frame: bytes, context: RequestContext, request: OffsetCommitRequest) -> None:
        self.shape = shape
        self.group_id = request.group_id
        self.request = NO_MEMBER if shape.is_anonymous else request.replace(group_id="", topics=())
        """Who commits, but for the group; what, is the shape's."""
        self.is_deferred = False
        """Whether the last commit is visible, and not in the table."""
        self.is_forgotten = False
        self.own: int | None = None
        """All that the member's commits have in common, as a masked number, while a connection brings no others."""
        self.use = FRESH
        partition = context.coordinator.partition_of(request.group_id)
        assert partition is not None, "the commit was accepted"
        self._partition = partition
        self.frame = frame
        self._now_ms = context.now_ms

    @property
    def expires_early(self) -> bool:
        return self.shape.expires_early

    @property
    def size_bytes(self) -> int:
        return MEMO_SIZE_BYTES + self.shape.size

    def is_by(self, frame: bytes) -> bool:
        """Whether a frame of this size comes from the same member; what it commits is not looked at."""
        shape = self.shape
        return len(frame) == shape.size and frame[shape.who] == self.frame[shape.who]

    def answer(self, frame: bytes, now_ms: int, session: Session) -> bytes | PendingCommit:
        """Make this commit visible and return its answer; with a log that keeps it, once it is there."""
        self.use = USED
        shape = self.shape
        coordinator = shape.coordinator
        if not shape.is_anonymous and self.request.member_id and coordinator.behavior.counts_commits_as_heartbeats:
            group = coordinator.groups.get(self.group_id)
            if group is not None:
                group.note_commit(self.request.member_id, now_ms)
        log = coordinator.log
        if log.keeps:
            checked = (shape.template or shape.make_template()).checked(frame, now_ms)
            if type(log) is not UnsyncedChangeLog:
                from kproto_server.coordinator.offsets_log.batches import with_checksum

                pending = PendingCommit(self, frame, now_ms, session)
                log.append(self._partition, pending, with_checksum(checked), shape.record_count)
                return pending
            error = log.writer.write_checked(log.partitions[self._partition], checked, shape.record_count)
            if error:
                return shape.refusal(frame, error)
        self.frame, self._now_ms = frame, now_ms  # as `apply`, which a call would make dearer by a hundredth
        if not self.is_deferred:
            self._defer(session)
        return shape.before_id + frame[4:8] + shape.after_id

    def apply(self, frame: bytes, now_ms: int, session: Session) -> None:
        """Make this commit visible."""
        self.frame, self._now_ms = frame, now_ms
        if not self.is_deferred:
            self._defer(session)

    def _defer(self, session: Session) -> None:
        if session.dispatcher.memos is not None:
            session.dispatcher.memos.defer(self)

    def entries(self) -> CommitEntries:
        """What the last commit that was made visible has stored."""
        return self.shape.entries(self.frame, self._now_ms)


class Memos:
    """The commits remembered, and those seen once."""

    def __init__(self, coordinator: GroupCoordinator, cluster: Cluster) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._offsets: OffsetStore = coordinator.offsets
        """What the groups below are of."""
        self._groups: deque[str] = deque()
        """Those with a memo, in the order of their turns."""
        self._size_bytes = 0
        self._alike: dict[tuple[int, int], list[Shape]] = {}
        """Shapes by size of the frame and version."""
        self._sights = bytearray(SIGHTS)
        """By a hash of group and size: 0 if no such commit was seen; else 1, and one for each memo made in vain. Two
        that share a place lead to a memo too early, or to none: it is the plain path that answers then."""
        self._sight_count = 0

    def find(self, frame: bytes, node: Node, last: CommitMemo | None = None) -> CommitMemo | None:
        """Return the memo that says how to answer this frame; None: the plain path does.

        ``last``: what was found last on this connection, which mostly does again.
        """
        memo: CommitMemo | None
        if last is None or len(frame) != last.shape.size:
            memo = self._look_up(frame)
        else:
            shape, number = last.shape, int.from_bytes(frame, "big")
            if last.own is not None and number & shape.own_mask == last.own and not last.is_forgotten:
                memo = last
            else:
                memo = self._next_to(frame, last) if number & shape.mask == shape.want else self._look_up(frame)
                last.own = number & shape.own_mask if memo is last else None
        if memo is None:
            return None
        coordinator, shape = self._coordinator, memo.shape
        if self._cluster.version != shape.cluster_version or node is not shape.node or coordinator.unavailable:
            return None
        group = coordinator.groups.get(memo.group_id)
        # A commit without a member to a group of which there is nothing to say but its offsets: always accepted.
        if group is None and shape.is_anonymous:
            return memo
        return None if commit_error(group, memo.request, shape.api_version, coordinator.behavior) else memo

    def _next_to(self, frame: bytes, last: CommitMemo) -> CommitMemo | None:
        """Return the memo of a commit of the same partitions as the last one."""
        shape = last.shape
        if shape.is_anonymous:  # mostly it is another group's
            memo = self._coordinator.offsets.last_commits.get(str(frame[shape.group], "utf-8", INJECTIVE))
            if memo is None or memo.shape is shape:
                return memo
        is_by_the_same = not last.is_forgotten and last.is_by(frame)
        return last if is_by_the_same else self._look_up(frame)

    def _look_up(self, frame: bytes) -> CommitMemo | None:
        """Return the memo of a commit by the same member of the same partitions as its group's last one."""
        memo = self._coordinator.offsets.last_commits.get(_group_id(frame))
        if memo is None or not memo.is_by(frame):
            return None
        return memo if int.from_bytes(frame, "big") & memo.shape.mask == memo.shape.want else None

    def learn(
        self,
        frame: bytes,
        position: int,
        context: RequestContext,
        request: OffsetCommitRequest,
        response: OffsetCommitResponse,
        answer: bytes,
    ) -> None:
        """Take note of a commit that the plain path has answered; remember it if it comes again."""
        if context.api_version < FIRST_VERSION or len(frame) > FRAME_SIZE_MAX_BYTES:
            return
        sights, place = self._sights, _place(request.group_id, len(frame))
        if not sights[place]:
            self._first_sight(place)
            return
        if sights[place] > BARREN_MAX or not _is_accepted(request, response) or _depends_on_the_group(request):
            return
        before = self._memo_of(request.group_id)
        if before is None and not self._make_room(MEMO_SIZE_BYTES + len(frame)):
            return
        shape = self._shape(frame, position, context, request, answer)
        if shape is None:
            return
        sights[place] = 2 if before is not None and before.use == USED else sights[place] + 1
        self._put(CommitMemo(shape, frame, context, request), before)

    def _first_sight(self, place: int) -> None:
        if self._sight_count == SIGHTS_MAX:
            self._sights = bytearray(SIGHTS)
            self._sight_count = 0
        self._sights[place] = 1
        self._sight_count += 1

    def _memo_of(self, group_id: str) -> CommitMemo | None:
        if self._offsets is not self._coordinator.offsets:
            self._offsets = self._coordinator.offsets  # the topic was deleted: there are no groups
            self._groups.clear()
            self._size_bytes = 0
        return self._offsets.last_commits.get(group_id)

    def _put(self, memo: CommitMemo, before: CommitMemo | None) -> None:
        if before is None:
            self._groups.append(memo.group_id)
        else:
            self._size_bytes -= before.size_bytes
        self._size_bytes += memo.size_bytes
        memo.is_forgotten = False
        self._offsets.remember(memo.group_id, memo)

    def defer(self, memo: CommitMemo) -> None:
        """The table asks for this commit when somebody looks, and not before."""
        before = self._memo_of(memo.group_id)
        if before is not memo:
            self._put(memo, before)
        self._offsets.defer(memo.group_id, memo)

    def _make_room(self, size_bytes: int) -> bool:
        """Forget memos until there is room; False if the next one was used."""
        while self._size_bytes + size_bytes > MEMOS_SIZE_MAX_BYTES and self._groups:
            group_id = self._groups.popleft()
            memo = self._offsets.last_commits[group_id]
            if memo.use != IDLE:
                memo.use = IDLE
                self._groups.append(group_id)
                return False
            self._size_bytes -= memo.size_bytes
            self._sights[_place(group_id, memo.shape.size)] = 1
            memo.is_forgotten = True
            self._offsets.forget(group_id)
        return True

    def _shape(
        self, frame: bytes, position: int, context: RequestContext, request: OffsetCommitRequest, answer: bytes
    ) -> Shape | None:
        """Return the shape of a frame; None: its body has other forms."""
        number, cluster_version = int.from_bytes(frame, "big"), context.cluster.version
        alike = self._alike.setdefault((len(frame), context.api_version), [])
        for shape in alike:
            if (
                number & shape.mask == shape.want
                and shape.node is context.node
                and shape.cluster_version == cluster_version
            ):
                return shape
        made = shape_of(frame, position, context, request, answer)
        if made is not None:
            if len(alike) >= ALIKE_MAX:
                alike.clear()
            alike.append(made)
        return made


def _place(group_id: str, size: int) -> int:
    """Return where commits of a group are counted."""
    return crc32(group_id.encode(), size) % SIGHTS


def _group_id(frame: bytes) -> str:
    """Return the group's id of a commit; of a frame of another API, or of none, it is something that is not found.

    The octet behind the client id's end is the low one of the group id's size, or, in flexible versions, its size plus
    one behind an empty tag section.
    """
    if len(frame) < SHORTEST_COMMIT:
        return ""
    place = 12 + (0 if frame[8] else frame[9])  # a client id that is null has a negative size
    if place > len(frame):
        return ""
    end = place + frame[place - 1]
    return str(frame[place : end - 1 if frame[3] >= FIRST_FLEXIBLE_VERSION else end], "utf-8", INJECTIVE)


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
