"""ListTransactions (API key 66): the transactions of a coordinator."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int16, Int32, Int64, NullableString, String, Struct, since
from kproto.message import Request, Response


class ListTransactionsRequest(Request, api_key=66, versions=(0, 2), flexible=0):
    """v1: + duration_filter
    v2: + transactional_id_pattern?
    """

    state_filters: Array[String]
    producer_id_filters: Array[Int64]
    duration_filter: Annotated[Int64, since(1)] = -1
    """Milliseconds since the transaction began; negative: any."""
    transactional_id_pattern: Annotated[NullableString, since(2)] = None


class TransactionState(Struct):
    transactional_id: String
    producer_id: Int64
    transaction_state: String


class ListTransactionsResponse(Response, api_key=66, versions=(0, 2), flexible=0, has_slices=True):
    """v1: layout of v0
    v2: layout of v1; may return INVALID_REGULAR_EXPRESSION
    """

    throttle_time_ms: Int32
    error_code: Int16
    unknown_state_filters: Array[String]
    transaction_states: Array[TransactionState]
