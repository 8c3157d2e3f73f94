"""WriteTxnMarkers (API key 27): the coordinator of a transaction has commit or abort markers written to partitions."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int8, Int16, Int32, Int64, String, Struct, ignorable, since
from kproto.message import Request, Response


class WritableTxnMarkerTopic(Struct):
    name: String
    partition_indexes: Array[Int32]


class WritableTxnMarker(Struct):
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    """True: commit; false: abort."""
    topics: Array[WritableTxnMarkerTopic]
    coordinator_epoch: Int32
    transaction_version: Annotated[Int8, since(2), ignorable] = 0


class WriteTxnMarkersRequest(Request, api_key=27, versions=(0, 2), flexible=1):
    """v1: flexible
    v2: + markers[].transaction_version
    """

    markers: Array[WritableTxnMarker]


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16


class WritableTxnMarkerTopicResult(Struct):
    name: String
    partitions: Array[WritableTxnMarkerPartitionResult]


class WritableTxnMarkerResult(Struct):
    producer_id: Int64
    topics: Array[WritableTxnMarkerTopicResult]


class WriteTxnMarkersResponse(Response, api_key=27, versions=(0, 2), flexible=1):
    """v1: flexible
    v2: layout of v1
    """

    markers: Array[WritableTxnMarkerResult]
