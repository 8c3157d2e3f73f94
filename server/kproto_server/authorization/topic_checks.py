"""Checks of the APIs that read, describe, create and delete topics in ways of their own."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID
from kproto.messages.k03_metadata import MetadataRequestTopic, MetadataResponseTopic
from kproto.messages.k09_offset_fetch import OffsetFetchResponseGroup
from kproto.messages.k19_create_topics import CreatableTopicResult
from kproto.messages.k20_delete_topics import DeletableTopicResult
from kproto.records.batch_header import MAGIC, MAGIC_POSITION, header_struct
from kproto.records.partitioning import CLUSTER_METADATA_TOPIC
from kproto_server.authorization.checks import _ANY, EVERYTHING, Asked, DeniedTopics, Perform, changed, parted, refused
from kproto_server.authorization.visible_topics import hide
from kproto_server.cluster.topics import INTERNAL_TOPICS
from kproto_server.deferred import changed_array
from kproto_server.faults.active_rules import known_request
from kproto_server.faults.items import ErrorItems, empty_response, place_of
from kproto_server.handlers._controller import MetadataTopicBehavior, duplicate_counts
from kproto_server.handlers._error_responses import filled
from kproto_server.handlers._operations import AuthorizedOperationsBehavior
from kproto_server.partition_log.precheck import Finding, precheck
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation, ResourceType

PRODUCER_OF = header_struct("producer_id")
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_COUNT = -1


class TopicRightsBehavior(VersionBehavior):
    """What Kafka releases do differently with rights on topics (measured on 2.0.1 to 2.8.2, 3.0.2 and 4.4.0)."""

    @cached_property
    def needs_idempotent_write(self) -> bool:
        """Whether idempotent records need IDEMPOTENT_WRITE on the cluster; from 2.8 on WRITE on a topic is enough
        (KIP-679)."""
        return not self.at_least(2, 8)

    @cached_property
    def has_epoch_zero(self) -> bool:
        """Whether InitProducerId has epoch 0 beside an error of rights: before 2.3."""
        return not self.at_least(2, 3)

    @cached_property
    def fetches_empty_lists(self) -> bool:
        """Whether partitions that may not be read have an empty list of aborted transactions; before 3.0 it is null."""
        return self.at_least(3, 0)

    @cached_property
    def deletes_by_cluster(self) -> bool:
        """Whether DELETE on the cluster is a right to delete all topics."""
        return self.is_kraft

    @cached_property
    def creates_by_topic(self) -> bool:
        """Whether CREATE on a topic is a right to create it; before 2.0 only CREATE on the cluster is (KIP-277)."""
        return self.at_least(2, 0)

    @cached_property
    def group_offsets_need(self) -> Operation:
        """The operation on a group that OffsetFetch needs (KAFKA-5547; measured on 0.11.0.3 and 1.0.2)."""
        return Operation.DESCRIBE if self.at_least(1, 0) else Operation.READ

    @cached_property
    def drops_refused_offsets(self) -> bool:
        """Whether OffsetFetch v1 of a refused group has no topics, so that the client sees no error: from 3.5 to 3.8
        (measured on 3.4.1, 3.5.2, 3.8.1 and 3.9.2)."""
        return self.at_least(3, 5) and not self.at_least(3, 9)

    @cached_property
    def creation_message(self) -> str | None:
        """The error message of a topic that may not be created."""
        return "Authorization failed." if self.at_least(2, 3) else None

    @cached_property
    def deletion_message(self) -> str | None:
        """The error message of a topic that may not be deleted."""
        return DENIED.message if self.is_kraft else None


def produce(asked: Asked, perform: Perform) -> Any:
    """Transactional records need WRITE on the transactional id, idempotent ones of older releases a right of their
    own."""
    request, rights = asked.request, asked.rights
    checks = [
        precheck(one.records, asked.context.api_version) for topic in request.topic_data for one in topic.partition_data
    ]
    if request.transactional_id is not None and any(check.is_transactional for check in checks):
        if not rights.on_transactional_id(Operation.WRITE, request.transactional_id):
            return refused(asked, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif asked.context.behavior(TopicRightsBehavior).needs_idempotent_write and not rights.on_cluster(
        Operation.IDEMPOTENT_WRITE
    ):
        records = [one.records for topic in request.topic_data for one in topic.partition_data]
        if any(
            check.finding is Finding.VALID
            and data
            and data[MAGIC_POSITION] == MAGIC
            and PRODUCER_OF.unpack_from(data)[0] >= 0
            for check, data in zip(checks, records, strict=True)
        ):
            return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return perform(request)


def fetch(asked: Asked, perform: Perform) -> Any:
    """A replica needs CLUSTER_ACTION, a consumer READ on each topic. Fetch sessions keep denied partitions, too."""
    key, version = asked.context.api_key, asked.context.api_version
    request = asked.request
    is_replica = max(request.replica_id, request.replica_state.replica_id) >= 0
    denied: Any = DeniedTopics(asked, Operation.READ)
    if is_replica:
        if asked.rights.on_cluster(Operation.CLUSTER_ACTION):
            return perform(request)
        denied = EVERYTHING
    level = place_of(DENIED, _ANY, "items", key, version)
    assert level is not None
    assert not isinstance(level, str)
    items = ErrorItems(DENIED, denied, level, key, version, None)
    known = known_request(request, asked.context, must_have_topics=False)
    made: Any = items.made_from(known)
    if not made:
        return perform(request)
    # A broker reads none of the denied partitions: they use up no limit, and end no wait.
    ids = (asked.topic_name(topic.topic_id) for topic in made if topic.topic_id != ZERO_UUID)
    hide({*(topic.topic for topic in made), *filter(None, ids)}, asked.context)
    has_null = not asked.context.behavior(TopicRightsBehavior).fetches_empty_lists

    def finished(response: Any) -> Any:
        if response.error_code:
            return response
        merged: Any = items.merged(response, made)
        return merged.replace(responses=tuple(map(_without_lists, merged.responses))) if has_null else merged

    return changed(perform(request), finished)


def _without_lists(topic: Any) -> Any:
    return topic.replace(
        partitions=tuple(
            one.replace(aborted_transactions=None) if one.error_code == DENIED else one for one in topic.partitions
        )
    )


def metadata(asked: Asked, perform: Perform) -> Any:
    """Topics need DESCRIBE, and CREATE on the topic or the cluster if they would be created; all topics are those that
    the client may see."""
    request, rights, context = asked.request, asked.rights, asked.context
    topics = request.topics
    is_all = topics is None or (not topics and context.api_version == 0)
    denied: list[MetadataResponseTopic] = []
    if is_all:
        visible = [name for name in context.cluster.topics if rights.on_topic(Operation.DESCRIBE, name)]
        if len(visible) == len(context.cluster.topics):
            return _with_operations(asked, perform(request), denied)
        if not visible:
            none = perform(request.replace(topics=())) if context.api_version else perform(_of_no_topic(request))
            return _with_operations(asked, changed(none, lambda response: response.replace(topics=())), denied)
        request = request.replace(topics=tuple(MetadataRequestTopic(name=name) for name in visible))
        return _with_operations(asked, perform(request), denied)
    allowed = []
    if any(topic.topic_id != ZERO_UUID for topic in topics):
        topics = [topic for topic in topics if topic.topic_id != ZERO_UUID]  # names are ignored beside ids
    for topic in topics:
        name = asked.topic_name(topic.topic_id) if topic.topic_id != ZERO_UUID else topic.name
        if name is None:
            allowed.append(topic)
        elif not rights.on_topic(Operation.DESCRIBE, name):
            denied.append(_denied(asked, topic, None if topic.topic_id != ZERO_UUID else name))
        elif _needs_create(asked, name) and not _may_create(asked, name):
            denied.append(_denied(asked, topic, name, is_internal=name in INTERNAL_TOPICS))
        else:
            allowed.append(topic)
    if not denied:
        return _with_operations(asked, perform(request), denied)
    result = perform(
        request.replace(topics=tuple(allowed)) if allowed or context.api_version else _of_no_topic(request)
    )
    return _with_operations(asked, result, denied, hides_found=not allowed)


def _of_no_topic(request: Any) -> Any:
    """Return a request of v0 for a topic that no cluster has. A request of v0 without topics would get all topics."""
    return request.replace(topics=(MetadataRequestTopic(name="\0"),), allow_auto_topic_creation=False)


def _denied(
    asked: Asked, topic: MetadataRequestTopic, name: str | None, *, is_internal: bool = False
) -> MetadataResponseTopic:
    values = {
        "error_code": DENIED,
        "name": name,
        "topic_id": topic.topic_id,
        "is_internal": is_internal,
        "topic_authorized_operations": asked.context.behavior(AuthorizedOperationsBehavior).unrequested,
    }
    return filled(MetadataResponseTopic, values, asked.context.api_version)


def _needs_create(asked: Asked, name: str) -> bool:
    context = asked.context
    allows = asked.request.allow_auto_topic_creation
    return allows and context.cluster.defaults.auto_create and name not in context.cluster.topics


def _may_create(asked: Asked, name: str) -> bool:
    if asked.rights.on_cluster(Operation.CREATE):
        return True
    by_topic = asked.context.behavior(TopicRightsBehavior).creates_by_topic
    return by_topic and asked.rights.on_topic(Operation.CREATE, name)


def _with_operations(
    asked: Asked, result: Any, denied: list[MetadataResponseTopic], *, hides_found: bool = False
) -> Any:
    """Add denied topics to a response, and the operations that the client may do to all topics and the cluster."""
    request, rights = asked.request, asked.rights

    def with_operations(topic: Any) -> Any:
        supported = topic.topic_authorized_operations
        if supported <= 0 or not topic.name:
            return topic
        return topic.replace(topic_authorized_operations=rights.bits(supported, ResourceType.TOPIC, topic.name))

    def finished(response: Any) -> Any:
        topics = () if hides_found else response.topics
        if request.include_topic_authorized_operations:
            topics = changed_array(with_operations, topics, behind=denied)
        elif denied:
            topics = changed_array(lambda topic: topic, topics, behind=denied)
        operations = response.cluster_authorized_operations
        if request.include_cluster_authorized_operations and operations > 0:
            operations = cluster_operations(asked, operations)
        return response.replace(topics=topics, cluster_authorized_operations=operations)

    return changed(result, finished)


def cluster_operations(asked: Asked, supported: int) -> int:
    """Return the operations on the cluster that the client may do; none without DESCRIBE."""
    from kproto_server.security.acls import CLUSTER_NAME

    if not asked.rights.on_cluster(Operation.DESCRIBE):
        return 0
    return asked.rights.bits(supported, ResourceType.CLUSTER, CLUSTER_NAME)


def create_topics(asked: Asked, perform: Perform) -> Any:
    """Topics need CREATE on themselves or on the cluster; their configs are shown with DESCRIBE_CONFIGS alone."""
    request, rights, context = asked.request, asked.rights, asked.context
    by_cluster = rights.on_cluster(Operation.CREATE)
    if not (by_cluster or context.behavior(TopicRightsBehavior).creates_by_topic):
        return refused(asked, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    refused_first = {*duplicate_counts(topic.name for topic in request.topics)}
    if context.behavior(MetadataTopicBehavior).cannot_be_created:
        refused_first.add(CLUSTER_METADATA_TOPIC)

    def is_allowed(topic: Any) -> bool:
        return by_cluster or topic.name in refused_first or rights.on_topic(Operation.CREATE, topic.name)

    allowed, others = parted(request.topics, is_allowed)
    message = context.behavior(TopicRightsBehavior).creation_message
    denied = tuple(
        CreatableTopicResult(name=name, error_code=DENIED, error_message=message)
        for name in dict.fromkeys(one.name for one in others)
    )

    only_created = context.kafka_version.is_kraft

    def finished(response: Any) -> Any:
        topics = tuple(
            one
            if (one.error_code and (only_created or one.error_code != DENIED))
            or rights.on_topic(Operation.DESCRIBE_CONFIGS, one.name)
            else one.replace(
                topic_config_error_code=DENIED, num_partitions=NO_COUNT, replication_factor=NO_COUNT, configs=()
            )
            for one in (*response.topics, *denied)
        )
        return response.replace(topics=topics)

    return changed(perform(request.replace(topics=allowed)), finished)


def delete_topics(asked: Asked, perform: Perform) -> Any:
    """Topics need DELETE; a topic that the client names by its id, and may not see, stays without a name."""
    from kproto_server.handlers.k20_delete_topics import is_disabled  # not imported at the start

    request, rights, context = asked.request, asked.rights, asked.context
    behavior = context.behavior(TopicRightsBehavior)
    if is_disabled(context) or (behavior.deletes_by_cluster and rights.on_cluster(Operation.DELETE)):
        return perform(request)
    items = [(one.name, one.topic_id) for one in request.topics] or [(name, ZERO_UUID) for name in request.topic_names]
    duplicates = duplicate_counts(items) if context.kafka_version.is_kraft else ()
    denied: dict[Any, DeletableTopicResult] = {}

    def is_allowed(name: str | None, topic_id: bytes) -> bool:
        by_id = topic_id != ZERO_UUID
        found = asked.topic_name(topic_id) if by_id else name
        if found is None or (name is not None and by_id) or (name, topic_id) in duplicates:
            return True
        sees = rights.on_topic(Operation.DESCRIBE, found)
        if rights.on_topic(Operation.DELETE, found):
            return True
        shown = None if by_id and not sees else found
        is_missing = not by_id and sees and found not in context.cluster.topics and context.kafka_version.is_kraft
        if is_missing:
            return True  # the handler returns UNKNOWN_TOPIC_OR_PARTITION
        denied.setdefault(
            (name, topic_id),
            DeletableTopicResult(
                name=shown, topic_id=topic_id, error_code=DENIED, error_message=behavior.deletion_message
            ),
        )
        return False

    topics = tuple(one for one in request.topics if is_allowed(one.name, one.topic_id))
    names = tuple(name for name in request.topic_names if is_allowed(name, ZERO_UUID))
    result = perform(request.replace(topics=topics, topic_names=names))
    return changed(result, lambda response: response.replace(responses=(*response.responses, *denied.values())))


def init_producer_id(asked: Asked, perform: Perform) -> Any:
    """Transactions need WRITE on their id; idempotence needs IDEMPOTENT_WRITE, or WRITE on any topic (KIP-679)."""
    request, rights = asked.request, asked.rights
    behavior = asked.context.behavior(TopicRightsBehavior)
    error = ErrorCode.NONE
    if request.transactional_id is not None:
        if not rights.on_transactional_id(Operation.WRITE, request.transactional_id):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not rights.on_cluster(Operation.IDEMPOTENT_WRITE) and (
        behavior.needs_idempotent_write or not rights.on_any(Operation.WRITE, ResourceType.TOPIC)
    ):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not error:
        return perform(request)
    response = refused(asked, error)
    return response.replace(producer_epoch=0) if behavior.has_epoch_zero else response


def offset_fetch(asked: Asked, perform: Perform) -> Any:
    """Groups need DESCRIBE, topics, too: named ones have errors, others are not listed."""
    request, rights = asked.request, asked.rights
    if not request.groups:
        if not rights.on_group(asked.context.behavior(TopicRightsBehavior).group_offsets_need, request.group_id):
            response = refused(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            if asked.context.api_version == 1 and asked.context.behavior(TopicRightsBehavior).drops_refused_offsets:
                return response.replace(topics=())
            return response.replace(topics=tuple(map(_without_metadata, response.topics)))
        if asked.context.api_version == 0 and asked.context.kafka_version.is_kraft:
            return perform(request)  # refused, as it needs ZooKeeper
        return _offsets(asked, perform(request), request)
    allowed, others = parted(request.groups, lambda one: rights.on_group(Operation.DESCRIBE, one.group_id))
    denied = tuple(
        OffsetFetchResponseGroup(group_id=one.group_id, topics=(), error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for one in others
    )
    if not allowed:
        return empty_response(asked.context.api_key, asked.context.api_version).replace(groups=denied)
    by_id = {one.group_id: one for one in allowed}

    def finished(response: Any) -> Any:
        groups = changed_array(lambda one: _offsets_of(asked, one, by_id[one.group_id]), response.groups, behind=denied)
        return response.replace(groups=groups)

    return changed(perform(request.replace(groups=allowed)), finished)


def _without_metadata(topic: Any) -> Any:
    return topic.replace(partitions=tuple(one.replace(metadata="") for one in topic.partitions))


def _offsets(asked: Asked, result: Any, requested: Any) -> Any:
    return changed(result, lambda response: _offsets_of(asked, response, requested))


def _offsets_of(asked: Asked, described: Any, requested: Any) -> Any:
    if described.error_code:
        return described

    def is_denied(topic: Any) -> bool:
        return not asked.has_topic(Operation.DESCRIBE, topic)

    if requested.topics is None:
        return described.replace(topics=tuple(one for one in described.topics if not is_denied(one)))
    return described.replace(
        topics=tuple(
            one.replace(
                partitions=tuple(
                    type(partition)(
                        partition_index=partition.partition_index, committed_offset=-1, metadata="", error_code=DENIED
                    )
                    for partition in one.partitions
                )
            )
            if is_denied(one)
            else one
            for one in described.topics
        )
    )
