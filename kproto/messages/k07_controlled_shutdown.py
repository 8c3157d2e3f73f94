"""ControlledShutdown (API key 7): a stopping broker has the ZooKeeper-era controller move its leaderships."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, Int64, String, Struct, ignorable, since
from kproto.message import Request, Response


class ControlledShutdownRequest(Request, api_key=7, versions=(0, 3), flexible=3):
    """v1: layout of v0
    v2: + broker_epoch
    v3: flexible
    """

    broker_id: Int32
    broker_epoch: Annotated[Int64, since(2), ignorable] = -1


class RemainingPartition(Struct):
    topic_name: String
    partition_index: Int32


class ControlledShutdownResponse(Response, api_key=7, versions=(0, 3), flexible=3):
    """v1-v2: layout of v0
    v3: flexible
    """

    error_code: Int16
    remaining_partitions: Array[RemainingPartition]
