"""The cached commits of all groups of a broker, and which commits become cached."""

# Theory of operation
# ===================
#
# There may be an entry for each group, and a broker may have a million groups. Three rules keep the cache useful within
# `ENTRIES_SIZE_MAX_BYTES`:
#
# - A commit is cached when it comes for the second time. Groups that commit once, or each time other partitions, would
#   only cost memory and the time to make templates. `_candidates` counts, by a hash of group and frame size: 0 is a
#   commit that was never seen, 1 one that was seen once, and from 2 on there is one more for each entry that was made
#   and replaced without ever being used. After `UNUSED_MAX` of these the commit is not cached any more. Two groups may
#   share a counter; an entry is then made a little too early, or never, and responses stay right.
# - When memory is full, an entry that was not used since its last turn is evicted in favor of a new one. If the oldest
#   entry was used, it moves behind the others, and the new one has to wait for its next commit. Without this second
#   chance, a hundred thousand groups that commit in turn would evict each other's entries before their next commit.
# - Templates are shared: a broker has few distinct lists of partitions, whatever the number of groups.
#
# Entries are found by the bytes of the group id as they stand in the frame, as characters: for a group id in ASCII that
# key is the string that the entry has anyway.

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from zlib import crc32

from kproto.messages.k08_offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kproto_server.commit_cache.entry import ENTRY_SIZE_BYTES, EVICTED, IDLE, USED, CacheEntry
from kproto_server.commit_cache.template import is_stored, make_template
from kproto_server.coordinator.commit import names_a_member

if TYPE_CHECKING:
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.commit_cache.template import RequestTemplate
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.requests.context import RequestContext

FIRST_VERSION = 2
"""Version 1 has a timestamp of the client in each partition, which may decide over the commit."""
FIRST_FLEXIBLE_VERSION = 8

ENTRIES_SIZE_MAX_BYTES = 40 << 20
"""Memory of all entries."""
FRAME_SIZE_MAX_BYTES = 16_384
"""Size of the largest frame that is cached. Larger ones would take much memory and save little of their time."""
TEMPLATES_MAX = 64
"""Templates of one frame size and version. If there are more, all are dropped; the next commits make them again."""
TEMPLATES_ALL_MAX = 4096
"""Templates of all frame sizes and versions. If there are more, all are dropped, too."""
CANDIDATES_COUNT = 1 << 19
"""Counters of candidates, a byte each."""
CANDIDATES_MAX = 200_000
"""Counters in use before all are set to 0: more would be shared by too many groups."""
UNUSED_MAX = 16
"""Entries of one candidate that may be replaced without ever being used."""
KEY_ENCODING = "latin-1"
"""One character for each byte, whatever the bytes are."""
SHORTEST_COMMIT_BYTES = 20
"""No OffsetCommit is shorter."""


class CachedCommits:
    """The cached commits of all groups. Only `CommitCache` calls its methods, and fault rules `drop_all`."""

    def __init__(self, coordinator: GroupCoordinator, cluster: Cluster) -> None:
        self.coordinator = coordinator
        self.cluster = cluster
        self._offsets = coordinator.offsets
        """The store whose groups the entries belong to."""
        self._entries: dict[str, CacheEntry] = {}
        self._turns: deque[str] = deque()
        """The groups that have entries, in the order in which their entries may be evicted."""
        self._size_bytes = 0
        self._templates: dict[tuple[int, int], list[RequestTemplate]] = {}
        """By size of the frame and version."""
        self._template_count = 0
        self._candidates = bytearray(CANDIDATES_COUNT)
        self._candidates_in_use = 0

    def find(self, frame: bytes) -> CacheEntry | None:
        """Return the entry of a frame's sender if the frame repeats its template."""
        entry = self._entries.get(_key(group_id_in(frame)))
        if entry is None:
            return None
        template = entry.template
        if len(frame) != template.frame_size or frame[template.sender] != entry.sender:
            return None
        return entry if int.from_bytes(frame, "big") & template.mask == template.constant else None

    def find_in_template(self, frame: bytes, sender: bytes, template: RequestTemplate) -> CacheEntry | None:
        """As `find`, for a frame that has the constant bytes of this template."""
        if template.is_simple:
            entry = self._entries.get(_key(sender))
            if entry is None or entry.template is template:
                return entry
        return self.find(frame)

    def apply(self, entry: CacheEntry) -> None:
        """Make an entry the latest commit of its group."""
        key = _key(entry.frame[entry.template.group])
        # Two members of a group, or two clients, have an entry each. The one that commits takes the place of the other,
        # which its connection still has, and takes it back with its next commit.
        if self._entries.get(key) is not entry:
            self._put(key, entry)
        entry.store = self.coordinator.offsets
        entry.store.apply_commit(entry.group_id, entry)

    def learn(
        self,
        frame: bytes,
        body_position: int,
        context: RequestContext,
        request: object,
        response: object,
        response_frame: bytes,
    ) -> None:
        """Take note of a commit that the reference path has responded to."""
        assert isinstance(request, OffsetCommitRequest)
        assert isinstance(response, OffsetCommitResponse)
        if len(frame) > FRAME_SIZE_MAX_BYTES or self.cluster.limits_handler_time:
            return
        if self._offsets is not self.coordinator.offsets:
            self._clear()
        candidates = self._candidates
        group = request.group_id.encode()
        key = request.group_id if request.group_id.isascii() else _key(group)
        index = _candidate(group, len(frame))
        if not candidates[index]:
            self._note_candidate(index)
            return
        # Checked in the order of their costs. Most candidates end here, as their commits come only once.
        if candidates[index] > UNUSED_MAX or not _is_accepted(request, response) or _depends_on_the_group(request):
            return
        before = self._entries.get(key)
        if before is None and not self._make_room(ENTRY_SIZE_BYTES + len(frame)):
            return
        if not is_stored(context, request):
            return  # deleted in the meantime, as a response may wait for the log
        template = self._template(frame, body_position, context, request, response_frame)
        if template is None:
            return
        # An entry that was used before it was replaced shows that caching this commit is worth it: the count starts
        # again.
        candidates[index] = 2 if before is not None and before.usage == USED else candidates[index] + 1
        self._put(key, CacheEntry(template, frame, context, request))

    def _note_candidate(self, index: int) -> None:
        # Dropping all counters costs each group one more commit on the reference path.
        if self._candidates_in_use == CANDIDATES_MAX:
            self._candidates = bytearray(CANDIDATES_COUNT)
            self._candidates_in_use = 0
        self._candidates[index] = 1
        self._candidates_in_use += 1

    def drop_all(self) -> None:
        """Evict all entries: commits take the reference path until they are learned again."""
        self._turns.clear()
        for key, entry in list(self._entries.items()):
            self._evict(key, entry)

    def _clear(self) -> None:
        """Drop all entries: the offsets topic was deleted, and all groups with it."""
        self._offsets = self.coordinator.offsets
        self._entries.clear()
        self._turns.clear()
        self._size_bytes = 0

    def _put(self, key: str, entry: CacheEntry) -> None:
        before = self._entries.get(key)
        if before is None:
            self._turns.append(key)
        else:
            self._size_bytes -= before.size_bytes
        self._size_bytes += entry.size_bytes
        self._entries[key] = entry
        if entry.usage == EVICTED:
            entry.usage = USED

    def _make_room(self, size_bytes: int) -> bool:
        """Evict entries until there is room; return False if the next one to evict was used."""
        while self._size_bytes + size_bytes > ENTRIES_SIZE_MAX_BYTES and self._turns:
            key = self._turns.popleft()
            entry = self._entries[key]
            if entry.usage != IDLE:
                entry.usage = IDLE
                self._turns.append(key)
                return False
            self._evict(key, entry)
        return True

    def _evict(self, key: str, entry: CacheEntry) -> None:
        del self._entries[key]
        self._size_bytes -= entry.size_bytes
        self._candidates[_candidate(key.encode(KEY_ENCODING), entry.template.frame_size)] = 1
        entry.usage = EVICTED
        if entry.store is not None:
            entry.store.settle(entry.group_id)

    def _template(
        self,
        frame: bytes,
        body_position: int,
        context: RequestContext,
        request: OffsetCommitRequest,
        response_frame: bytes,
    ) -> RequestTemplate | None:
        """Return the template of a frame; None: the frame is not encoded as the codec would encode it."""
        number, cluster_version = int.from_bytes(frame, "big"), self.cluster.version
        templates = self._templates.setdefault((len(frame), context.api_version), [])
        for template in templates:
            if (
                number & template.mask == template.constant
                and template.node is context.node
                and template.cluster_version == cluster_version
            ):
                return template
        made = make_template(frame, body_position, context, request, response_frame)
        if made is not None:
            if len(templates) >= TEMPLATES_MAX:
                self._template_count -= len(templates)
                templates.clear()
            if self._template_count >= TEMPLATES_ALL_MAX:
                self._templates.clear()
                self._template_count = 0
                templates = self._templates[len(frame), context.api_version] = []
            templates.append(made)
            self._template_count += 1
        return made


def _key(group: bytes) -> str:
    return group.decode(KEY_ENCODING)


def _candidate(group: bytes, frame_size: int) -> int:
    """Return the index of a candidate's counter."""
    return crc32(group, frame_size) % CANDIDATES_COUNT


def group_id_in(frame: bytes) -> bytes:
    """Return the bytes of the group id in an OffsetCommit; of another API's frame, any bytes.

    The byte before the group id is the low byte of its size; in flexible versions its size plus one, behind an empty
    tag section.
    """
    if len(frame) < SHORTEST_COMMIT_BYTES:
        return b""
    position = 12 + (0 if frame[8] else frame[9])  # the size of a client id that is null is negative
    if position > len(frame):
        return b""
    end = position + frame[position - 1]
    return frame[position : end - 1 if frame[3] >= FIRST_FLEXIBLE_VERSION else end]


def _depends_on_the_group(request: OffsetCommitRequest) -> bool:
    """Whether a commit without generation depends on whether its group exists.

    A simple group may exist by its offsets alone, which `CommitCache.look_up` does not look at.
    """
    return request.generation_id_or_member_epoch < 0 and names_a_member(request)


def _is_accepted(request: OffsetCommitRequest, response: OffsetCommitResponse) -> bool:
    """Whether every partition was named once, and stored."""
    named = [(t.name, t.topic_id, p.partition_index) for t in request.topics for p in t.partitions]
    if not named or len(set(named)) != len(named) or any(not t.partitions for t in request.topics):
        return False
    return not any(p.error_code for t in response.topics for p in t.partitions)
