"""PushTelemetry (API key 72): a client sends its metrics (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k72_push_telemetry import PushTelemetryResponse
from kproto_server.handlers._telemetry import client_of, sender_of

if TYPE_CHECKING:
    from kproto.messages.k72_push_telemetry import PushTelemetryRequest
    from kproto_server.requests.context import RequestContext


def handle(request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    error = context.client_metrics.push(
        request.client_instance_id,
        client_of(request.client_instance_id, context),
        sender_of(context),
        context.now_ms,
        subscription_id=request.subscription_id,
        compression=request.compression_type,
        payload=bytes(request.metrics),
        is_terminating=request.terminating,
    )
    return PushTelemetryResponse(throttle_time_ms=0, error_code=error)
