"""AddPartitionsToTxn (API key 24): a producer adds partitions to its transaction."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, Int64, String, Struct, ignorable, since, until
from kproto.message import Request, Response


class AddPartitionsToTxnTopic(Struct):
    name: String
    partitions: Array[Int32]


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    """Only check whether the partitions are in the transaction."""
    topics: Array[AddPartitionsToTxnTopic]


class AddPartitionsToTxnRequest(Request, api_key=24, versions=(0, 5), flexible=3):
    """v1-v2: layout of v0
    v3: flexible
    v4: + transactions, - v3_and_below_transactional_id, - v3_and_below_producer_id, - v3_and_below_producer_epoch,
          - v3_and_below_topics; brokers send it for several transactions; clients use v3
    v5: layout of v4
    """

    transactions: Annotated[Array[AddPartitionsToTxnTransaction], since(4)] = ()
    v3_and_below_transactional_id: Annotated[String, until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, until(3)] = 0
    v3_and_below_topics: Annotated[Array[AddPartitionsToTxnTopic], until(3)] = ()


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32
    partition_error_code: Int16


class AddPartitionsToTxnTopicResult(Struct):
    name: String
    results_by_partition: Array[AddPartitionsToTxnPartitionResult]


class AddPartitionsToTxnResult(Struct):
    transactional_id: String
    topic_results: Array[AddPartitionsToTxnTopicResult]


class AddPartitionsToTxnResponse(Response, api_key=24, versions=(0, 5), flexible=3):
    """v1: layout of v0; throttled at the client
    v2: layout of v1; may return PRODUCER_FENCED
    v3: flexible
    v4: + error_code, + results_by_transaction, - results_by_topic_v3_and_below
    v5: layout of v4; may return TRANSACTION_ABORTABLE
    """

    throttle_time_ms: Int32
    error_code: Annotated[Int16, since(4), ignorable] = 0
    results_by_transaction: Annotated[Array[AddPartitionsToTxnResult], since(4)] = ()
    results_by_topic_v3_and_below: Annotated[Array[AddPartitionsToTxnTopicResult], until(3)] = ()
