"""Checks of groups, transactions, configs and the cluster that are made in ways of their own."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kproto import registry
from kproto.codes import ErrorCode
from kproto.messages.k10_find_coordinator import Coordinator
from kproto.messages.k42_delete_groups import DeletableGroupResult
from kproto_server.authorization.checks import KAFKAS, Asked, Check, Perform, changed, on_cluster, on_topics, refused
from kproto_server.authorization.topic_checks import cluster_operations
from kproto_server.handlers._acls import AclsBehavior, filter_of
from kproto_server.handlers._error_responses import filled
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    pass

GROUP, TRANSACTION, SHARE = range(3)
BATCHED_SINCE = 4
NO_OPERATIONS = -(2**31)
TOPIC_CONFIGS, BROKER_CONFIGS, BROKER_LOGGERS, GROUP_CONFIGS = 2, 4, 8, 32
CONFIG_ERRORS = {
    TOPIC_CONFIGS: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP_CONFIGS: ErrorCode.GROUP_AUTHORIZATION_FAILED,
}


class OtherRightsBehavior(VersionBehavior):
    """What Kafka releases do differently with rights (measured on 2.0.1, 2.8.2 and 4.4.0)."""

    @cached_property
    def lists_visible_groups(self) -> bool:
        """Whether ListGroups returns the groups that the client may see; before 2.1 it needs DESCRIBE on the cluster
        (KIP-231)."""
        return self.at_least(2, 1)

    @cached_property
    def has_epochs_for_consumers(self) -> bool:
        """Whether OffsetForLeaderEpoch needs DESCRIBE on topics; before 2.1 CLUSTER_ACTION (KIP-320)."""
        return self.at_least(2, 1)

    @cached_property
    def describes_producers_with_message(self) -> bool:
        """Whether DescribeProducers has error messages for topics that the client may not read."""
        return self.at_least(3, 0)

    @cached_property
    def has_group_configs(self) -> bool:
        """Whether there are configs of groups; the handler refuses them otherwise."""
        return self.at_least(3, 8)

    def config_message(self, error: ErrorCode, *, alters: bool) -> str | None:
        """Return the error message of configs that the client may not see or change."""
        if alters:
            has_message = self.is_kraft and error is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return error.message if has_message else None
        return error.message if self.at_least(2, 4) else None

    def coordinator_message(self, error: ErrorCode) -> str | None:
        """Return the error message of FindCoordinator before v4."""
        return error.message if self.at_least(2, 3) else None


def readable_acls(asked: Asked, perform: Perform) -> Any:
    """Close the connection on ACLs and filters that a broker cannot read, before it looks at rights.

    Raises:
        CloseConnection: it has some.
    """
    request, behavior = asked.request, asked.context.behavior(AclsBehavior)
    for creation in getattr(request, "creations", ()):
        behavior.fails_request(creation)
    for one in getattr(request, "filters", ()):
        filter_of(one, behavior)
    if hasattr(request, "resource_type_filter"):
        filter_of(request, behavior)
    return perform(request)


def find_coordinator(asked: Asked, perform: Perform) -> Any:
    """Groups and transactional ids need DESCRIBE, share partitions CLUSTER_ACTION on the cluster."""
    request, rights = asked.request, asked.rights
    version, key_type = asked.context.api_version, request.key_type
    if key_type == SHARE and version > BATCHED_SINCE + 1:
        return on_cluster(Operation.CLUSTER_ACTION)(asked, perform)
    if key_type == GROUP:
        kind, error = ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif key_type == TRANSACTION:
        kind, error = ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    else:
        return perform(request)
    if version < BATCHED_SINCE:
        if rights.may(Operation.DESCRIBE, kind, request.key):
            return perform(request)
        message = asked.context.behavior(OtherRightsBehavior).coordinator_message(error)
        response = refused(asked, error, message)
        return response.replace(node_id=-1, host="", port=-1)
    allowed = tuple(key for key in request.coordinator_keys if rights.may(Operation.DESCRIBE, kind, key))
    denied = tuple(
        Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message="")
        for key in request.coordinator_keys
        if key not in allowed
    )
    return changed(
        perform(request.replace(coordinator_keys=allowed)),
        lambda response: response.replace(coordinators=(*response.coordinators, *denied)),
    )


def described_groups(asked_array: str, array: str) -> Check:
    """Return a check of groups that are described: they need DESCRIBE, and have the operations that are allowed."""

    def check(asked: Asked, perform: Perform) -> Any:
        request, rights, version = asked.request, asked.rights, asked.context.api_version
        group_ids = getattr(request, asked_array)
        allowed = tuple(one for one in group_ids if rights.on_group(Operation.DESCRIBE, one))
        struct = _item(asked.context.api_key, array)
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
            for one in group_ids
            if one not in allowed
        )

        def finished(response: Any) -> Any:
            shown = tuple(_with_operations(asked, _with_visible_topics(asked, one)) for one in getattr(response, array))
            return response.replace(**{array: (*denied, *shown)})

        return changed(perform(request.replace(**{asked_array: allowed})), finished)

    return check


def _item(api_key: int, array: str) -> Any:
    from kproto.declaration import fields_of

    field = next(one for one in fields_of(registry.response_class(api_key)) if one.name == array)
    assert field.type.element is not None
    return field.type.element.struct


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
    if not asked.context.behavior(OtherRightsBehavior).lists_visible_groups:
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def visible(response: Any) -> Any:
        groups = (one for one in response.groups if rights.on_group(Operation.DESCRIBE, one.group_id))
        return response.replace(groups=tuple(groups))

    return changed(perform(asked.request), visible)


def delete_groups(asked: Asked, perform: Perform) -> Any:
    """Groups need DELETE."""
    request, rights = asked.request, asked.rights
    allowed = tuple(one for one in request.groups_names if rights.on_group(Operation.DELETE, one))
    denied = tuple(
        filled(
            DeletableGroupResult,
            {"group_id": one, "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED},
            asked.context.api_version,
        )
        for one in request.groups_names
        if one not in allowed
    )
    return changed(
        perform(request.replace(groups_names=allowed)),
        lambda response: response.replace(results=(*response.results, *denied)),
    )


def offset_for_leader_epoch(by_topics: Check) -> Check:
    """Return a check: CLUSTER_ACTION on the cluster is enough, otherwise topics need DESCRIBE."""
    by_cluster = on_cluster(Operation.CLUSTER_ACTION)

    def check(asked: Asked, perform: Perform) -> Any:
        if not asked.context.behavior(OtherRightsBehavior).has_epochs_for_consumers:
            return by_cluster(asked, perform)
        if asked.rights.on_cluster(Operation.CLUSTER_ACTION):
            return perform(asked.request)
        return by_topics(asked, perform)

    return check


def create_partitions(asked: Asked, perform: Perform) -> Any:
    """Topics need ALTER."""
    message = None if asked.context.kafka_version.is_kraft else "The topic authorization is failed."
    return on_topics(Operation.ALTER, message)(asked, perform)


def describe_producers(asked: Asked, perform: Perform) -> Any:
    """Topics need READ."""
    has_message = asked.context.behavior(OtherRightsBehavior).describes_producers_with_message
    return on_topics(Operation.READ, KAFKAS if has_message else None)(asked, perform)


def add_partitions_to_txn(asked: Asked, perform: Perform) -> Any:
    """A producer needs WRITE on its transactional id and on all topics: if one lacks, none is added. Brokers need
    CLUSTER_ACTION."""
    request, rights = asked.request, asked.rights
    if asked.context.api_version >= BATCHED_SINCE:
        return on_cluster(Operation.CLUSTER_ACTION)(asked, perform)
    if not rights.on_transactional_id(Operation.WRITE, request.v3_and_below_transactional_id):
        return _add_partitions_errors(asked, lambda name: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    denied = {one.name for one in request.v3_and_below_topics if not rights.on_topic(Operation.WRITE, one.name)}
    if not denied:
        return perform(request)
    cluster = asked.context.cluster

    def error_of(name: str) -> ErrorCode:
        if name in denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        exists = cluster.topic(name) is not None
        return ErrorCode.OPERATION_NOT_ATTEMPTED if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return _add_partitions_errors(asked, error_of)


def _add_partitions_errors(asked: Asked, error_of: Any) -> Any:
    from kproto.messages.k24_add_partitions_to_txn import (
        AddPartitionsToTxnPartitionResult,
        AddPartitionsToTxnResponse,
        AddPartitionsToTxnTopicResult,
    )

    return AddPartitionsToTxnResponse(
        throttle_time_ms=0,
        results_by_topic_v3_and_below=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error_of(topic.name))
                    for index in topic.partitions
                ),
            )
            for topic in asked.request.v3_and_below_topics
        ),
    )


def configs(array: str, operation: Operation) -> Check:
    """Return a check of configs: those of topics and groups need a right on these, those of brokers on the cluster."""
    alters = operation is Operation.ALTER_CONFIGS

    def is_allowed(asked: Asked, resource: Any) -> bool:
        rights = asked.rights
        if resource.resource_type == TOPIC_CONFIGS:
            return rights.on_topic(operation, resource.resource_name)
        if resource.resource_type == GROUP_CONFIGS:
            if not asked.context.behavior(OtherRightsBehavior).has_group_configs:
                return True
            return rights.on_group(operation, resource.resource_name)
        return rights.on_cluster(operation)

    def check(asked: Asked, perform: Perform) -> Any:
        request, struct = asked.request, _item(asked.context.api_key, array)
        behavior = asked.context.behavior(OtherRightsBehavior)
        allowed = tuple(one for one in request.resources if is_allowed(asked, one))
        denied = []
        for one in request.resources:
            if one in allowed:
                continue
            error = CONFIG_ERRORS.get(one.resource_type, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            values = {
                "error_code": error,
                "error_message": behavior.config_message(error, alters=alters),
                "resource_type": one.resource_type,
                "resource_name": one.resource_name,
            }
            denied.append(filled(struct, values, asked.context.api_version))
        return changed(
            perform(request.replace(resources=allowed)),
            lambda response: response.replace(**{array: (*getattr(response, array), *denied)}),
        )

    return check


def describe_cluster(asked: Asked, perform: Perform) -> Any:
    """Every client may see the cluster; the response has the operations that the client may do."""

    def finished(response: Any) -> Any:
        operations = response.cluster_authorized_operations
        return response.replace(cluster_authorized_operations=cluster_operations(asked, operations))

    result = perform(asked.request)
    return changed(result, finished) if asked.request.include_cluster_authorized_operations else result


def describe_transactions(asked: Asked, perform: Perform) -> Any:
    """Transactional ids need DESCRIBE; of their topics those are listed that the client may see."""
    request, rights, struct = asked.request, asked.rights, _item(asked.context.api_key, "transaction_states")
    allowed = tuple(one for one in request.transactional_ids if rights.on_transactional_id(Operation.DESCRIBE, one))
    denied = tuple(
        filled(
            struct,
            {"transactional_id": one, "error_code": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED},
            asked.context.api_version,
        )
        for one in request.transactional_ids
        if one not in allowed
    )

    def visible(state: Any) -> Any:
        topics = tuple(one for one in state.topics if rights.on_topic(Operation.DESCRIBE, one.topic))
        return state.replace(topics=topics)

    return changed(
        perform(request.replace(transactional_ids=allowed)),
        lambda response: response.replace(transaction_states=(*map(visible, response.transaction_states), *denied)),
    )


def list_transactions(asked: Asked, perform: Perform) -> Any:
    """Those transactional ids are listed that the client may see."""
    rights = asked.rights

    def visible(response: Any) -> Any:
        states = response.transaction_states
        return response.replace(
            transaction_states=tuple(
                one for one in states if rights.on_transactional_id(Operation.DESCRIBE, one.transactional_id)
            )
        )

    return changed(perform(asked.request), visible)


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


def altered_share_group_offsets(asked: Asked, perform: Perform) -> Any:
    """Topics need READ; the response has the ids of all."""

    def with_id(one: Any) -> Any:
        topic = asked.context.cluster.topic(one.topic_name)
        return one if topic is None else one.replace(topic_id=topic.topic_id)

    return changed(
        on_topics(Operation.READ)(asked, perform),
        lambda response: response.replace(responses=tuple(map(with_id, response.responses))),
    )


def describe_scram_credentials(asked: Asked, perform: Perform) -> Any:
    """The cluster needs DESCRIBE; the error stands in a result without a user, too."""
    if asked.rights.on_cluster(Operation.DESCRIBE):
        return perform(asked.request)
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not asked.context.kafka_version.is_kraft:
        return refused(asked, error, None)
    item = filled(_item(asked.context.api_key, "results"), {"error_code": error}, asked.context.api_version)
    return refused(asked, error, None).replace(results=(item,))


def share_group_offsets(asked: Asked, perform: Perform) -> Any:
    """Groups need DESCRIBE, topics, too: named ones have errors, others are not listed."""
    request, rights, version = asked.request, asked.rights, asked.context.api_version
    struct = _item(asked.context.api_key, "groups")
    allowed = tuple(one for one in request.groups if rights.on_group(Operation.DESCRIBE, one.group_id))
    denied = tuple(
        filled(struct, {"group_id": one.group_id, "error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED}, version)
        for one in request.groups
        if one not in allowed
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
        lambda response: response.replace(groups=(*map(visible, response.groups), *denied)),
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
