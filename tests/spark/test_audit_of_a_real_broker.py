"""The audit of a real broker's directory recommends the retention that clients requested, and so does the report.

Brokers up to 2.0 store an expire timestamp with every commit, later ones only with commits that request a retention;
one of each kind is tested.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.spark import cli, jobs
from kproto.spark.inputs import LogInput
from tests.clients.admin import create_topic, wait_coordinators
from tests.examples.two_weeks import DAY_MS, OldClient
from tests.oracle.cluster import NEWEST, real_kafka

CURRENT_MINUTES = 10_080
SENT = {
    "no-request": (2, [-1]),
    "a-day": (2, [DAY_MS]),
    "a-month": (3, [28 * DAY_MS]),
    "a-bit-more": (4, [28 * DAY_MS + 1]),
    "changing": (4, [60 * DAY_MS, -1, 3600_000]),
}
"""By group: the version of OffsetCommit, and the `retention_time_ms` of each."""
LONGEST_MS = {"a-day": DAY_MS, "a-month": 28 * DAY_MS, "a-bit-more": 28 * DAY_MS + 1, "changing": 60 * DAY_MS}
MINUTES = {
    "no-request": CURRENT_MINUTES,
    "a-day": CURRENT_MINUTES,
    "a-month": 40_320,
    "a-bit-more": 40_321,
    "changing": 86_400,
}
RECORDS, COMMITTED = 7, 3


def send(servers: str) -> None:
    """Send the commits in `SENT`."""
    create_topic(servers, "orders", 1)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for _ in range(RECORDS):
            producer.send("orders", b"something sold").get(30)
    wait_coordinators(servers, list(SENT))
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=COMMITTED, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name="orders", partitions=(partition,)),)
    for group, (version, retentions) in SENT.items():
        with OldClient(servers, group) as client:
            for retention_ms in retentions:
                request = OffsetCommitRequest(group_id=group, retention_time_ms=retention_ms, topics=topics)
                response = client.ask(request, version)
                assert response.topics[0].partitions[0].error_code == 0


@pytest.mark.oracle
@pytest.mark.slow  # starts a real broker
@pytest.mark.parametrize("release", ["2.0.1", NEWEST])
def test_the_audit_recommends_the_requested_retentions(
    spark: SparkSession, tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with real_kafka(release) as cluster:
        send(cluster.bootstrap)
        cluster.stop(1)
        copy = tmp_path / "copy"
        shutil.copytree(cluster.folder / "node-1" / "data", copy)

    log = LogInput(spark, str(copy))
    audit = {
        row["group_id"]: row for row in jobs.retention_audit(log.commits, retention_minutes=CURRENT_MINUTES).collect()
    }
    assert {group: row["recommended_minutes"] for group, row in audit.items()} == MINUTES
    assert {group: row["max_override_ms"] for group, row in audit.items()} == {**dict.fromkeys(SENT), **LONGEST_MS}
    lag = jobs.lag(log.commits, log.log_batches, moments=[log.coverage.last_ts])
    assert {(row["group_id"], row["lag"]) for row in lag.collect()} == {(group, RECORDS - COMMITTED) for group in SENT}

    monkeypatch.setattr(cli, "_session", lambda _options: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    page = tmp_path / "report.html"
    assert cli.main(["report", str(copy), "-o", str(page)]) == 0
    line = "3 groups need a longer retention than 10,080 minutes: set offsets.retention.minutes to 86,400"
    assert line in page.read_text(encoding="utf-8")
