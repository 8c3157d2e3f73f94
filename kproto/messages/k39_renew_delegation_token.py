"""RenewDelegationToken (API key 39): a client extends the expiry time of a delegation token."""

from __future__ import annotations

from kproto.declaration import Bytes, Int16, Int32, Int64
from kproto.message import Request, Response


class RenewDelegationTokenRequest(Request, api_key=39, versions=(0, 2), flexible=2):
    """v1: layout of v0
    v2: flexible
    """

    hmac: Bytes
    renew_period_ms: Int64
    _secrets = frozenset({"hmac"})


class RenewDelegationTokenResponse(Response, api_key=39, versions=(0, 2), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    """

    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32
