"""DescribeCluster (API key 60): id, controller and brokers of the cluster, without topics."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int8, Int16, Int32, NullableString, String, Struct, since
from kproto.message import Request, Response


class DescribeClusterRequest(Request, api_key=60, versions=(0, 2), flexible=0):
    """v1: + endpoint_type
    v2: + include_fenced_brokers
    """

    include_cluster_authorized_operations: Bool
    endpoint_type: Annotated[Int8, since(1)] = 1
    """1: brokers; 2: controllers."""
    include_fenced_brokers: Annotated[Bool, since(2)] = False


class DescribeClusterBroker(Struct):
    broker_id: Int32
    host: String
    port: Int32
    rack: NullableString = None
    is_fenced: Annotated[Bool, since(2)] = False


class DescribeClusterResponse(Response, api_key=60, versions=(0, 2), flexible=0):
    """v1: + endpoint_type; may return MISMATCHED_ENDPOINT_TYPE and UNSUPPORTED_ENDPOINT_TYPE
    v2: + brokers[].is_fenced
    """

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: String
    controller_id: Int32 = -1
    brokers: Array[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = -2147483648
    """Bit n is ACL operation n; -2147483648 if the request does not ask for it."""
