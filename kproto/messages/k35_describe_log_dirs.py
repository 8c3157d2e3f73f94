"""DescribeLogDirs (API key 35): the content of a broker's log directories, and its size."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, Int64, String, Struct, ignorable, nullable, since
from kproto.message import Request, Response


class DescribableLogDirTopic(Struct):
    topic: String
    partitions: Array[Int32]


class DescribeLogDirsRequest(Request, api_key=35, versions=(0, 5), flexible=2):
    """v1: layout of v0
    v2: flexible
    v3-v5: layout of v2
    """

    topics: Annotated[Array[DescribableLogDirTopic] | None, nullable()]


class DescribeLogDirsPartition(Struct):
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


class DescribeLogDirsTopic(Struct):
    name: String
    partitions: Array[DescribeLogDirsPartition]


class DescribeLogDirsResult(Struct):
    error_code: Int16
    log_dir: String
    topics: Array[DescribeLogDirsTopic]
    total_bytes: Annotated[Int64, since(4), ignorable] = -1
    usable_bytes: Annotated[Int64, since(4), ignorable] = -1
    is_cordoned: Annotated[Bool, since(5), ignorable] = False


class DescribeLogDirsResponse(Response, api_key=35, versions=(0, 5), flexible=2, has_slices=True):
    """v1: layout of v0; throttled at the client
    v2: flexible
    v3: + error_code
    v4: + results[].total_bytes, + results[].usable_bytes
    v5: + results[].is_cordoned
    """

    throttle_time_ms: Int32
    error_code: Annotated[Int16, since(3), ignorable] = 0
    results: Array[DescribeLogDirsResult]
