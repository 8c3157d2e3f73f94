"""PushTelemetry (API key 72): a client sends its metrics."""

from __future__ import annotations

from kproto.declaration import Bool, Bytes, Int8, Int16, Int32, Uuid
from kproto.message import Request, Response


class PushTelemetryRequest(Request, api_key=72, versions=(0, 0), flexible=0):
    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


class PushTelemetryResponse(Response, api_key=72, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
