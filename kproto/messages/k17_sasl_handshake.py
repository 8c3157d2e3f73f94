"""SaslHandshake (API key 17): a client selects the SASL mechanism of the following authentication."""

from __future__ import annotations

from kproto.declaration import Array, Int16, String
from kproto.message import Request, Response


class SaslHandshakeRequest(Request, api_key=17, versions=(0, 1)):
    """v0: SASL tokens follow, behind their size but without a header
    v1: layout of v0; SaslAuthenticate follows, not raw SASL bytes
    """

    mechanism: String


class SaslHandshakeResponse(Response, api_key=17, versions=(0, 1)):
    """v1: layout of v0."""

    error_code: Int16
    mechanisms: Array[String]
