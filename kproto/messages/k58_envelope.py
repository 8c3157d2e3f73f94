"""Envelope (API key 58): a broker forwards a client's request to the controller."""

from __future__ import annotations

from kproto.declaration import Bytes, Int16, NullableBytes
from kproto.message import Request, Response


class EnvelopeRequest(Request, api_key=58, versions=(0, 0), flexible=0):
    request_data: Bytes
    request_principal: NullableBytes
    client_host_address: Bytes


class EnvelopeResponse(Response, api_key=58, versions=(0, 0), flexible=0):
    response_data: NullableBytes = None
    error_code: Int16
