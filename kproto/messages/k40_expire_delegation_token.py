"""ExpireDelegationToken (API key 40): a client changes the expiry time of a delegation token, or expires it at once."""

from __future__ import annotations

from kproto.declaration import Bytes, Int16, Int32, Int64
from kproto.message import Request, Response


class ExpireDelegationTokenRequest(Request, api_key=40, versions=(0, 2), flexible=2):
    """v1: layout of v0
    v2: flexible
    """

    hmac: Bytes
    expiry_time_period_ms: Int64
    _secrets = frozenset({"hmac"})


class ExpireDelegationTokenResponse(Response, api_key=40, versions=(0, 2), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    """

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32
