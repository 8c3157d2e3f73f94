"""AddRaftVoter (API key 80): an administrator adds a voter to the controllers' quorum."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, NullableString, String, Struct, UInt16, Uuid, since
from kproto.message import Request, Response


class Listener(Struct):
    name: String
    host: String
    port: UInt16


class AddRaftVoterRequest(Request, api_key=80, versions=(0, 1), flexible=0):
    """v1: + ack_when_committed."""

    cluster_id: NullableString
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: Array[Listener]
    ack_when_committed: Annotated[Bool, since(1)] = True


class AddRaftVoterResponse(Response, api_key=80, versions=(0, 1), flexible=0):
    """v1: layout of v0."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
