"""Checks of transactional ids and of the producers of topics."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kproto.codes import ErrorCode
from kproto_server.authorization.checks import (
    Asked,
    Perform,
    changed,
    element_struct,
    filtered,
    on_cluster,
    on_topics,
    parted,
)
from kproto_server.cluster.topics import name_problem
from kproto_server.deferred import changed_array
from kproto_server.handlers._error_responses import filled
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Operation

BROKERS_SINCE = 4
"""The version of AddPartitionsToTxn from which on brokers send it."""


class TransactionRightsBehavior(VersionBehavior):
    """What Kafka releases do differently with rights of producers (measured on 2.0.1, 2.8.2 and 4.4.0)."""

    @cached_property
    def describes_producers_with_message(self) -> bool:
        """Whether DescribeProducers has error messages for topics that the client may not read."""
        return self.at_least(3, 0)

    @cached_property
    def writes_markers_with_alter(self) -> bool:
        """Whether ALTER on the cluster is a right to write markers (KAFKA-16513; measured on 2.8.2 and 4.4.0)."""
        return self.at_least(3, 8)


def add_partitions_to_txn(asked: Asked, perform: Perform) -> Any:
    """A producer needs WRITE on its transactional id and on all topics: if one lacks, none is added. Brokers need
    CLUSTER_ACTION."""
    request, rights = asked.request, asked.rights
    if asked.context.api_version >= BROKERS_SINCE:
        return on_cluster(Operation.CLUSTER_ACTION)(asked, perform)
    topics = request.v3_and_below_topics
    may_write = rights.on_transactional_id(Operation.WRITE, request.v3_and_below_transactional_id)
    denied = {one.name for one in topics if may_write and not rights.on_topic(Operation.WRITE, one.name)}
    if may_write and not denied:
        return perform(request)

    # Not imported at the start.
    from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnResponse
    from kproto_server.handlers.k24_add_partitions_to_txn import partition_errors, results_of

    if may_write:
        errors = partition_errors(topics, asked.context, denied)
    else:
        refused_id = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        errors = {(topic.name, index): refused_id for topic in topics for index in topic.partitions}
    return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=results_of(topics, errors))


def write_txn_markers(asked: Asked, perform: Perform) -> Any:
    """A broker needs CLUSTER_ACTION; ALTER is enough from 3.8 on."""
    alters = asked.context.behavior(TransactionRightsBehavior).writes_markers_with_alter
    operations = (Operation.CLUSTER_ACTION, *((Operation.ALTER,) if alters else ()))
    return on_cluster(*operations)(asked, perform)


def describe_transactions(asked: Asked, perform: Perform) -> Any:
    """Transactional ids need DESCRIBE; of their topics those are listed that the client may see."""
    request, rights, struct = asked.request, asked.rights, element_struct(asked.context.api_key, "transaction_states")
    allowed, others = parted(request.transactional_ids, lambda one: rights.on_transactional_id(Operation.DESCRIBE, one))
    denied = tuple(
        filled(
            struct,
            {"transactional_id": one, "error_code": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED},
            asked.context.api_version,
        )
        for one in others
    )

    def visible(state: Any) -> Any:
        topics = tuple(one for one in state.topics if rights.on_topic(Operation.DESCRIBE, one.topic))
        return state.replace(topics=topics)

    return changed(
        perform(request.replace(transactional_ids=allowed)),
        lambda response: response.replace(
            transaction_states=changed_array(visible, response.transaction_states, behind=denied)
        ),
    )


def list_transactions(asked: Asked, perform: Perform) -> Any:
    """Those transactional ids are listed that the client may see."""
    rights = asked.rights

    def is_visible(state: Any) -> bool:
        return rights.on_transactional_id(Operation.DESCRIBE, state.transactional_id)

    return filtered(perform(asked.request), "transaction_states", is_visible, asked.context.now_ms)


def describe_producers(asked: Asked, perform: Perform) -> Any:
    """Topics need READ."""
    context = asked.context
    if not context.behavior(TransactionRightsBehavior).describes_producers_with_message:
        return on_topics(Operation.READ, None)(asked, perform)
    invalid = {topic.name for topic in asked.request.topics if name_problem(topic.name, context.kafka_version)}
    return on_topics(Operation.READ, left=invalid)(asked, perform)
