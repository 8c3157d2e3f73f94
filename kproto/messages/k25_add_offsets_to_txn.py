"""AddOffsetsToTxn (API key 25): a producer adds a group's offsets to its transaction."""

from __future__ import annotations

from kproto.declaration import Int16, Int32, Int64, String
from kproto.message import Request, Response


class AddOffsetsToTxnRequest(Request, api_key=25, versions=(0, 4), flexible=3):
    """v1-v2: layout of v0
    v3: flexible
    v4: layout of v3
    """

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Response, api_key=25, versions=(0, 4), flexible=3):
    """v1: layout of v0; throttled at the client
    v2: layout of v1; may return PRODUCER_FENCED
    v3: flexible
    v4: layout of v3; may return TRANSACTION_ABORTABLE
    """

    throttle_time_ms: Int32
    error_code: Int16
