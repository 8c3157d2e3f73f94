"""AlterReplicaLogDirs (API key 34): an administrator moves replicas to another directory of the same broker."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, String, Struct
from kproto.message import Request, Response


class AlterReplicaLogDirTopic(Struct):
    name: String
    partitions: Array[Int32]


class AlterReplicaLogDir(Struct):
    path: String
    topics: Array[AlterReplicaLogDirTopic]


class AlterReplicaLogDirsRequest(Request, api_key=34, versions=(0, 2), flexible=2):
    """v1: layout of v0
    v2: flexible
    """

    dirs: Array[AlterReplicaLogDir]


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: String
    partitions: Array[AlterReplicaLogDirPartitionResult]


class AlterReplicaLogDirsResponse(Response, api_key=34, versions=(0, 2), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    """

    throttle_time_ms: Int32
    results: Array[AlterReplicaLogDirTopicResult]
