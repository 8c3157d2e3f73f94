"""RemoveRaftVoter (API key 81): an administrator removes a voter from the controllers' quorum."""

from __future__ import annotations

from kproto.declaration import Int16, Int32, NullableString, Uuid
from kproto.message import Request, Response


class RemoveRaftVoterRequest(Request, api_key=81, versions=(0, 0), flexible=0):
    cluster_id: NullableString
    voter_id: Int32
    voter_directory_id: Uuid


class RemoveRaftVoterResponse(Response, api_key=81, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
