"""ConsumerGroupDescribe (API key 69): the groups of KIP-848 with their members and assignments; others get an error."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kproto_server.deferred import lazily
from kproto_server.handlers._described_groups import empty_ids_first, find, refused, respond
from kproto_server.handlers._operations import NOT_REQUESTED, AuthorizedOperationsBehavior
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
    from kproto_server.coordinator.consumer_groups.data import Assignment as Partitions
    from kproto_server.coordinator.consumer_groups.data import ConsumerMember
    from kproto_server.coordinator.consumer_groups.group import ConsumerGroup
    from kproto_server.deferred import LargeResponse
    from kproto_server.requests.context import RequestContext

NO_GROUP = partial(DescribedGroup, assignor_name="")
CLASSIC, CONSUMER = 0, 1
"""Values of ``member_type``."""


class ConsumerGroupDescribeBehavior(VersionBehavior):
    """What Kafka releases do differently in ConsumerGroupDescribe."""

    @cached_property
    def fails_for_empty_ids(self) -> bool:
        """Whether one empty group id gives UNKNOWN_SERVER_ERROR for all groups (measured on 4.0.0 and 4.0.1)."""
        return self.release == (4, 0, 0)


def handle(request: ConsumerGroupDescribeRequest, context: RequestContext) -> LargeResponse:
    operations = NOT_REQUESTED
    if request.include_authorized_operations:
        operations = context.behavior(AuthorizedOperationsBehavior).on_group
    fails = (
        context.coordinator.behavior.is_new_coordinator
        and context.behavior(ConsumerGroupDescribeBehavior).fails_for_empty_ids
    )
    if fails and not all(request.group_ids):
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        return respond(
            ConsumerGroupDescribeResponse, lambda group_id: refused(NO_GROUP, group_id, error), request.group_ids
        )
    group_ids = empty_ids_first(request.group_ids, context)
    return respond(ConsumerGroupDescribeResponse, lambda group_id: _describe(group_id, operations, context), group_ids)


def _describe(group_id: str, operations: int, context: RequestContext) -> DescribedGroup:
    if not context.coordinator.behavior.is_new_coordinator:
        return refused(NO_GROUP, group_id, ErrorCode.UNSUPPORTED_VERSION)
    group = find(NO_GROUP, group_id, "consumer", context)
    if isinstance(group, DescribedGroup):
        return group
    from kproto_server.coordinator.consumer_groups.group import ConsumerGroup

    assert isinstance(group, ConsumerGroup), "of this kind"
    return _consumer(group, operations, context)


def _consumer(group: ConsumerGroup, operations: int, context: RequestContext) -> DescribedGroup:
    from kproto_server.coordinator.consumer_groups.limits import consumer_limits_of
    from kproto_server.coordinator.consumer_groups.targets import preferred_assignor

    data = group.data
    default_assignor = consumer_limits_of(context.settings.current).assignors[0]
    return DescribedGroup(
        error_code=0,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=data.epoch,
        assignment_epoch=data.assignment_epoch,
        assignor_name=preferred_assignor(data.members.values()) or default_assignor,
        members=lazily(
            lambda member: _member(member, data.targets.get(member.member_id, {}), context), list(data.members.values())
        ),
        authorized_operations=operations,
    )


def _member(member: ConsumerMember, target: Partitions, context: RequestContext) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(_present(member, context), context),
        target_assignment=_assignment(target, context),
        member_type=CLASSIC if member.speaks_classic else CONSUMER,
    )


def _present(member: ConsumerMember, context: RequestContext) -> Partitions:
    """Return what a member has; from 4.3 on also what it still has to revoke."""
    if not member.revoking or not context.coordinator.behavior.describes_revocations:
        return member.assigned
    topic_ids = {**member.assigned, **member.revoking}
    return {one: member.assigned.get(one, frozenset()) | member.revoking.get(one, frozenset()) for one in topic_ids}


def _assignment(partitions: Partitions, context: RequestContext) -> Assignment:
    """Return partitions with the names of their topics; those of deleted topics are left out."""
    topics = [(context.cluster.topic_by_id(topic_id), indexes) for topic_id, indexes in partitions.items()]
    return Assignment(
        topic_partitions=tuple(
            [
                TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=tuple(sorted(indexes)))
                for topic, indexes in topics
                if topic is not None
            ]
        )
    )
