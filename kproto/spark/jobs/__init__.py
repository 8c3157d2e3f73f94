"""The jobs: one function for each question, from DataFrames of the log's tables to a DataFrame of the job's table.

The inputs are tables of `kproto.arrow.schemas`, the outputs tables of `kproto.spark.schemas`. No job reads files or
runs a Spark action, so its rows may come from a log, from tables, from a stream or from a test.
"""

from __future__ import annotations

from kproto.spark.jobs.assignments import assignments
from kproto.spark.jobs.check import check
from kproto.spark.jobs.expiry import expiry
from kproto.spark.jobs.hot_partitions import hot_partitions
from kproto.spark.jobs.lag import lag
from kproto.spark.jobs.latest import latest
from kproto.spark.jobs.rates import rates
from kproto.spark.jobs.rebalances import rebalances
from kproto.spark.jobs.retention_audit import retention_audit
from kproto.spark.jobs.rewinds import rewinds
from kproto.spark.jobs.stalled import stalled
from kproto.spark.jobs.transactions import transactions
from kproto.spark.jobs.versions import versions
from kproto.spark.jobs.what_if import what_if

__all__ = [
    "assignments",
    "check",
    "expiry",
    "hot_partitions",
    "lag",
    "latest",
    "rates",
    "rebalances",
    "retention_audit",
    "rewinds",
    "stalled",
    "transactions",
    "versions",
    "what_if",
]
