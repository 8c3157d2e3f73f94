"""Checks of groups: those that are listed, described, deleted, or subscribed to topics."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kproto.codes import ErrorCode
from kproto.messages.k42_delete_groups import DeletableGroupResult
from kproto_server.authorization.checks import (
    Asked,
    Check,
    Perform,
    changed,
    element_struct,
    filtered,
    on_topics,
    parted,
    refused,
)
from kproto_server.deferred import changed_array
from kproto_server.handlers._error_responses import filled
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation, ResourceType

NO_OPERATIONS = -(2**31)


class GroupRightsBehavior(VersionBehavior):
    """What Kafka releases do differently with rights to groups (measured on 2.0.1, 2.8.2 and 4.4.0)."""

    @cached_property
    def lists_visible_groups(self) -> bool:
        """Whether ListGroups returns the groups that the client may see; before 2.1 it needs DESCRIBE on the cluster
        (KIP-231)."""
        return self.at_least(2, 1)


def described_groups(asked_array: str, array: str) -> Check:
    """Return a check of groups that are described: they need DESCRIBE, and have the operations that are allowed."""

    def check(asked: Asked, perform: Perform) -> Any:
        request, rights, version = asked.request, asked.rights, asked.context.api_version
        allowed, others = parted(getattr(request, asked_array), lambda one: rights.on_group(Operation.DESCRIBE, one))
        struct = element_struct(asked.context.api_key, array)
        denied = tuple(
            filled(
                struct,
                {
                    "group_id": one,
                    "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED,
                    "authorized_operations": NO_OPERATIONS,
                },
                version,
            )
            for one in others
        )

        def finished(response: Any) -> Any:
            def shown(group: Any) -> Any:
                return _with_operations(asked, _with_visible_topics(asked, group))

            return response.replace(**{array: changed_array(shown, getattr(response, array), before=denied)})

        return changed(perform(request.replace(**{asked_array: allowed})), finished)

    return check


def _with_operations(asked: Asked, group: Any) -> Any:
    if not asked.request.include_authorized_operations or group.authorized_operations <= 0:
        return group
    operations = asked.rights.bits(group.authorized_operations, ResourceType.GROUP, group.group_id)
    return group.replace(authorized_operations=operations)


def _with_visible_topics(asked: Asked, group: Any) -> Any:
    """Return a group, or an error instead if its members have topics that the client may not see."""
    names: set[str] = set()
    for member in group.members:
        names.update(getattr(member, "subscribed_topic_names", ()))
        for assignment in ("assignment", "target_assignment"):
            for topic in getattr(getattr(member, assignment, None), "topic_partitions", ()):
                names.add(topic.topic_name)
    if all(asked.rights.on_topic(Operation.DESCRIBE, name) for name in names):
        return group
    return filled(
        type(group),
        {
            "group_id": group.group_id,
            "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "error_message": "The group has described topic(s) that the client is not authorized to describe.",
            "authorized_operations": NO_OPERATIONS,
        },
        asked.context.api_version,
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


def subscription(asked: Asked, perform: Perform) -> Any:
    """The topics of a member's subscription need DESCRIBE."""
    return _all_visible(asked, perform, asked.request.subscribed_topic_names or ())


def topology(asked: Asked, perform: Perform) -> Any:
    """The topics of a topology need DESCRIBE."""
    described = asked.request.topology
    names: dict[str, None] = {}
    for one in () if described is None else described.subtopologies:
        names |= dict.fromkeys(one.source_topics)
        names |= dict.fromkeys(one.repartition_sink_topics)
        names |= dict.fromkeys(topic.name for topic in one.repartition_source_topics)
        names |= dict.fromkeys(topic.name for topic in one.state_changelog_topics)
    return _all_visible(asked, perform, names)


def _all_visible(asked: Asked, perform: Perform, names: Any) -> Any:
    if all(asked.rights.on_topic(Operation.DESCRIBE, name) for name in names):
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
