"""GetTelemetrySubscriptions (API key 71): the metrics that the cluster wants from a client (KIP-714).

Brokers respond to it whether or not they advertise it, which they do only with a receiver of metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k71_get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from kproto_server.client_metrics.subscriptions import ACCEPTED_COMPRESSIONS
from kproto_server.handlers._telemetry import client_of, sender_of

if TYPE_CHECKING:
    from kproto.messages.k71_get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
    from kproto_server.requests.context import RequestContext

NO_ID = bytes(16)


def handle(request: GetTelemetrySubscriptionsRequest, context: RequestContext) -> GetTelemetrySubscriptionsResponse:
    client_metrics = context.client_metrics
    instance_id = request.client_instance_id
    if instance_id == NO_ID:
        instance_id = client_metrics.new_instance_id()
    found = client_metrics.ask(instance_id, client_of(instance_id, context), sender_of(context), context.now_ms)
    if isinstance(found, ErrorCode):
        return _refused(found)
    return GetTelemetrySubscriptionsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        client_instance_id=instance_id,
        subscription_id=found.subscription_id,
        accepted_compression_types=ACCEPTED_COMPRESSIONS,
        push_interval_ms=found.interval_ms,
        telemetry_max_bytes=context.settings.of(context.node.node_id).int("telemetry.max.bytes"),
        delta_temporality=True,
        requested_metrics=found.metrics,
    )


def _refused(error: ErrorCode) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(
        throttle_time_ms=0,
        error_code=error,
        client_instance_id=NO_ID,
        subscription_id=0,
        accepted_compression_types=(),
        push_interval_ms=0,
        telemetry_max_bytes=0,
        delta_temporality=False,
        requested_metrics=(),
    )
