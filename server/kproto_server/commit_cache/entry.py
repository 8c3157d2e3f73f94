"""Entries of the commit cache: the latest commit of one group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kproto_server.coordinator.change_log import Change
from kproto_server.coordinator.offsets import LazyEntries

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto_server.commit_cache.template import RequestTemplate
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.offsets import CommitEntries, OffsetStore
    from kproto_server.requests.context import RequestContext

ENTRY_SIZE_BYTES = 294
"""Memory of an entry besides its frame: objects, and what dictionaries need for it."""

NEVER_USED, USED, IDLE, EVICTED = range(4)
"""Whether an entry has responded to a commit: never; since its last turn to be evicted; not since then. An evicted one
belongs to no group, though a connection may still have it."""


class EntryOwner(Protocol):
    """The cached commits, as an entry uses them."""

    coordinator: GroupCoordinator

    def apply(self, entry: CacheEntry) -> None:
        """Make the entry the lazy entries of its group."""


class CacheEntry(LazyEntries):
    """The latest commit of a group: a template, and the frame that has the offsets.

    There are as many as groups, so each field counts; everything that commits of different groups have in common is in
    the template.
    """

    __slots__ = ("frame", "group_id", "now_ms", "partition", "request", "store", "template", "usage")

    def __init__(
        self, template: RequestTemplate, frame: bytes, context: RequestContext, request: OffsetCommitRequest
    ) -> None:
        self.template: RequestTemplate = template
        self.group_id: str = request.group_id
        self.request: OffsetCommitRequest = template.member_of(request)
        """Generation, member and instance of the commit, for `commit_error`."""
        partition = context.coordinator.partition_of(request.group_id)
        assert partition is not None, "the commit was accepted"
        self.partition: int = partition
        """The offsets partition of the group."""
        self.frame: bytes = frame
        """The latest commit that is visible."""
        self.now_ms: int = context.now_ms
        """When it was made."""
        self.store: OffsetStore | None = None
        """The store that has this entry as lazy entries; None: the commit is decoded."""
        self.usage: int = NEVER_USED

    @property
    def size_bytes(self) -> int:
        return ENTRY_SIZE_BYTES + self.template.frame_size

    @property
    def sender(self) -> bytes:
        return self.frame[self.template.sender]

    @property
    def expires_early(self) -> bool:
        return self.template.expires_early

    def take(self) -> CommitEntries:
        self.store = None
        return self.template.entries(self.frame, self.now_ms)

    def apply(self, frame: bytes, now_ms: int, commits: EntryOwner) -> None:
        """Make a commit visible."""
        self.frame, self.now_ms = frame, now_ms
        if self.store is not commits.coordinator.offsets:
            commits.apply(self)


class PendingCommit(Change):
    """A commit whose record batch is in the log's queue."""

    __slots__ = ("_commits", "_entry", "_frame", "_now_ms", "on_settled", "response")

    def __init__(self, entry: CacheEntry, commits: EntryOwner, frame: bytes, now_ms: int) -> None:
        self.group_id: str = entry.group_id
        self.commits: CommitEntries = entry.template.stored
        self.response: bytes | None = None
        self.on_settled: Callable[[], object] | None = None
        self._entry = entry
        self._commits = commits
        self._frame = frame
        self._now_ms = now_ms

    def settle(self, error: int) -> None:
        """Apply the commit if the log has it, and make the response."""
        template, frame = self._entry.template, self._frame
        if error:
            self.response = template.failure(frame, error)
        else:
            self._entry.apply(frame, self._now_ms, self._commits)
            self.response = template.response_head + frame[4:8] + template.response_tail
        if self.on_settled is not None:
            self.on_settled()
