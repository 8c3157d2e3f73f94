"""Produce with acks=all waits while an in-sync replica does not replicate, until the cluster notices that.

Source:
    Three brokers of 4.4.0, one of which has ended: REQUEST_TIMED_OUT after the timeout of the request, as long as the
    broker is in sync.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.deferred import Completion, DelayedOperation
from kproto_server.log_manager.in_sync_replicas import has_too_few_in_sync
from kproto_server.partition_log.version_behavior import ProduceBehavior

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.deferred import Result
    from kproto_server.requests.context import RequestContext

    Place = tuple[Topic, Partition]


def lags(partition: Partition, context: RequestContext) -> bool:
    """Return whether an in-sync replica does not replicate."""
    silent = context.cluster.silent
    return bool(silent) and any(replica in silent for replica in partition.isr)


def error_of(place: Place, context: RequestContext) -> ErrorCode | None:
    """Return the error of a batch that was appended; NONE if it is replicated, None if it waits for replicas."""
    topic, partition = place
    if lags(partition, context):
        return None
    if not has_too_few_in_sync(context.settings.of(context.node.node_id), topic, partition):
        return ErrorCode.NONE
    waits = context.behavior(ProduceBehavior).waits_below_minimum
    return None if waits else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def wait_for_replicas(
    places: Collection[Place], timeout_ms: int, context: RequestContext, respond: Callable[[], Result]
) -> DelayedOperation:
    """Return the operation of a produce whose batches were appended to these partitions."""
    waiters = context.cluster.replica_waiters

    def end() -> None:
        waiters.pop(look, None)

    def look() -> None:
        if all(error_of(place, context) is not None for place in places):
            end()
            completion.complete()

    def finish() -> Result:
        end()
        return respond()

    completion = Completion(end)
    waiters[look] = None
    return DelayedOperation(context.now_ms + timeout_ms, finish, completion)
