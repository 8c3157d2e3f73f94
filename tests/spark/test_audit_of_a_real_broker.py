"""The audit of a real broker's directory recommends the retention that clients requested.

Brokers up to 2.0 store an expire timestamp with every commit, later ones only with commits that request a retention;
the log of one broker of each kind is recorded (`tests.spark.record_logs`).
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from kproto.spark import jobs
from kproto.spark.log_input import LogInput
from tests.examples.two_weeks import DAY_MS
from tests.fixture_files import offsets_log
from tests.spark.record_logs import RETENTIONS

CURRENT_MINUTES = 10_080
LONGEST_MS = {"a-day": DAY_MS, "a-month": 28 * DAY_MS, "a-bit-more": 28 * DAY_MS + 1, "changing": 60 * DAY_MS}
MINUTES = {
    "no-request": CURRENT_MINUTES,
    "a-day": CURRENT_MINUTES,
    "a-month": 40_320,
    "a-bit-more": 40_321,
    "changing": 86_400,
}
RECORDS, COMMITTED = 7, 3


@pytest.mark.parametrize("release", ["2.0.1", "4.4.0"])
def test_the_audit_recommends_the_requested_retentions(embedded_session: SparkSession, release: str) -> None:
    log = LogInput(embedded_session, str(offsets_log("requested-retentions", release)))
    audit = {
        row["group_id"]: row for row in jobs.retention_audit(log.commits, retention_minutes=CURRENT_MINUTES).collect()
    }
    assert {group: row["recommended_minutes"] for group, row in audit.items()} == MINUTES
    expected = {**dict.fromkeys(RETENTIONS), **LONGEST_MS}
    assert {group: row["max_override_ms"] for group, row in audit.items()} == expected
    # KIP-211's question: the broker's own retention would have expired the offsets of all groups by then.
    at = log.coverage.last_ts + timedelta(minutes=CURRENT_MINUTES + 1)
    what_if = jobs.what_if(
        log.commits,
        log.group_metadata,
        current_minutes=CURRENT_MINUTES,
        retention_minutes=CURRENT_MINUTES,
        at=at,
        kafka_version=release,
        ignore_overrides=True,
    )
    lost = {row["group_id"]: (row["lost"], row["what_if_lost"]) for row in what_if.collect()}
    assert lost == {group: (0 if group in ("a-month", "a-bit-more") else 1, 1) for group in RETENTIONS}
    lag = jobs.lag(log.commits, log.log_batches, moments=[log.coverage.last_ts])
    found = {(row["group_id"], row["lag"]) for row in lag.collect()}
    assert found == {(group, RECORDS - COMMITTED) for group in RETENTIONS}
