"""Responds to repeated OffsetCommit requests without decoding them. Other packages call `look_up` and `learn` only."""

# Theory of operation
# ===================
#
# A consumer sends the same OffsetCommit again and again: each request differs from the one before in its offsets and
# its correlation id, and in nothing else. The cache responds to such a request from the bytes of an earlier one.
#
# It must never change a response or an offset (D13). It is fast because of what it does not do again:
#
# 1. It does not decode. `learn` gets a request that the reference path has accepted, and makes a `RequestTemplate` of
#    it: which bytes of the frame are constant, and where the offsets are. By the layout of OffsetCommit, a frame with
#    the same constant bytes is the same request with other offsets.
# 2. It does not repeat decisions whose outcome cannot have changed. Whether topics and partitions exist and who leads
#    them depends on the cluster's metadata, so it stands as long as `Cluster.version` does. Whether the group accepts
#    the commit may change at any time: `commit_error`, the decision of the reference path, is made for each commit.
# 3. It does not store each offset. A `CacheEntry` is itself the latest commit of its group: the offset store has it as
#    lazy entries (`OffsetStore.apply_commit`), decoded when an offset is read. Until then, a later commit replaces the
#    frame in the entry. Most commits are replaced before anything reads them.
# 4. It does not encode the record batch. A log that keeps batches gets the bytes of an earlier batch with the new
#    offsets and the new time in them (`CommitTemplate`).
#
# `CommitCache` is the cache as one connection sees it. It remembers the entry of the connection's latest commit, which
# is mostly the entry of the next one. `CachedCommits` is shared by all connections of the broker and has all entries.
#
# How much more a commit takes without one of these parts, for one partition and for ten partitions with many requests
# in flight: CPU time where there is a unit (with all parts, 1.5 and 1.7 us), otherwise instructions of the processor:
#
#     lazy entries; without them each commit is decoded and stored                +8.3 us    +21 us
#     the entry of the latest commit; without it a search by the group id         +45 %      +36 %
#     a counter per template; without it `Observations.request`                   +24 %      +20 %
#     `ChangeLog.write_now` (durability ``os``); without it `append`              +67 %      +46 %
#
# Every request that the cache does not recognize, or is not sure about, takes the reference path.

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.commit_cache.cached_commits import FIRST_VERSION
from kproto_server.commit_cache.entry import EVICTED, USED, PendingCommit
from kproto_server.coordinator.commit import commit_error

if TYPE_CHECKING:
    from kproto_server.cluster.node import Node
    from kproto_server.commit_cache.cached_commits import CachedCommits
    from kproto_server.commit_cache.entry import CacheEntry
    from kproto_server.commit_cache.template import RequestTemplate
    from kproto_server.observation.observe import Observations, RepeatedRequests
    from kproto_server.requests.context import ConnectionInfo, RequestContext

OFFSET_COMMIT = 8
OFFSET_COMMIT_KEY = b"\0\x08"
"""The first bytes of every OffsetCommit frame."""


def learns(api_key: int, api_version: int) -> bool:
    """Return whether the cache responds to repeated requests of an API in a version."""
    return api_key == OFFSET_COMMIT and api_version >= FIRST_VERSION


class CommitCache:
    """The commit cache as one connection sees it."""

    __slots__ = (
        "_cluster",
        "_commits",
        "_coordinator",
        "_counted",
        "_counter",
        "_info",
        "_last",
        "_node",
        "_observations",
        "_sender",
    )

    def __init__(
        self, commits: CachedCommits | None, observations: Observations, node: Node, info: ConnectionInfo
    ) -> None:
        """``commits``: None: the cache is off, and every request takes the reference path."""
        self._commits = commits
        if commits is not None:
            self._cluster = commits.cluster
            self._coordinator = commits.coordinator
        self._observations = observations
        self._node = node
        self._info = info
        self._last: CacheEntry | None = None
        """The entry that responded to the latest commit."""
        self._sender = b""
        """The sender's bytes of that commit."""
        self._counter: RepeatedRequests
        """Counts the requests with the template `_counted`, which is that of `_last`."""
        self._counted: RequestTemplate | None = None

    def look_up(self, frame: bytes, now_ms: int) -> bytes | PendingCommit | None:
        """Respond to a commit that repeats an earlier one; return None for every other request.

        The result is a response frame, or stands for one until the log is synced. The commit is visible with it.
        """
        last, commits = self._last, self._commits
        entry: CacheEntry | None

        # Find the entry. It has the same sender, and a template with the same constant bytes.
        if last is not None and commits is not None and len(frame) == last.template.frame_size:
            template = last.template
            sender = frame[template.sender]
            if int.from_bytes(frame, "big") & template.mask != template.constant:
                entry = commits.find(frame)  # other partitions, or another API
            elif sender == self._sender and last.usage != EVICTED:
                entry = last
            else:
                entry = commits.find_in_template(frame, sender, template)
        elif commits is not None and frame.startswith(OFFSET_COMMIT_KEY):
            entry = commits.find(frame)
        else:
            return None
        if entry is None:
            return None

        # Decide, as the reference path would.
        template, coordinator = entry.template, self._coordinator
        if (
            self._cluster.version != template.cluster_version
            or self._node is not template.node
            or coordinator.unavailable
        ):
            return None
        group = coordinator.groups.get(entry.group_id)
        if group is None:
            if not template.is_simple:
                return None  # mostly an error: the reference path decides
        elif commit_error(group, entry.request, template.api_version, coordinator.behavior, coordinator.topics):
            return None
        elif entry.request.member_id and coordinator.behavior.counts_commits_as_heartbeats:
            group.note_commit(entry.request.member_id, now_ms)

        # From here on the commit is accepted.
        entry.usage = USED
        if entry is not last:
            self._last = entry
            self._sender = frame[template.sender]
            if template is not self._counted:
                self._counted = template
                self._counter = template.counter(self._observations, self._info)
        self._counter.count += 1

        # Append.
        log = coordinator.log
        if log.keeps:
            batch_template = template.batch_template or template.make_batch_template()
            checked = batch_template.checked(frame, now_ms)
            error = log.write_now(entry.partition, checked, template.record_count)
            if error is None:  # the log syncs the batches of many changes together
                pending = PendingCommit(entry, commits, frame, now_ms)
                log.append(entry.partition, pending, batch_template.batch(checked), template.record_count)
                return pending
            if error:
                return template.failure(frame, error)

        # Apply, and respond.
        entry.apply(frame, now_ms, commits)
        return template.response_head + frame[4:8] + template.response_tail

    def learn(
        self,
        frame: bytes,
        body_position: int,
        context: RequestContext,
        request: object,
        response: object,
        response_frame: bytes,
    ) -> None:
        """Take note of a request that the reference path has responded to; the next one like it may be found.

        The request is of an API and version that the cache `learns`.
        """
        if self._commits is not None:
            self._commits.learn(frame, body_position, context, request, response, response_frame)
