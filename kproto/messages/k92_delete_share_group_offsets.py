"""DeleteShareGroupOffsets (API key 92): an administrator removes a share group's offsets of topics."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, NullableString, String, Struct, Uuid
from kproto.message import Request, Response


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: String


class DeleteShareGroupOffsetsRequest(Request, api_key=92, versions=(0, 0), flexible=0):
    group_id: String
    topics: Array[DeleteShareGroupOffsetsRequestTopic]


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: String
    topic_id: Uuid
    error_code: Int16
    error_message: NullableString = None


class DeleteShareGroupOffsetsResponse(Response, api_key=92, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    responses: Array[DeleteShareGroupOffsetsResponseTopic]
