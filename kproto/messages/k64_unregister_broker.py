"""UnregisterBroker (API key 64): an administrator removes a broker from a KRaft cluster."""

from __future__ import annotations

from kproto.declaration import Int16, Int32, NullableString
from kproto.message import Request, Response


class UnregisterBrokerRequest(Request, api_key=64, versions=(0, 0), flexible=0):
    broker_id: Int32


class UnregisterBrokerResponse(Response, api_key=64, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
