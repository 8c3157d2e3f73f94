"""DeleteTopics (API key 20): an administrator deletes topics."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Int16,
    Int32,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    nullable,
    since,
    until,
)
from kproto.message import Request, Response


class DeleteTopicState(Struct):
    name: NullableString = None
    topic_id: Uuid


class DeleteTopicsRequest(Request, api_key=20, versions=(0, 6), flexible=4):
    """v1-v3: layout of v0
    v4: flexible
    v5: layout of v4
    v6: + topics, - topic_names; topics by name or id
    """

    topics: Annotated[Array[DeleteTopicState], since(6)] = ()
    topic_names: Annotated[Array[String], until(5), ignorable] = ()
    timeout_ms: Int32


class DeletableTopicResult(Struct):
    name: Annotated[String | None, nullable(since(6))]
    topic_id: Annotated[Uuid, since(6), ignorable] = ZERO_UUID
    error_code: Int16
    error_message: Annotated[NullableString, since(5), ignorable] = None


class DeleteTopicsResponse(Response, api_key=20, versions=(0, 6), flexible=4):
    """v1: + throttle_time_ms
    v2: layout of v1; throttled at the client
    v3: layout of v2; may return TOPIC_DELETION_DISABLED
    v4: flexible
    v5: + responses[].error_message?; may return THROTTLING_QUOTA_EXCEEDED
    v6: + responses[].topic_id, responses[].name may be null; may return UNKNOWN_TOPIC_ID
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    responses: Array[DeletableTopicResult]
