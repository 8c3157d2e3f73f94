"""What the descriptions of consumer, share and streams groups have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import BUCKETS_MIN, in_order_of_computed
from kproto.records.partitioning import OFFSETS_TOPIC, partition_for
from kproto_server.coordinator.description import not_found
from kproto_server.deferred import LargeResponse, lazily, noting_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kproto.message import Response
    from kproto_server.coordinator.groups import Group, Kind
    from kproto_server.requests.context import RequestContext

T = TypeVar("T")
R = TypeVar("R", bound="Response")


def respond(make: Callable[..., R], describe: Callable[[T], Any], groups: Sequence[T]) -> LargeResponse:
    """Return a response with the descriptions of groups; it is made in slices, as one group may have any size.

    Args:
        make: makes the response of the API.
        describe: returns the description of a group, with an ``error_code``; its long arrays are made by `lazily`.
        groups: what the request has of each group.
    """
    error_codes: list[int] = []
    described = lazily(noting_errors(describe, error_codes), groups)
    return LargeResponse(make(throttle_time_ms=0, groups=described), error_codes)


def empty_ids_first(group_ids: Sequence[str], context: RequestContext) -> list[str]:
    """Return the groups in the order of the response: a real broker refuses empty ids at once."""
    if not context.coordinator.behavior.is_new_coordinator:
        return list(group_ids)
    return [one for one in group_ids if not one] + by_partition([one for one in group_ids if one], context)


def by_partition(
    group_ids: Sequence[str], context: RequestContext, order: Callable[[list[str]], Iterable[str]] = list
) -> list[str]:
    """Return the groups in the order of the response of releases with the new coordinator: by their offsets partitions,
    which are in a Java HashMap (measured on 3.9.2, 4.0.2, 4.1.2, 4.2.2 and 4.4.0).

    ``order``: orders the groups of a partition.
    """
    coordinator = context.coordinator
    if len(group_ids) < 2 or not coordinator.behavior.is_new_coordinator:
        return list(group_ids)
    count = len(coordinator.offsets_partitions) or context.settings.current.int("offsets.topic.num.partitions")
    partitions = [partition_for(group_id, count) for group_id in group_ids]
    of_partitions: dict[int, list[str]] = {}
    for group_id, partition in zip(group_ids, partitions, strict=True):
        of_partitions.setdefault(partition, []).append(group_id)
    ordered = in_order_of_computed(partitions, _hash_of_partition, BUCKETS_MIN)
    return [group_id for partition in ordered for group_id in order(of_partitions[partition])]


def _hash_of_partition(partition: int) -> int:
    """Return the ``hashCode`` of Kafka's ``TopicPartition`` of the offsets topic."""
    return 31 * (31 + partition) + java_hash(OFFSETS_TOPIC)


def find(described: Callable[..., T], group_id: str, kind: Kind, context: RequestContext) -> Group | T:
    """Return a group of a kind that this node coordinates, or an error in place of it.

    The error of a coordinator has a message for share groups only (measured on 4.2.2, 4.3.1 and 4.4.0).
    """
    if not group_id:
        return refused(described, group_id, ErrorCode.INVALID_GROUP_ID)
    coordinator = context.coordinator
    error = coordinator.error_at(context.node, group_id)
    if error:
        return refused(described, group_id, error, ErrorCode(error).message if kind == "share" else None)
    group = coordinator.group(group_id)
    if group is not None and group.kind == kind:
        return group
    message = not_found(group_id) if group is None else f"Group {group_id} is not a {kind} group."
    return refused(described, group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)


def refused(described: Callable[..., T], group_id: str, error: int, message: str | None = None) -> T:
    """Return an error in place of a group; ``described``: makes the message of the API."""
    return described(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=(),
    )
