"""Reports written by hand: one with every section and with long and strange names, and one that is empty."""

from __future__ import annotations

from datetime import timedelta

from kproto.spark.advice import Advice
from kproto.spark.input import Coverage
from kproto.spark.report.model import Histogram, Lines, Report, Row, Rows
from tests.spark.rows import at

LONG = "a-consumer-group-" + "with-a-very-long-name-" * 9
STRANGE = 'nasty<script>"\x1b[31m'
NAMES = ["orders", "billing", LONG, STRANGE, "größe"]
HOUR = 3600
NO_ROWS = Rows([], 0)


def coverage(*, missing: int = 0) -> Coverage:
    return Coverage(
        path="/var/lib/kafka/" + "data/" * 20,
        files=53,
        bytes=503_000_000,
        ends=dict.fromkeys(range(50), 104_000),
        batches=523_032,
        records=5_200_001,
        missing=missing,
        first_offset=0,
        starts_late=3 if missing else 0,
        first_ts=at(0),
        last_ts=at(48 * HOUR),
        skipped={"7": 3, "16": 1234} if missing else {},
        partitions=50,
        of_partitions=50,
    )


def full_report() -> Report:
    times = [at(number * HOUR) for number in range(48)]
    lags: list[Row] = [
        {"group_id": name, "lag": 10**9 + number, "partitions": 12, "worst": f"{LONG}-7", "worst_lag": 10**8}
        for number, name in enumerate(NAMES)
    ]
    return Report(
        coverage=coverage(missing=2_000_000),
        at=at(48 * HOUR),
        is_end=True,
        retention_minutes=10_080,
        stalled_minutes=60,
        groups=1500,
        offsets=53_946,
        commits=5_100_000,
        rates=Histogram(
            at(0),
            timedelta(hours=1),
            48,
            {name: [(hour * 37 + number * 11) % 90 * 100 for hour in range(48)] for number, name in enumerate(NAMES)},
        ),
        audit=Rows([audit(name) for name in NAMES], 1500),
        advice=Advice(10_080, 40_320, over=3, gone=1),
        losses=Histogram(
            at(40 * HOUR), timedelta(hours=2), 60, {"group_metadata": [0] * 59 + [900], "override": [3] * 60}
        ),
        expiry=Rows([loss(name) for name in NAMES], 88),
        lost_soon=30,
        kept=41_000,
        lag=Lines(times, {name: [None if hour < 5 else hour * 900_000 for hour in range(48)] for name in NAMES}),
        lags=Rows(lags, 5),
        lag_unknown=12,
        hot=Rows([hot(number) for number in range(15)], 50),
        stalled=Rows([stalled(name) for name in NAMES], 5),
        rewinds=Rows([rewind(name) for name in NAMES], 4486),
        rebalances=Rows([events(name) for name in NAMES], 5),
    )


def empty_report() -> Report:
    return Report(
        coverage=coverage(),
        at=at(0),
        is_end=False,
        retention_minutes=10_080,
        stalled_minutes=60,
        groups=0,
        offsets=0,
        commits=0,
        rates=None,
        audit=NO_ROWS,
        advice=Advice(10_080, 10_080, over=0, gone=0),
        losses=None,
        expiry=NO_ROWS,
        lost_soon=0,
        kept=0,
        lag=None,
        lags=NO_ROWS,
        lag_unknown=0,
        hot=NO_ROWS,
        stalled=NO_ROWS,
        rewinds=NO_ROWS,
        rebalances=NO_ROWS,
    )


def audit(name: str) -> Row:
    return {
        "group_id": name,
        "max_override_ms": None if name == "orders" else 2_419_200_000,
        "n_overrides": 12,
        "n_commits": 1_000_000,
        "first_seen": at(0),
        "last_seen": at(HOUR),
        "recommended_minutes": 40_320,
        "has_offsets": name != "billing",
    }


def loss(name: str) -> Row:
    return {
        "group_id": name,
        "became_empty_ts": None if name == "orders" else at(HOUR),
        "expires_ts": at(47 * HOUR if name == "orders" else 60 * HOUR),
        "offsets_lost": 12,
        "offsets_left": 0,
        "basis": "override" if name == "orders" else "group_metadata",
    }


def hot(number: int) -> Row:
    return {
        "log_partition": number,
        "commits": 9000 - number * 600,
        "bytes": None if number == 3 else 10**8,
        "share": (9000 - number * 600) / 100_000,
        "groups": 30,
        "top_group": LONG if number == 2 else "orders",
        "top_share": 0.9996,
    }


def stalled(name: str) -> Row:
    return {
        "group_id": name,
        "topic": LONG if name == "billing" else "t",
        "partition": 3,
        "committed_offset": 10**12,
        "since_ts": at(0),
        "last_commit_ts": at(HOUR),
        "commits": 3600,
        "lag": None if name == "orders" else 10**9,
    }


def rewind(name: str) -> Row:
    return {
        "group_id": name,
        "topic": "t",
        "partition": 3,
        "ts": at(HOUR),
        "from_offset": 10**9,
        "to_offset": 0,
        "rewound": 10**9,
        "after_loss": name == "orders",
    }


def events(name: str) -> Row:
    return {
        "group_id": name,
        "rebalanced": 120,
        "emptied": 1,
        "removed": 0,
        "members_max": None if name == "orders" else 40,
        "last_ts": at(HOUR),
    }
