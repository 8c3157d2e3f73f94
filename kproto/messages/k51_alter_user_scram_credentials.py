"""AlterUserScramCredentials (API key 51): an administrator sets or removes users' SCRAM credentials."""

from __future__ import annotations

from kproto.declaration import Array, Bytes, Int8, Int16, Int32, NullableString, String, Struct
from kproto.message import Request, Response


class ScramCredentialDeletion(Struct):
    name: String
    mechanism: Int8


class ScramCredentialUpsertion(Struct):
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes
    _secrets = frozenset({"salt", "salted_password"})


class AlterUserScramCredentialsRequest(Request, api_key=51, versions=(0, 0), flexible=0):
    deletions: Array[ScramCredentialDeletion]
    upsertions: Array[ScramCredentialUpsertion]


class AlterUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: NullableString


class AlterUserScramCredentialsResponse(Response, api_key=51, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    results: Array[AlterUserScramCredentialsResult]
