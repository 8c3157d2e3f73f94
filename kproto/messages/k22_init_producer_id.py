"""InitProducerId (API key 22): a producer obtains the id and epoch that make its writes idempotent or transactional."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Bool, Int16, Int32, Int64, NullableString, since
from kproto.message import Request, Response


class InitProducerIdRequest(Request, api_key=22, versions=(0, 6), flexible=2):
    """v1: layout of v0
    v2: flexible
    v3: + producer_id, + producer_epoch; a producer may continue with its id
    v4-v5: layout of v3
    v6: + enable2_pc, + keep_prepared_txn; two-phase commit (KIP-939)
    """

    transactional_id: NullableString
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, since(3)] = -1
    """-1: assign a new id."""
    producer_epoch: Annotated[Int16, since(3)] = -1
    enable2_pc: Annotated[Bool, since(6)] = False
    keep_prepared_txn: Annotated[Bool, since(6)] = False


class InitProducerIdResponse(Response, api_key=22, versions=(0, 6), flexible=2):
    """v1: layout of v0; throttled at the client
    v2: flexible
    v3: layout of v2
    v4: layout of v3; may return PRODUCER_FENCED
    v5: layout of v4; may return TRANSACTION_ABORTABLE
    v6: + ongoing_txn_producer_id, + ongoing_txn_producer_epoch
    """

    throttle_time_ms: Int32
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Annotated[Int64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, since(6)] = -1
