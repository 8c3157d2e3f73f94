"""One question, one function: DataFrames of `kproto.spark.schemas` in, a DataFrame of one of its tables out.

None of them reads files, counts rows or knows where its rows are from: a log, tables, a stream's sink or a test.
"""

from __future__ import annotations

from kproto.spark.jobs.expiry import expiry
from kproto.spark.jobs.hot_partitions import hot_partitions
from kproto.spark.jobs.lag import lag
from kproto.spark.jobs.latest import latest
from kproto.spark.jobs.rates import rates
from kproto.spark.jobs.rebalances import rebalances
from kproto.spark.jobs.retention_audit import retention_audit
from kproto.spark.jobs.rewinds import rewinds
from kproto.spark.jobs.stalled import stalled
from kproto.spark.jobs.versions import versions
from kproto.spark.jobs.what_if import what_if

__all__ = [
    "expiry",
    "hot_partitions",
    "lag",
    "latest",
    "rates",
    "rebalances",
    "retention_audit",
    "rewinds",
    "stalled",
    "versions",
    "what_if",
]
