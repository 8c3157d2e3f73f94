"""The tables that Spark's jobs return, declared as in `kproto.arrow.schemas`, and Spark's form of any table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.arrow.schemas import COMMITS, GROUP, GROUP_METADATA, KEY, LATEST, LOG_BATCHES, Table, Type, declare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def spark_schema(table: Table) -> StructType:
    """Return the Spark schema of a table."""
    from pyspark.sql import types

    spark_types: dict[Type, Any] = {
        Type.BOOLEAN: types.BooleanType(),
        Type.SMALLINT: types.ShortType(),
        Type.INT: types.IntegerType(),
        Type.BIGINT: types.LongType(),
        Type.DOUBLE: types.DoubleType(),
        Type.STRING: types.StringType(),
        Type.STRINGS: types.ArrayType(types.StringType()),
        Type.UUID: types.BinaryType(),
        Type.TIMESTAMP: types.TimestampType(),
    }
    return types.StructType([types.StructField(column.name, spark_types[column.type]) for column in table.columns])


def select_columns(table: Table, rows: DataFrame) -> DataFrame:
    """Return the rows with exactly the columns of a table, in its order and types."""
    return rows.select(*(rows[column.name].cast(column.type.value).alias(column.name) for column in table.columns))


COVERAGE = declare(
    "coverage",
    "What was read, a row for each part that a task read of a partition of the offsets topic: sums are the whole.",
    ("topic", Type.STRING, "the topic"),
    ("partition", Type.INT, "its partition"),
    ("first_offset", Type.BIGINT, "of the first batch; null: the part has none"),
    ("last_offset", Type.BIGINT, "of the last batch; null as `first_offset`"),
    ("bytes", Type.BIGINT, "of batches"),
    ("torn_bytes", Type.BIGINT, "behind the last batch of the newest segment: one that was not written to its end"),
    ("batches", Type.BIGINT, "batches"),
    ("records", Type.BIGINT, "records: the sum of the columns that follow, but for `skipped_types`"),
    ("commits", Type.BIGINT, "of one offset, in transactions that were aborted too"),
    ("tombstones", Type.BIGINT, "of one offset"),
    ("group_records", Type.BIGINT, "about groups and members: what `group_metadata` has"),
    ("markers", Type.BIGINT, "ends of transactions"),
    ("skipped_records", Type.BIGINT, "of types that no table has"),
    ("skipped_types", Type.STRINGS, "those types, by Kafka's number, and how many of each: `8: 12`"),
)

RETENTION_AUDIT = declare(
    "retention_audit",
    "A row for each group: what KIP-211's removal of `retention_time` means for it.",
    GROUP,
    ("max_override_ms", Type.BIGINT, "the longest retention asked for; null: none but the broker's own"),
    ("n_overrides", Type.BIGINT, "commits with such a retention"),
    ("n_commits", Type.BIGINT, "commits seen"),
    ("first_seen", Type.TIMESTAMP, "its first commit in the log"),
    ("last_seen", Type.TIMESTAMP, "its last one"),
    ("recommended_minutes", Type.BIGINT, "offsets.retention.minutes: max(override rounded up, current)"),
)

GROUP_EXPIRY = declare(
    "group_expiry",
    "The timeline of what is lost if nobody commits or joins again: a row for each group and deadline.",
    GROUP,
    ("became_empty_ts", Type.TIMESTAMP, "null: it has members, or never had any, or the log does not tell"),
    ("expires_ts", Type.TIMESTAMP, "gone at the first sweep from then on; null: not while the group stays as it is"),
    ("offsets_lost", Type.BIGINT, "offsets of the group with this deadline"),
    ("offsets_left", Type.BIGINT, "offsets of the group after that; 0: an Empty group goes with them"),
    ("basis", Type.STRING, "group_metadata, last_commit, override, members (kept by them) or pending (a transaction)"),
)

WHAT_IF = declare(
    "what_if",
    "What each group has lost at one moment under two retentions, if nobody commits or joins until then.",
    GROUP,
    ("offsets", Type.BIGINT, "offsets it has in the log"),
    ("expires_ts", Type.TIMESTAMP, "its first loss under the current retention; null: none"),
    ("what_if_expires_ts", Type.TIMESTAMP, "its first loss under the other; null: none"),
    ("lost", Type.BIGINT, "offsets lost at that moment under the current retention"),
    ("what_if_lost", Type.BIGINT, "and under the other"),
)

RATES = declare(
    "rates",
    "Commits by hour.",
    GROUP,
    ("topic", Type.STRING, "the topic"),
    ("hour", Type.TIMESTAMP, "the hour's begin"),
    ("commits", Type.BIGINT, "commits of any of its partitions; without aborted ones"),
    ("rewinds", Type.BIGINT, "those to a lower offset than before"),
)

HOT_PARTITIONS = declare(
    "hot_partitions",
    "What each partition of the offsets topic carries.",
    ("log_partition", Type.INT, "partition of `__consumer_offsets`"),
    ("commits", Type.BIGINT, "commits in it"),
    ("bytes", Type.BIGINT, "on disk; null: the batches were not given"),
    ("share", Type.DOUBLE, "of all commits, 0 to 1"),
    ("groups", Type.BIGINT, "groups that live in it"),
    ("top_group", Type.STRING, "the one that commits most"),
    ("top_share", Type.DOUBLE, "its share of this partition's commits, 0 to 1"),
)

LAG = declare(
    "lag",
    "How far behind each group is.",
    *KEY,
    ("ts", Type.TIMESTAMP, "the moment it is told of"),
    ("committed_offset", Type.BIGINT, "the group's offset then"),
    ("log_end", Type.BIGINT, "the offset after the topic's last record then; null: its log is not in the directory"),
    ("lag", Type.BIGINT, "their difference, in offsets, not below 0; null as `log_end`"),
)

REWINDS = declare(
    "rewinds",
    "A row for each commit that went backwards.",
    *KEY,
    ("ts", Type.TIMESTAMP, "when"),
    ("from_offset", Type.BIGINT, "the offset before"),
    ("to_offset", Type.BIGINT, "the one committed"),
    ("rewound", Type.BIGINT, "their difference"),
    ("after_loss", Type.BOOLEAN, "the offset before had expired or been deleted meanwhile"),
    ("log_partition", Type.INT, "partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the record's offset there"),
)

STALLED = declare(
    "stalled",
    "A row for each offset that has not moved for a while.",
    *KEY,
    ("committed_offset", Type.BIGINT, "where it stands"),
    ("since_ts", Type.TIMESTAMP, "its first commit there"),
    ("last_commit_ts", Type.TIMESTAMP, "its last one"),
    ("commits", Type.BIGINT, "commits of that offset; more than 1: the group is alive, and gets nowhere"),
    ("stalled_minutes", Type.BIGINT, "from `since_ts` to the moment asked about"),
    ("log_end", Type.BIGINT, "null: the topic's log is not in the directory"),
    ("lag", Type.BIGINT, "in offsets; null as `log_end`"),
)

REBALANCES = declare(
    "rebalances",
    "A row for each record of a group's life.",
    GROUP,
    ("ts", Type.TIMESTAMP, "when"),
    ("event", Type.STRING, "formed, rebalanced, static member replaced, emptied or removed"),
    ("generation", Type.INT, "null: removed"),
    ("members", Type.INT, "null: removed"),
    ("members_before", Type.INT, "null: not known"),
    ("leader_changed", Type.BOOLEAN, "another member leads; null: none does, or did"),
    ("seconds_since", Type.DOUBLE, "since the group's event before; null: the first one of the log"),
)

VERSIONS = declare(
    "versions",
    "What clients send, and what a Kafka release makes of it: over any number of request reports.",
    ("software_name", Type.STRING, "as the client tells it (ApiVersions v3); null: it does not"),
    ("software_version", Type.STRING, "null as `software_name`"),
    ("client_id", Type.STRING, "null: several, or none told"),
    ("target", Type.STRING, "the release judged by"),
    ("api_key", Type.INT, "the API"),
    ("api", Type.STRING, "Kafka's name for it"),
    ("api_version", Type.INT, "the version sent"),
    ("verdict", Type.STRING, "served, breaks, newer or undecided"),
    ("runs", Type.BIGINT, "reports that saw it"),
    ("requests", Type.BIGINT, "requests in them"),
    ("first_served_by", Type.STRING, "the oldest release that serves it; null: none does"),
    ("last_served_by", Type.STRING, "the newest release older than the target that serves it"),
    ("first_seen", Type.TIMESTAMP, "start of the first of these runs; null: no run told its start"),
    ("last_seen", Type.TIMESTAMP, "start of the last of these runs; null as `first_seen`"),
)

TABLES = {
    table.name: table
    for table in (
        COMMITS,
        GROUP_METADATA,
        LOG_BATCHES,
        COVERAGE,
        LATEST,
        RETENTION_AUDIT,
        GROUP_EXPIRY,
        WHAT_IF,
        RATES,
        HOT_PARTITIONS,
        LAG,
        REWINDS,
        STALLED,
        REBALANCES,
        VERSIONS,
    )
}
"""Every table by its name."""
