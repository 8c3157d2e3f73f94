"""DescribeTransactions (API key 65): the state of single transactions."""

from __future__ import annotations

from kproto.declaration import Array, Int16, Int32, Int64, String, Struct
from kproto.message import Request, Response


class DescribeTransactionsRequest(Request, api_key=65, versions=(0, 0), flexible=0):
    transactional_ids: Array[String]


class TopicData(Struct):
    topic: String
    partitions: Array[Int32]


class TransactionState(Struct):
    error_code: Int16
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: Array[TopicData]


class DescribeTransactionsResponse(Response, api_key=65, versions=(0, 0), flexible=0, has_slices=True):
    throttle_time_ms: Int32
    transaction_states: Array[TransactionState]
