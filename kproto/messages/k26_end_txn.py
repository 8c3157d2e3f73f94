"""EndTxn (API key 26): a producer commits or aborts its transaction."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Bool, Int16, Int32, Int64, String, ignorable, since
from kproto.message import Request, Response


class EndTxnRequest(Request, api_key=26, versions=(0, 5), flexible=3):
    """v1-v2: layout of v0
    v3: flexible
    v4: layout of v3
    v5: layout of v4; each transaction has its own epoch (KIP-890)
    """

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Response, api_key=26, versions=(0, 5), flexible=3):
    """v1: layout of v0; throttled at the client
    v2: layout of v1; may return PRODUCER_FENCED
    v3: flexible
    v4: layout of v3; may return TRANSACTION_ABORTABLE
    v5: + producer_id, + producer_epoch; id and epoch of the next transaction
    """

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Annotated[Int64, since(5), ignorable] = -1
    producer_epoch: Annotated[Int16, since(5), ignorable] = -1
