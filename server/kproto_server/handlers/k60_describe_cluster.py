"""DescribeCluster (API key 60): the brokers and the controller, for Admin clients (BA-94)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k60_describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from kproto_server.handlers import _operations

if TYPE_CHECKING:
    from kproto_server.requests.context import RequestContext

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types: the kind of node that the client expects."""


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    cluster = context.cluster
    if request.endpoint_type == CONTROLLERS:
        return _refused(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    nodes = cluster.counted_nodes() if request.include_fenced_brokers else cluster.alive_nodes()
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=node.node_id, host=host, port=port, rack=node.rack, is_fenced=not node.alive
            )
            for node in nodes
            for host, port in (node.address(context.connection.listener),)
        ),
        cluster_authorized_operations=(
            _operations.ON_CLUSTER if request.include_cluster_authorized_operations else _operations.NOT_REQUESTED
        ),
    )


def _refused(error: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        throttle_time_ms=0, error_code=error, error_message=message, cluster_id="", brokers=()
    )
