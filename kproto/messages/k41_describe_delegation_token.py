"""DescribeDelegationToken (API key 41): the delegation tokens of some owners."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bytes, Int16, Int32, Int64, String, Struct, nullable, since
from kproto.message import Request, Response


class DescribeDelegationTokenOwner(Struct):
    principal_type: String
    principal_name: String


class DescribeDelegationTokenRequest(Request, api_key=41, versions=(0, 3), flexible=2):
    """v1: layout of v0
    v2: flexible
    v3: layout of v2
    """

    owners: Annotated[Array[DescribeDelegationTokenOwner] | None, nullable()]


class DescribedDelegationTokenRenewer(Struct):
    principal_type: String
    principal_name: String


class DescribedDelegationToken(Struct):
    principal_type: String
    principal_name: String
    token_requester_principal_type: Annotated[String, since(3)] = ""
    token_requester_principal_name: Annotated[String, since(3)] = ""
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: String
    hmac: Bytes
    renewers: Array[DescribedDelegationTokenRenewer]
    _secrets = frozenset({"hmac"})


class DescribeDelegationTokenResponse(Response, api_key=41, versions=(0, 3), flexible=2, has_slices=True):
    """v1: layout of v0; throttled at the client
    v2: flexible
    v3: + tokens[].token_requester_principal_type, + tokens[].token_requester_principal_name
    """

    error_code: Int16
    tokens: Array[DescribedDelegationToken]
    throttle_time_ms: Int32
