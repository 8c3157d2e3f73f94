"""Checks of groups: those that are listed, described, deleted, or subscribed to topics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k42_delete_groups import DeletableGroupResult
from kproto_server.authorization.checks import (
    Asked,
    Check,
    Perform,
    changed,
    changed_in_slices,
    element_struct,
    filtered,
    on_topics,
    parted,
    refused,
)
from kproto_server.deferred import LargeResponse, at_once, changed_array, noting_errors
from kproto_server.handlers._error_responses import filled
from kproto_server.handlers._operations import AuthorizedOperationsBehavior
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from kproto_server.requests.context import RequestContext

GROUPS = "groups"
"""The array of the responses that describe groups."""
SLICE_GROUPS, SLICE_TOPICS = 200, 2_000
"""Groups, or members and their topics, that are looked at in one slice: 10 ms."""


class GroupRightsBehavior(VersionBehavior):
    """What Kafka releases do differently with rights to groups (measured on 2.0.1, 2.8.2 and 4.4.0)."""

    @cached_property
    def lists_visible_groups(self) -> bool:
        """Whether ListGroups returns the groups that the client may see; before 2.1 it needs DESCRIBE on the cluster
        (KIP-231)."""
        return self.at_least(2, 1)

    @cached_property
    def hides_groups_with_hidden_topics(self) -> bool:
        """Whether a group with a topic that the client may not see is described as an error: assigned topics of
        consumer and share groups, all topics of a topology (measured on 3.9.2, 4.0.2, 4.1.2, 4.2.2 and 4.4.0)."""
        return self.at_least(4, 0)


class Visibility(NamedTuple):
    """Which groups a client may see, of those that it may describe."""

    sees: Callable[[Asked, Any], Generator[None, None, bool]]
    """Returns whether the client may see all topics of a described group; yields between slices."""
    message: str
    """The error message of other groups."""


def described_groups(asked_array: str, visibility: Visibility | None = None) -> Check:
    """Return a check of groups that are described: they need DESCRIBE, and have the operations that are allowed.

    ``asked_array``: the field of the request that has the group ids.
    """

    def check(asked: Asked, perform: Perform) -> Any:
        request, rights = asked.request, asked.rights
        allowed, others = parted(getattr(request, asked_array), lambda one: rights.on_group(Operation.DESCRIBE, one))
        struct = element_struct(asked.context.api_key, GROUPS)
        denied = [_refused(asked, struct, one, ErrorCode.GROUP_AUTHORIZATION_FAILED) for one in others]
        has_visibility = asked.context.behavior(GroupRightsBehavior).hides_groups_with_hidden_topics

        def small(response: Any) -> Any:
            groups = changed_array(lambda group: _with_operations(asked, group), response.groups, before=denied)
            return response.replace(groups=groups)

        def large(result: LargeResponse) -> Generator[None, None, LargeResponse]:
            shown: Callable[[Any], Any] = partial(_with_operations, asked)
            if visibility is not None and has_visibility:
                shown = yield from _shown_in_slices(asked, visibility, result.response)
            error_codes = [int(one.error_code) for one in denied]
            response: Any = result.response
            groups = changed_array(noting_errors(shown, error_codes), response.groups, before=denied)
            return LargeResponse(response.replace(groups=groups), error_codes)

        result = perform(request.replace(**{asked_array: allowed}))
        return changed_in_slices(result, small, large, asked.context.now_ms)

    return check


def _refused(asked: Asked, struct: Any, group_id: str, error: ErrorCode, **values: str) -> Any:
    operations = asked.context.behavior(AuthorizedOperationsBehavior).unrequested
    values_of_error = {"group_id": group_id, "error_code": error, "authorized_operations": operations, **values}
    return filled(struct, values_of_error, asked.context.api_version)


def _shown_in_slices(
    asked: Asked, visibility: Visibility, response: Any
) -> Generator[None, None, Callable[[Any], Any]]:
    """Look at the topics of all described groups; return the function that returns each as the client sees it."""
    seen: dict[str, tuple[int, int, bool]] = {}
    for number, group in enumerate(response.groups, start=1):
        if group.group_id not in seen:
            is_visible = yield from visibility.sees(asked, group)
            seen[group.group_id] = (group.group_epoch, group.assignment_epoch, is_visible)
        if number % SLICE_GROUPS == 0:
            yield

    def shown(group: Any) -> Any:
        *epochs, is_visible = seen[group.group_id]
        if epochs != [group.group_epoch, group.assignment_epoch]:  # it has changed meanwhile
            is_visible = at_once(visibility.sees(asked, group))
        if is_visible:
            return _with_operations(asked, group)
        error, message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, visibility.message
        return _refused(asked, type(group), group.group_id, error, error_message=message)

    return shown


def _with_operations(asked: Asked, group: Any) -> Any:
    if not asked.request.include_authorized_operations or group.authorized_operations <= 0:
        return group
    operations = asked.rights.bits(group.authorized_operations, ResourceType.GROUP, group.group_id)
    return group.replace(authorized_operations=operations)


def _sees_assigned_topics(asked: Asked, group: Any) -> Generator[None, None, bool]:
    names: set[str] = set()
    left = SLICE_TOPICS
    for member in group.members:
        assigned = [member.assignment.topic_partitions]
        if hasattr(member, "target_assignment"):
            assigned.append(member.target_assignment.topic_partitions)
        for topics in assigned:
            names.update([topic.topic_name for topic in topics])
            left -= len(topics)
        left -= 1
        if left <= 0:
            left = SLICE_TOPICS
            yield
    return _sees(asked, names)


def _sees_topology(asked: Asked, group: Any) -> Generator[None, None, bool]:
    yield from ()  # a heartbeat has sent it, so it is small
    return _sees(asked, _topics_of(group.topology))


def _sees(asked: Asked, names: Iterable[str]) -> bool:
    return all(asked.rights.on_topic(Operation.DESCRIBE, name) for name in names)


ASSIGNED_TOPICS = Visibility(
    _sees_assigned_topics, "The group has described topic(s) that the client is not authorized to describe."
)
TOPICS_OF_TOPOLOGY = Visibility(
    _sees_topology, "The described group uses topics that the client is not authorized to describe."
)


def list_groups(asked: Asked, perform: Perform) -> Any:
    """All groups need DESCRIBE on the cluster; otherwise those are listed that the client may see."""
    rights = asked.rights
    if rights.on_cluster(Operation.DESCRIBE):
        return perform(asked.request)
    if not asked.context.behavior(GroupRightsBehavior).lists_visible_groups:
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def is_visible(group: Any) -> bool:
        return rights.on_group(Operation.DESCRIBE, group.group_id)

    return filtered(perform(asked.request), "groups", is_visible, asked.context.now_ms)


def delete_groups(asked: Asked, perform: Perform) -> Any:
    """Groups need DELETE."""
    request, rights = asked.request, asked.rights
    allowed, others = parted(request.groups_names, lambda one: rights.on_group(Operation.DELETE, one))
    denied = tuple(
        filled(
            DeletableGroupResult,
            {"group_id": one, "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED},
            asked.context.api_version,
        )
        for one in others
    )
    return changed(
        perform(request.replace(groups_names=allowed)),
        lambda response: response.replace(results=(*response.results, *denied)),
    )


def if_enabled(has_protocol: Callable[[RequestContext], bool], *checks: Check) -> tuple[Check, ...]:
    """Return checks of a group protocol that a broker may not have: it refuses the request before it looks at rights
    (measured on 3.7.2, 3.8.1, 3.9.2 and 4.1.2)."""

    def limited(check: Check) -> Check:
        def checked(asked: Asked, perform: Perform) -> Any:
            return check(asked, perform) if has_protocol(asked.context) else perform(asked.request)

        return checked

    return tuple(map(limited, checks))


def has_consumer_groups(context: RequestContext) -> bool:
    """Return whether the broker has the protocol of KIP-848."""
    return context.coordinator.behavior.is_new_coordinator


def has_share_groups(context: RequestContext) -> bool:
    """Return whether the broker has share groups (KIP-932)."""
    return context.share_groups.is_enabled


def subscription(asked: Asked, perform: Perform) -> Any:
    """The topics of a member's subscription need DESCRIBE."""
    return _all_visible(asked, perform, asked.request.subscribed_topic_names or ())


def topology(asked: Asked, perform: Perform) -> Any:
    """The topics of a topology need DESCRIBE."""
    return _all_visible(asked, perform, _topics_of(asked.request.topology))


def _topics_of(topology: Any) -> dict[str, None]:
    """Return the names of the topics of a topology; none if it is None."""
    names: dict[str, None] = {}
    for one in () if topology is None else topology.subtopologies:
        names |= dict.fromkeys(one.source_topics)
        names |= dict.fromkeys(one.repartition_sink_topics)
        names |= dict.fromkeys(topic.name for topic in one.repartition_source_topics)
        names |= dict.fromkeys(topic.name for topic in one.state_changelog_topics)
    return names


def _all_visible(asked: Asked, perform: Perform, names: Any) -> Any:
    if _sees(asked, names):
        return perform(asked.request)
    return refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)


def share_group_offsets(asked: Asked, perform: Perform) -> Any:
    """Groups need DESCRIBE, topics, too: named ones have errors, others are not listed."""
    request, rights, version = asked.request, asked.rights, asked.context.api_version
    struct = element_struct(asked.context.api_key, "groups")
    allowed, others = parted(request.groups, lambda one: rights.on_group(Operation.DESCRIBE, one.group_id))
    denied = tuple(
        filled(struct, {"group_id": one.group_id, "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED}, version)
        for one in others
    )
    named = {one.group_id: one.topics is not None for one in request.groups}

    def visible(group: Any) -> Any:
        topics = []
        for one in group.topics:
            if rights.on_topic(Operation.DESCRIBE, one.topic_name):
                topics.append(one)
            elif named[group.group_id]:
                topics.append(_without_offsets(one, version))
        return group.replace(topics=tuple(topics))

    return changed(
        perform(request.replace(groups=allowed)),
        lambda response: response.replace(groups=changed_array(visible, response.groups, behind=denied)),
    )


def _without_offsets(topic: Any, version: int) -> Any:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return topic.replace(
        topic_id=bytes(16),
        partitions=tuple(
            filled(
                type(one),
                {
                    "partition_index": one.partition_index,
                    "start_offset": -1,
                    "leader_epoch": 0,
                    "lag": -1,
                    "error_code": error,
                    "error_message": error.message,
                },
                version,
            )
            for one in topic.partitions
        ),
    )


def altered_share_group_offsets(asked: Asked, perform: Perform) -> Any:
    """Topics need READ; the response has the ids of all."""

    def with_id(one: Any) -> Any:
        topic = asked.context.cluster.topic(one.topic_name)
        return one if topic is None else one.replace(topic_id=topic.topic_id)

    return changed(
        on_topics(Operation.READ)(asked, perform),
        lambda response: response.replace(responses=tuple(map(with_id, response.responses))),
    )
