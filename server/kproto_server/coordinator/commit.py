"""The decisions of OffsetCommit: membership, metadata length, timestamps, and the error of a failed write.

Theory of operation. The group as a whole decides whether a commit is accepted, so one error goes to all partitions that
exist. The order of the checks differs between releases, and clients see it: a member of an old generation that commits
in CompletingRebalance gets REBALANCE_IN_PROGRESS up to 2.3, but since 2.4 the error of its own membership first
(UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION). `commit_error` has that order, with a `CoordinatorBehavior` attribute for each
difference.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import wrapped
from kproto_server.coordinator.groups import GroupState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
    from kproto_server.cluster.topics import Topic
    from kproto_server.configuration.settings import Settings
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

DEFAULT = -1
"""The value of a retention time or timestamp that means the broker's default; other negative values do not (OC-41)."""

MEMBER_EPOCHS = 9
"""From this version of OffsetCommit and OffsetFetch on, the generation may be the member epoch of a consumer group."""


class CommitLimits(NamedTuple):
    """The settings that limit commits."""

    metadata_max_bytes: int
    retention_ms: int
    honors_overrides: bool
    """Whether the retention time of a request is obeyed.

    DEVIATION: by default it is ignored, as KIP-211 says; released brokers obey it (D2)."""


@lru_cache(maxsize=16)
def limits_of(settings: Settings) -> CommitLimits:
    """Return the limits of these settings. Cached: a `Settings` never changes."""
    return CommitLimits(
        metadata_max_bytes=settings.int("offset.metadata.max.bytes"),
        retention_ms=settings.int("offsets.retention.minutes") * 60_000,
        honors_overrides=settings.str("offsets.retention.override") == "honour",
    )


def commit_error(
    group: Group | None,
    request: OffsetCommitRequest,
    api_version: int,
    behavior: CoordinatorBehavior,
    topics: Mapping[str, Topic],
) -> int:
    """Return why a group rejects a commit; 0 if it accepts the commit (OC-21 to OC-26).

    ``topics``: those of the cluster, by name.
    """
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation >= 0:
            return 0 if behavior.stores_any_commit else behavior.unknown_group_error(api_version)
        if behavior.simple_commit_may_name_member or not names_a_member(request):
            return 0
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.kind != "classic":
        if group.kind == "share":
            return ErrorCode.GROUP_ID_NOT_FOUND
        return epoch_group_error(group, request, api_version, behavior, topics)
    state = group.state
    if (
        state is GroupState.EMPTY
        and generation < 0
        and (behavior.simple_commit_may_name_member or not names_a_member(request))
    ):
        return 0
    if state is GroupState.DEAD:
        return behavior.dead_group_error
    return _member_error(group, generation, request.member_id, request.group_instance_id, behavior)


def names_a_member(request: OffsetCommitRequest) -> bool:
    """Return whether a commit names a member or an instance."""
    return request.member_id != "" or request.group_instance_id is not None


def _member_error(
    group: Group, generation: int, member_id: str, group_instance_id: str | None, behavior: CoordinatorBehavior
) -> int:
    if group_instance_id is not None:
        owner = group.static_members.get(group_instance_id)
        if owner is None:
            if behavior.requires_known_instance_id:
                return ErrorCode.UNKNOWN_MEMBER_ID
        elif owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    completing = group.state is GroupState.COMPLETING_REBALANCE
    if completing and behavior.refuses_all_before_sync:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.REBALANCE_IN_PROGRESS if completing else 0


def epoch_group_error(
    group: Group,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    api_version: int,
    behavior: CoordinatorBehavior,
    topics: Mapping[str, Topic],
) -> int:
    """Return why a group whose members have epochs rejects a commit; 0 if it accepts the commit."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members:
        return 0
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not member.speaks_classic and api_version < MEMBER_EPOCHS:
        return ErrorCode.UNSUPPORTED_VERSION
    has_task_epochs = group.kind == "streams" or behavior.commits_have_assignment_epochs
    if epoch < member.epoch and has_task_epochs and group.had_partitions(request, topics):
        return 0
    return 0 if epoch == member.epoch else member_epoch_error(member.speaks_classic)


def member_epoch_error(speaks_classic: bool) -> int:
    """Return the error for a wrong epoch, in the protocol that the member uses (OC-26, OF-36)."""
    return ErrorCode.ILLEGAL_GENERATION if speaks_classic else ErrorCode.STALE_MEMBER_EPOCH


def metadata_too_large(metadata: str, limit: int) -> bool:
    """Return whether metadata has more UTF-16 code units than `offset.metadata.max.bytes` (OC-30, OC-31)."""
    # A character is one or two units: most metadata is short enough without counting.
    return 2 * len(metadata) > limit and len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * limit


def expire_timestamp(now_ms: int, override_ms: int, limits: CommitLimits, behavior: CoordinatorBehavior) -> int | None:
    """Return the expire timestamp of offsets committed now; None if the group's state decides (OC-40)."""
    if override_ms != DEFAULT and limits.honors_overrides:
        return wrapped(now_ms + override_ms)
    return now_ms + limits.retention_ms if behavior.offsets_have_expire_timestamp else None


def expires_early(request: OffsetCommitRequest, api_version: int, limits: CommitLimits) -> bool:
    """Return whether offsets may expire sooner than the broker's retention time after the commit: if the request's own
    retention time is obeyed, or in v1, where the client sets the commit timestamp."""
    return api_version == 1 or (limits.honors_overrides and request.retention_time_ms != DEFAULT)


def timestamps_of_v1(
    timestamp_ms: int, now_ms: int, limits: CommitLimits, behavior: CoordinatorBehavior
) -> tuple[int, int | None]:
    """Return commit and expire timestamp of an offset committed with a timestamp, or with `DEFAULT` (OC-40)."""
    if timestamp_ms == DEFAULT:
        return now_ms, expire_timestamp(now_ms, DEFAULT, limits, behavior)
    commit_timestamp_ms = timestamp_ms if behavior.uses_client_timestamp else now_ms
    expires = wrapped(timestamp_ms + limits.retention_ms) if behavior.offsets_have_expire_timestamp else None
    return commit_timestamp_ms, expires
