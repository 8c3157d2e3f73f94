"""The tables that Spark's jobs return, declared as in `kproto.arrow.schemas`, and Spark's form of any table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.arrow.schemas import (
    ASSIGNMENT_RECORDS,
    COMMITS,
    GROUP,
    GROUP_METADATA,
    KEY,
    LATEST,
    LOG_BATCHES,
    TRANSACTION_STATES,
    Table,
    Type,
    declare,
)
from kproto.spark.output import not_a_glob

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def spark_schema(table: Table, never_null: frozenset[str] = frozenset()) -> StructType:
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
    return types.StructType(
        [
            types.StructField(column.name, spark_types[column.type], column.name not in never_null)
            for column in table.columns
        ]
    )


def ddl(table: Table) -> str:
    """Return the schema of a table as text, which both engines read: ``group_id string, topic string, ...``."""
    return ", ".join(f"{column.name} {column.type.value}" for column in table.columns)


def select_columns(table: Table, rows: DataFrame) -> DataFrame:
    """Return the rows with exactly the columns of a table, in its order and types."""
    return rows.select(*(rows[column.name].cast(column.type.value).alias(column.name) for column in table.columns))


def read_files(spark: SparkSession, table: Table, *paths: Path) -> DataFrame:
    """Return the rows of Parquet files, or of those below a directory; columns that a file lacks are null."""
    return spark.read.schema(ddl(table)).parquet(*map(not_a_glob, paths))


COVERAGE = declare(
    "coverage",
    "A row for each part of a partition that a task read; the sum over all rows covers the whole log.",
    ("topic", Type.STRING, "the topic"),
    ("partition", Type.INT, "the partition"),
    ("first_offset", Type.BIGINT, "of the first batch; null: the part has no batch"),
    ("last_offset", Type.BIGINT, "of the last batch; null as `first_offset`"),
    ("bytes", Type.BIGINT, "size of the batches"),
    ("torn_bytes", Type.BIGINT, "size of the torn tail of the newest segment"),
    ("batches", Type.BIGINT, "batches"),
    ("records", Type.BIGINT, "records: the sum of the counts below"),
    ("commits", Type.BIGINT, "commits of one offset, also in aborted transactions"),
    ("tombstones", Type.BIGINT, "tombstones of one offset"),
    ("group_records", Type.BIGINT, "records about groups and members: the rows of `group_metadata`"),
    ("markers", Type.BIGINT, "end markers of transactions"),
    ("skipped_records", Type.BIGINT, "records of types that no table has"),
    ("skipped_types", Type.STRINGS, "those types by Kafka's number, with their counts: `8: 12`"),
    ("earliest_ts", Type.TIMESTAMP, "the lowest of the batches' maximum timestamps; null: they have none (magic 0)"),
    ("latest_ts", Type.TIMESTAMP, "the highest of them; null as `earliest_ts`"),
)

RETENTION_AUDIT = declare(
    "retention_audit",
    "A row for each group: the retention it needs when KIP-211 removes `retention_time`.",
    GROUP,
    ("max_override_ms", Type.BIGINT, "the longest requested retention; null: only the broker's own was used"),
    ("n_overrides", Type.BIGINT, "commits with a requested retention"),
    ("n_commits", Type.BIGINT, "commits in the log"),
    ("first_seen", Type.TIMESTAMP, "the first commit in the log"),
    ("last_seen", Type.TIMESTAMP, "the last commit in the log"),
    ("recommended_minutes", Type.BIGINT, "offsets.retention.minutes: max(override rounded up, current)"),
    ("has_offsets", Type.BOOLEAN, "whether it has an offset at the end of the log; else it was deleted or lost them"),
)

GROUP_EXPIRY = declare(
    "group_expiry",
    "A row for each group and deadline: what expires if no client commits or joins again.",
    GROUP,
    ("became_empty_ts", Type.TIMESTAMP, "null: it has members, never had any, or the time is not stored"),
    (
        "expires_ts",
        Type.TIMESTAMP,
        "the offsets expire at the first expiration task from then on; null: never in the group's current state",
    ),
    ("offsets_lost", Type.BIGINT, "offsets of the group with this deadline"),
    ("offsets_left", Type.BIGINT, "offsets of the group after that; 0: an Empty group is removed too"),
    (
        "basis",
        Type.STRING,
        "origin of the deadline: group_metadata, last_commit, override; of no deadline: members, pending",
    ),
)

WHAT_IF = declare(
    "what_if",
    "The offsets of each group that are expired at one time under two retentions, without commits or joins until then.",
    GROUP,
    ("offsets", Type.BIGINT, "offsets of the group in the log"),
    ("expires_ts", Type.TIMESTAMP, "the first deadline under the current retention; null: none"),
    ("what_if_expires_ts", Type.TIMESTAMP, "the first deadline under the other retention; null: none"),
    ("lost", Type.BIGINT, "offsets expired at that time under the current retention"),
    ("what_if_lost", Type.BIGINT, "offsets expired at that time under the other retention"),
)

RATES = declare(
    "rates",
    "A row for each group, topic and hour with a commit.",
    GROUP,
    ("topic", Type.STRING, "the topic"),
    ("hour", Type.TIMESTAMP, "the beginning of the hour"),
    ("commits", Type.BIGINT, "commits of all partitions, without aborted ones"),
    ("rewinds", Type.BIGINT, "commits of a lower offset than before"),
)

HOT_PARTITIONS = declare(
    "hot_partitions",
    "The load of each partition of the offsets topic.",
    ("log_partition", Type.INT, "the partition of `__consumer_offsets`"),
    ("commits", Type.BIGINT, "commits in the partition"),
    ("bytes", Type.BIGINT, "size on disk; null: the batches are not in the input"),
    ("share", Type.DOUBLE, "share of all commits, 0 to 1"),
    ("groups", Type.BIGINT, "groups in the partition"),
    ("top_group", Type.STRING, "the group with the most commits"),
    ("top_share", Type.DOUBLE, "the share of that group in the commits of this partition, 0 to 1"),
)

LAG = declare(
    "lag",
    "How far behind the end of the topic's log each group is.",
    *KEY,
    ("ts", Type.TIMESTAMP, "the time of the row"),
    ("committed_offset", Type.BIGINT, "the group's offset at that time"),
    ("log_end", Type.BIGINT, "the end of the topic's log at that time; null: that log is not in the directory"),
    ("lag", Type.BIGINT, "the difference in offsets, at least 0; null as `log_end`"),
)

REWINDS = declare(
    "rewinds",
    "A row for each commit that went backwards.",
    *KEY,
    ("ts", Type.TIMESTAMP, "the time of the commit"),
    ("from_offset", Type.BIGINT, "the offset before"),
    ("to_offset", Type.BIGINT, "the committed offset"),
    ("rewound", Type.BIGINT, "the difference"),
    ("after_loss", Type.BOOLEAN, "the offset before had expired or been deleted in between"),
    ("log_partition", Type.INT, "the partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the offset of the record in that partition"),
)

STALLED = declare(
    "stalled",
    "A row for each offset that has not moved for a while.",
    *KEY,
    ("committed_offset", Type.BIGINT, "the offset that has not moved"),
    ("since_ts", Type.TIMESTAMP, "the first commit of this offset"),
    ("last_commit_ts", Type.TIMESTAMP, "the last commit in the log"),
    ("commits", Type.BIGINT, "commits of this offset; more than 1: the group is alive, but does not advance"),
    ("stalled_minutes", Type.BIGINT, "from `since_ts` to the time of the question"),
    ("log_end", Type.BIGINT, "null: the topic's log is not in the directory"),
    ("lag", Type.BIGINT, "lag in offsets; null as `log_end`"),
)

CHECK = declare(
    "check",
    "A row for each commit, record, group and batch that breaks an invariant.",
    ("invariant", Type.STRING, "offset beyond the end, generation fell, another partition, or missing offsets"),
    ("group_id", Type.STRING, "null: the row is about a topic's log"),
    ("topic", Type.STRING, "null: the row is about a group"),
    ("partition", Type.INT, "null as `topic`"),
    ("log_partition", Type.INT, "the partition of `__consumer_offsets`; null: the row is about a topic's log"),
    ("log_offset", Type.BIGINT, "the first record there that breaks it; null as `log_partition`"),
    ("ts", Type.TIMESTAMP, "the time of the commit, record or batch; null: not stored"),
    (
        "limit",
        Type.BIGINT,
        "the end of the topic's log, the generation before, the partition with most records of the group, or the first "
        "missing offset",
    ),
    ("value", Type.BIGINT, "what is there instead: the offset, the generation, the partition, the next offset"),
)

ASSIGNMENTS = declare(
    "assignments",
    "A row for each partition and member that owns it.",
    GROUP,
    ("kind", Type.STRING, "classic, consumer (KIP-848), share or streams"),
    ("topic", Type.STRING, "the topic; null: the input does not have the name of the id, or the row is about a task"),
    ("topic_id", Type.STRING, "as Kafka's tools print it; null: the record has none"),
    ("partition", Type.INT, "the partition"),
    ("member_id", Type.STRING, "the owner"),
    ("epoch", Type.INT, "the generation; of other kinds than classic, the epoch of the member"),
    ("revoked", Type.BOOLEAN, "the member has to give it up"),
    ("since_ts", Type.TIMESTAMP, "the time of the record"),
    ("owners", Type.BIGINT, "members that own it in this group: more than 1 is an error, but in share groups"),
    ("log_partition", Type.INT, "the partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the record there"),
    ("subtopology", Type.STRING, "the partition is that of a task of this subtopology; null: not of a streams group"),
    ("task", Type.STRING, "active, standby or warmup; null as `subtopology`"),
)

TRANSACTIONS = declare(
    "transactions",
    "A row for each transactional id.",
    ("transactional_id", Type.STRING, "the id"),
    ("state", Type.STRING, "Kafka's name of the state: Empty, Ongoing, PrepareCommit, CompleteAbort, ..."),
    ("producer_id", Type.BIGINT, "the producer of the id"),
    ("producer_epoch", Type.INT, "its epoch"),
    ("timeout_ms", Type.BIGINT, "how long a transaction of it may be open"),
    ("started_ts", Type.TIMESTAMP, "when its last transaction began; null: none has"),
    ("updated_ts", Type.TIMESTAMP, "when the state changed"),
    ("partitions", Type.STRINGS, "the partitions of the open transaction"),
    ("open_ms", Type.BIGINT, "from `started_ts` to the time of the question; null: no transaction is open"),
    ("hanging", Type.BOOLEAN, "open for longer than `timeout_ms`: no coordinator has aborted it"),
    ("log_partition", Type.INT, "the partition of `__transaction_state`"),
    ("log_offset", Type.BIGINT, "the last record of the id there"),
)

SHARE_PARTITIONS = declare(
    "share_partitions",
    "The state of each partition of a share group at the end of the log.",
    GROUP,
    ("topic", Type.STRING, "the topic; null: the input does not have the name of the id"),
    ("topic_id", Type.UUID, "16 bytes"),
    ("partition", Type.INT, "the partition of the topic"),
    ("start_offset", Type.BIGINT, "all records before it are done with; null: none was stored yet"),
    ("log_end", Type.BIGINT, "the end of the topic's log; null: that log is not in the directory"),
    ("delivery_complete_count", Type.INT, "records from the start offset on that are done with; null: unknown"),
    ("unfinished", Type.BIGINT, "offsets up to the end that are not done with; null as `log_end` or `start_offset`"),
    ("state_epoch", Type.INT, "rises when the state is initialized again"),
    ("snapshot_epoch", Type.INT, "the number of the last snapshot"),
    ("updates", Type.BIGINT, "the updates after it"),
    ("leader_epoch", Type.INT, "of the leader of the partition that has written the state"),
    ("updated_ts", Type.TIMESTAMP, "the time of the last record"),
    ("log_partition", Type.INT, "the partition of `__share_group_state`"),
    ("log_offset", Type.BIGINT, "the last record there"),
)

REBALANCES = declare(
    "rebalances",
    "A row for each event of a group.",
    GROUP,
    ("ts", Type.TIMESTAMP, "the time of the event"),
    ("event", Type.STRING, "formed, rebalanced, static member replaced, emptied or removed"),
    ("generation", Type.INT, "null: the group was removed"),
    ("members", Type.INT, "null: the group was removed"),
    ("members_before", Type.INT, "null: unknown"),
    ("leader_changed", Type.BOOLEAN, "another member is the leader; null: there is or was no leader"),
    ("seconds_since", Type.DOUBLE, "since the group's previous event; null: the first event in the log"),
)

REPLICAS = declare(
    "replicas",
    "A row for each replica of a partition in the log.dirs of many brokers.",
    ("cluster_id", Type.STRING, "null: not stored, as up to 2.1, and not that of the only other log.dirs"),
    ("topic", Type.STRING, "the topic"),
    ("partition", Type.INT, "the partition"),
    ("broker_id", Type.INT, "from `meta.properties`, or a name in the path like `broker-3`; null: in neither"),
    ("state", Type.STRING, "read or same; behind, cut or diverged: it disagrees with the one that is read"),
    ("is_read", Type.BOOLEAN, "the most complete replica, which jobs read; it may be cut, too"),
    ("start_offset", Type.BIGINT, "where its log begins"),
    ("log_end", Type.BIGINT, "the offset after its last whole batch"),
    ("leader_epoch", Type.INT, "of its last batch; null: not stored (before 0.11)"),
    ("behind", Type.BIGINT, "the offsets at the end of the one that is read that it does not have"),
    ("diverged_at", Type.BIGINT, "the offset from which it differs at the latest; null: it has not diverged"),
    ("bytes", Type.BIGINT, "size of its segments"),
    ("directory", Type.STRING, "where it is"),
)

VERSIONS = declare(
    "versions",
    "The APIs and versions that clients send, and whether a Kafka version serves them, over request reports.",
    ("software_name", Type.STRING, "the name in ApiVersions v3; null: the client sends none"),
    ("software_version", Type.STRING, "null as `software_name`"),
    ("client_id", Type.STRING, "null: several ids, or none"),
    ("target", Type.STRING, "the Kafka version of the report"),
    ("api_key", Type.INT, "the API"),
    ("api", Type.STRING, "Kafka's name for it"),
    ("api_version", Type.INT, "the version that the client sent"),
    ("verdict", Type.STRING, "served, breaks, newer or undecided"),
    ("runs", Type.BIGINT, "reports that contain it"),
    ("requests", Type.BIGINT, "requests in them"),
    ("first_served_by", Type.STRING, "the oldest Kafka version that serves it; null: none does"),
    ("last_served_by", Type.STRING, "the newest Kafka version older than the target that serves it"),
    ("first_seen", Type.TIMESTAMP, "the start of the first of these runs; null: no report has a start"),
    ("last_seen", Type.TIMESTAMP, "the start of the last of these runs; null as `first_seen`"),
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
        CHECK,
        TRANSACTION_STATES,
        TRANSACTIONS,
        ASSIGNMENT_RECORDS,
        ASSIGNMENTS,
        LAG,
        REWINDS,
        STALLED,
        SHARE_PARTITIONS,
        REBALANCES,
        REPLICAS,
        VERSIONS,
    )
}
"""All tables by name."""
