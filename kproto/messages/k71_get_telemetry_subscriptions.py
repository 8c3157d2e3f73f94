"""GetTelemetrySubscriptions (API key 71): the metrics that the cluster wants from a client."""

from __future__ import annotations

from kproto.declaration import Array, Bool, Int8, Int16, Int32, String, Uuid
from kproto.message import Request, Response


class GetTelemetrySubscriptionsRequest(Request, api_key=71, versions=(0, 0), flexible=0):
    client_instance_id: Uuid


class GetTelemetrySubscriptionsResponse(Response, api_key=71, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    client_instance_id: Uuid
    subscription_id: Int32
    accepted_compression_types: Array[Int8]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: Array[String]
