"""EndTxn (API key 26)."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Bool, Int16, Int32, Int64, Request, Response, String, ignorable, since


class EndTxnRequest(Request, api_key=26, versions=(0, 5), flexible=3):
    """v1-v2: layout of v0
    v3: flexible
    v4-v5: layout of v3
    """

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Response, api_key=26, versions=(0, 5), flexible=3):
    """v1-v2: layout of v0
    v3: flexible
    v4: layout of v3
    v5: + producer_id, + producer_epoch
    """

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Annotated[Int64, since(5), ignorable] = -1
    producer_epoch: Annotated[Int16, since(5), ignorable] = -1
