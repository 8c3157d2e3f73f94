"""CreateDelegationToken (API key 38): a client obtains a token, with which others can authenticate as its owner."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bytes, Int16, Int32, Int64, NullableString, String, Struct, since
from kproto.message import Request, Response


class CreatableRenewers(Struct):
    principal_type: String
    principal_name: String


class CreateDelegationTokenRequest(Request, api_key=38, versions=(0, 3), flexible=2):
    """v1: layout of v0
    v2: flexible
    v3: + owner_principal_type?, + owner_principal_name?
    """

    owner_principal_type: Annotated[NullableString, since(3)] = ""
    owner_principal_name: Annotated[NullableString, since(3)] = ""
    renewers: Array[CreatableRenewers]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(Response, api_key=38, versions=(0, 3), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    v3: + token_requester_principal_type, + token_requester_principal_name
    """

    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: Annotated[String, since(3)] = ""
    token_requester_principal_name: Annotated[String, since(3)] = ""
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32
    _secrets = frozenset({"hmac"})
