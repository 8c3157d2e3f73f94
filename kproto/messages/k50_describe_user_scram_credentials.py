"""DescribeUserScramCredentials (API key 50): the SCRAM mechanisms for which users have credentials."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, NullableString, String, Struct, nullable
from kproto.message import Request, Response


class UserName(Struct):
    name: String


class DescribeUserScramCredentialsRequest(Request, api_key=50, versions=(0, 0), flexible=0):
    users: Annotated[Array[UserName] | None, nullable()]


class CredentialInfo(Struct):
    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: NullableString
    credential_infos: Array[CredentialInfo]


class DescribeUserScramCredentialsResponse(Response, api_key=50, versions=(0, 0), flexible=0, has_slices=True):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    results: Array[DescribeUserScramCredentialsResult]
