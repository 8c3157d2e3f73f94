"""Checks of configs, ACLs, coordinators and the cluster that are made in ways of their own."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kproto.codes import ErrorCode
from kproto.messages.k10_find_coordinator import Coordinator
from kproto_server.authorization.checks import (
    Asked,
    Check,
    Perform,
    changed,
    element_struct,
    on_cluster,
    on_topics,
    parted,
    refused,
)
from kproto_server.authorization.topic_checks import cluster_operations
from kproto_server.cluster.version_behavior import AlterConfigsBehavior
from kproto_server.deferred import changed_array
from kproto_server.handlers._acls import AclsBehavior, filter_of
from kproto_server.handlers._config_changes import with_first_refusals
from kproto_server.handlers._config_resources import ConfigResourceBehavior
from kproto_server.handlers._controller import duplicate_counts
from kproto_server.handlers._error_responses import filled
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation, ResourceType

GROUP, TRANSACTION, SHARE = range(3)
BATCHED_SINCE = 4
TOPIC_CONFIGS, BROKER_CONFIGS, BROKER_LOGGERS, GROUP_CONFIGS = 2, 4, 8, 32
CONFIG_ERRORS = {
    TOPIC_CONFIGS: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP_CONFIGS: ErrorCode.GROUP_AUTHORIZATION_FAILED,
}


class OtherRightsBehavior(VersionBehavior):
    """What Kafka releases do differently with rights (measured on 2.0.1 to 2.8.2, 3.0.2, 3.2.3 and 4.4.0)."""

    @cached_property
    def has_epochs_for_consumers(self) -> bool:
        """Whether OffsetForLeaderEpoch needs DESCRIBE on topics; before 2.1 CLUSTER_ACTION (KIP-320)."""
        return self.at_least(2, 1)

    @cached_property
    def has_group_configs(self) -> bool:
        """Whether there are configs of groups; the handler refuses them otherwise."""
        return self.at_least(3, 8)

    @cached_property
    def has_result_of_scram(self) -> bool:
        """Whether DescribeUserScramCredentials has the error in a result without a user, too (measured on 3.1.2 and
        3.2.3)."""
        return self.at_least(3, 2)

    def config_message(self, error: ErrorCode, *, alters: bool) -> str | None:
        """Return the error message of configs that the client may not see or change."""
        if alters:
            # 4.2.2 is newer than 4.3.1.
            on_cluster = not self.at_least(4, 2) or self.release == (4, 3)
            has_message = self.is_kraft and (on_cluster or error is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return error.message if has_message else None
        return error.message if self.at_least(2, 7) else None

    @cached_property
    def has_share_message(self) -> bool:
        """Whether FindCoordinator of a share partition has a message (measured on 3.9.2 and 4.1.2)."""
        return self.at_least(4, 0)

    def coordinator_message(self, error: ErrorCode) -> str | None:
        """Return the error message of FindCoordinator before v4."""
        if self.release == (2, 3) and error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return f"Not authorized to access group: {error.message}"
        return error.message if self.at_least(2, 3) else None


def readable_acls(asked: Asked, perform: Perform) -> Any:
    """Close the connection on ACLs and filters that a broker cannot read, before it looks at rights.

    Raises:
        CloseConnection: it has some.
    """
    request, behavior = asked.request, asked.context.behavior(AclsBehavior)
    for creation in getattr(request, "creations", ()):
        behavior.failure(creation)
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
        if rights.on_cluster(Operation.CLUSTER_ACTION):
            return perform(request)
        denied_all = refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if asked.context.behavior(OtherRightsBehavior).has_share_message:
            return denied_all
        return denied_all.replace(coordinators=tuple(one.replace(error_message="") for one in denied_all.coordinators))
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
    allowed, others = parted(request.coordinator_keys, lambda key: rights.may(Operation.DESCRIBE, kind, key))
    denied = tuple(
        Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message="") for key in others
    )
    return changed(
        perform(request.replace(coordinator_keys=allowed)),
        lambda response: response.replace(coordinators=(*response.coordinators, *denied)),
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
    duplicates = duplicate_counts(topic.name for topic in asked.request.topics)
    return on_topics(Operation.ALTER, message, left=duplicates)(asked, perform)


def _has_unknown_type(asked: Asked, *, alters: bool) -> bool:
    """Return whether a resource has a type that fails the whole request before rights are looked at."""
    context = asked.context
    if alters and context.behavior(AlterConfigsBehavior).preprocesses_changes:
        return False
    known = context.behavior(ConfigResourceBehavior).resource_types
    return any(one.resource_type not in known for one in asked.request.resources)


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
        request, struct = asked.request, element_struct(asked.context.api_key, array)
        behavior = asked.context.behavior(OtherRightsBehavior)
        if _has_unknown_type(asked, alters=alters):
            return perform(request)  # which fails as a whole
        resources: list[tuple[Any, Any]] = [(one, None) for one in request.resources]
        if alters:
            resources = with_first_refusals(request.resources, asked.context)
        refused_first = {id(one) for one, refusal in resources if refusal is not None}
        allowed, others = parted(
            [one for one, _ in resources], lambda one: id(one) in refused_first or is_allowed(asked, one)
        )
        denied = []
        for one in others:
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
            lambda response: response.replace(
                **{array: changed_array(lambda one: one, getattr(response, array), behind=denied)}
            ),
        )

    return check


def describe_cluster(asked: Asked, perform: Perform) -> Any:
    """Every client may see the cluster; the response has the operations that the client may do."""

    def finished(response: Any) -> Any:
        operations = response.cluster_authorized_operations
        return response.replace(cluster_authorized_operations=cluster_operations(asked, operations))

    result = perform(asked.request)
    return changed(result, finished) if asked.request.include_cluster_authorized_operations else result


def describe_scram_credentials(asked: Asked, perform: Perform) -> Any:
    """The cluster needs DESCRIBE."""
    if asked.rights.on_cluster(Operation.DESCRIBE):
        return perform(asked.request)
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not asked.context.behavior(OtherRightsBehavior).has_result_of_scram:
        return refused(asked, error, None)
    item = filled(element_struct(asked.context.api_key, "results"), {"error_code": error}, asked.context.api_version)
    return refused(asked, error, None).replace(results=(item,))
