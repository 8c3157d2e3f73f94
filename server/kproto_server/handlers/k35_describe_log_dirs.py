"""DescribeLogDirs (API key 35): the size of each partition in the only log directory (KIP-113).

DEVIATION: without a data directory the response has one of the name "memory"; the size of a directory is not limited.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kproto_server.deferred import LargeResponse, in_slices
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Generator

    from kproto.messages.k35_describe_log_dirs import DescribeLogDirsRequest
    from kproto_server.deferred import DelayedOperation
    from kproto_server.requests.context import RequestContext

SMALL_PARTITIONS = 5000
"""Partitions that are described at once: about 5 ms. A response with more is made in slices."""


class LogDirsBehavior(VersionBehavior):
    """What Kafka releases do differently in DescribeLogDirs."""

    @cached_property
    def names_all_topics(self) -> bool:
        """Whether the response has topics of which the request names no partition, without partitions.

        Measured on 2.5.1 and 2.6.3, and on 3.6.2 and 3.7.2.
        """
        return self.at_least(2, 6) and not self.at_least(3, 7)


def handle(
    request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse | LargeResponse | DelayedOperation:
    return in_slices(_slices(request, context), context.now_ms)


def _slices(
    request: DescribeLogDirsRequest, context: RequestContext
) -> Generator[None, None, DescribeLogDirsResponse | LargeResponse]:
    wanted = None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
    names_all = context.behavior(LogDirsBehavior).names_all_topics
    topics, count, pause_at = [], 0, SMALL_PARTITIONS
    for topic in list(context.cluster.topics.values()):
        if wanted is not None and topic.name not in wanted and not names_all:
            continue
        here = [partition for partition in topic.partitions if context.node.node_id in partition.replicas]
        partitions = tuple(
            DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=partition.data.disk_size,
                offset_lag=0,
                is_future_key=False,
            )
            for partition in here
            if wanted is None or partition.index in wanted.get(topic.name, ())
        )
        if partitions or (here and names_all):
            topics.append(DescribeLogDirsTopic(name=topic.name, partitions=partitions))
        count += len(topic.partitions)
        if count > pause_at:
            pause_at = count + SMALL_PARTITIONS
            yield
    result = DescribeLogDirsResult(error_code=ErrorCode.NONE, log_dir=context.log_manager.log_dir, topics=tuple(topics))
    response = DescribeLogDirsResponse(throttle_time_ms=0, results=(result,))
    return response if count <= SMALL_PARTITIONS else LargeResponse(response)
