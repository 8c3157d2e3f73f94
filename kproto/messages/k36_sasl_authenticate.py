"""SaslAuthenticate (API key 36): one step of a SASL exchange, after SaslHandshake v1."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Bytes, Int16, Int64, NullableString, ignorable, since
from kproto.message import Request, Response


class SaslAuthenticateRequest(Request, api_key=36, versions=(0, 2), flexible=2):
    """v1: layout of v0
    v2: flexible
    """

    auth_bytes: Bytes
    _secrets = frozenset({"auth_bytes"})


class SaslAuthenticateResponse(Response, api_key=36, versions=(0, 2), flexible=2):
    """v1: + session_lifetime_ms
    v2: flexible
    """

    error_code: Int16
    error_message: NullableString
    auth_bytes: Bytes
    session_lifetime_ms: Annotated[Int64, since(1), ignorable] = 0
    """Milliseconds until the client must authenticate again; 0: never."""
    _secrets = frozenset({"auth_bytes"})
