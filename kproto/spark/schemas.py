"""The tables of `kproto.spark`: one declaration each, from which pyarrow's schema and Spark's are made.

A log becomes three tables: `COMMITS` (a row for each offset commit), `GROUP_METADATA` (for each record about a group)
and `LOG_BATCHES` (for each batch of any topic, from its header). The others are what the jobs answer.

Times are microseconds of UTC, and null where Kafka stores -1. Every column may be null as far as Spark is concerned
(what is read from Parquet always may); where null has a meaning, the column says which. Neither pyarrow nor PySpark is
imported before a schema is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = [
    "COMMITS",
    "COVERAGE",
    "GROUP_EXPIRY",
    "GROUP_METADATA",
    "HOT_PARTITIONS",
    "LAG",
    "LATEST",
    "LOG_BATCHES",
    "RATES",
    "REBALANCES",
    "RETENTION_AUDIT",
    "REWINDS",
    "STALLED",
    "TABLES",
    "VERSIONS",
    "WHAT_IF",
    "Column",
    "Table",
    "Type",
]


class Type(Enum):
    """A column's type, by the name that Spark SQL gives it."""

    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    DOUBLE = "double"
    STRING = "string"
    STRINGS = "array<string>"
    UUID = "binary"
    """16 bytes."""
    TIMESTAMP = "timestamp"
    """Microseconds, UTC."""


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    doc: str


@dataclass(frozen=True)
class Table:
    """A table: its columns in order."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def arrow(self) -> pa.Schema:
        """Return the pyarrow schema; `UUID` is plain ``binary``, the only form in which Spark takes bytes."""
        import pyarrow as pa

        types = {
            Type.BOOLEAN: pa.bool_(),
            Type.SMALLINT: pa.int16(),
            Type.INT: pa.int32(),
            Type.BIGINT: pa.int64(),
            Type.DOUBLE: pa.float64(),
            Type.STRING: pa.string(),
            Type.STRINGS: pa.list_(pa.string()),
            Type.UUID: pa.binary(),
            Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
        }
        return pa.schema([pa.field(column.name, types[column.type]) for column in self.columns])

    def spark(self) -> StructType:
        """Return Spark's schema."""
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
        return types.StructType([types.StructField(column.name, spark_types[column.type]) for column in self.columns])

    def of(self, rows: DataFrame) -> DataFrame:
        """Return these rows with exactly this table's columns, in order and type."""
        return rows.select(*(rows[column.name].cast(column.type.value).alias(column.name) for column in self.columns))


def _table(name: str, doc: str, *columns: tuple[str, Type, str]) -> Table:
    return Table(name, doc, tuple(Column(*column) for column in columns))


_GROUP = ("group_id", Type.STRING, "the group")
_KEY = (_GROUP, ("topic", Type.STRING, "the topic"), ("partition", Type.INT, "its partition"))
_PLACE = (
    ("log_partition", Type.INT, "partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the record's offset there"),
    ("log_ts", Type.TIMESTAMP, "the record's timestamp"),
)

COMMITS = _table(
    "commits",
    "A row for each record of the offsets topic about one offset: a commit, or a tombstone.",
    *_PLACE,
    *_KEY,
    ("tombstone", Type.BOOLEAN, "the offset was taken away: it expired, or was deleted"),
    ("value_version", Type.SMALLINT, "version of the stored value, 0 to 4; null for a tombstone"),
    ("committed_offset", Type.BIGINT, "null for a tombstone, as all that follows to `expire_ts`"),
    ("leader_epoch", Type.INT, "null: not told, or the value has no such field (before version 3)"),
    ("topic_id", Type.UUID, "16 bytes; null: the value has none"),
    ("metadata", Type.STRING, "the client's own text"),
    ("commit_ts", Type.TIMESTAMP, "the stored commit time"),
    ("expire_ts", Type.TIMESTAMP, "the stored end of this offset; null: it has none of its own"),
    ("producer_id", Type.BIGINT, "null: not in a transaction"),
    ("txn_state", Type.STRING, "none, pending (no marker up to the end of the log), committed or aborted"),
)

GROUP_METADATA = _table(
    "group_metadata",
    "A row for each record of the offsets topic about a group.",
    *_PLACE,
    _GROUP,
    ("kind", Type.STRING, "classic (key type 2) or consumer (KIP-848: key types 3, the group, and 5, a member)"),
    ("member_id", Type.STRING, "of a record about one member (key type 5); null: it is about the group"),
    ("tombstone", Type.BOOLEAN, "the group, or the member, is gone; all that follows is null"),
    ("protocol_type", Type.STRING, "`consumer`, `connect`, ...; empty: the group never had a member"),
    ("generation", Type.INT, "of a consumer group, its epoch"),
    ("protocol", Type.STRING, "the assignor; null: no members"),
    ("leader", Type.STRING, "member id; null: no members"),
    ("state_ts", Type.TIMESTAMP, "when the group came into its state; null: not stored (value v0 and v1)"),
    ("member_count", Type.INT, "null in records of kind consumer"),
    (
        "subscribed_topics",
        Type.STRINGS,
        "of all members, sorted, each once; null: not known, which counts as every topic; "
        "with a `member_id`, that member's",
    ),
)

LOG_BATCHES = _table(
    "log_batches",
    "A row for each batch of any topic, as its header tells it; of magic 0 and 1, for each message set entry.",
    ("topic", Type.STRING, "the topic"),
    ("partition", Type.INT, "its partition"),
    ("base_offset", Type.BIGINT, "the first offset; null where only the content tells, as `record_count`"),
    ("last_offset", Type.BIGINT, "the last offset, even if compaction took that record"),
    ("max_ts", Type.TIMESTAMP, "the newest timestamp of its records; null: magic 0 has none"),
    ("bytes", Type.BIGINT, "on disk, with the header"),
    ("codec", Type.STRING, "none, gzip, snappy, lz4 or zstd"),
    ("record_count", Type.INT, "as the header tells; null where it does not (compressed entries of magic 0 and 1)"),
    ("magic", Type.SMALLINT, "0, 1 or 2"),
    ("control", Type.BOOLEAN, "it holds a marker of a transaction, and no data"),
    ("producer_id", Type.BIGINT, "null: no idempotent producer"),
    ("transactional", Type.BOOLEAN, "written in a transaction"),
)

COVERAGE = _table(
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

LATEST = _table(
    "latest",
    "The offset that each group has for each partition at the end of the log.",
    *_KEY,
    ("committed_offset", Type.BIGINT, "where the group goes on reading"),
    ("leader_epoch", Type.INT, "null: not told"),
    ("metadata", Type.STRING, "the client's own text"),
    ("commit_ts", Type.TIMESTAMP, "the stored commit time"),
    ("expire_ts", Type.TIMESTAMP, "null: it has no end of its own"),
    ("log_partition", Type.INT, "partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the record's offset there"),
)

RETENTION_AUDIT = _table(
    "retention_audit",
    "A row for each group: what KIP-211's removal of `retention_time` means for it.",
    _GROUP,
    ("max_override_ms", Type.BIGINT, "the longest retention asked for; null: none but the broker's own"),
    ("n_overrides", Type.BIGINT, "commits with such a retention"),
    ("n_commits", Type.BIGINT, "commits seen"),
    ("first_seen", Type.TIMESTAMP, "its first commit in the log"),
    ("last_seen", Type.TIMESTAMP, "its last one"),
    ("recommended_minutes", Type.BIGINT, "offsets.retention.minutes: max(override rounded up, current)"),
)

GROUP_EXPIRY = _table(
    "group_expiry",
    "The timeline of what is lost if nobody commits or joins again: a row for each group and deadline.",
    _GROUP,
    ("became_empty_ts", Type.TIMESTAMP, "null: it has members, or never had any, or the log does not tell"),
    ("expires_ts", Type.TIMESTAMP, "gone at the first sweep from then on; null: not while the group stays as it is"),
    ("offsets_lost", Type.BIGINT, "offsets of the group with this deadline"),
    ("offsets_left", Type.BIGINT, "offsets of the group after that; 0: an Empty group goes with them"),
    ("basis", Type.STRING, "group_metadata, last_commit, override, members (kept by them) or pending (a transaction)"),
)

WHAT_IF = _table(
    "what_if",
    "What each group has lost at one moment under two retentions, if nobody commits or joins until then.",
    _GROUP,
    ("offsets", Type.BIGINT, "offsets it has in the log"),
    ("expires_ts", Type.TIMESTAMP, "its first loss under the current retention; null: none"),
    ("what_if_expires_ts", Type.TIMESTAMP, "its first loss under the other; null: none"),
    ("lost", Type.BIGINT, "offsets lost at that moment under the current retention"),
    ("what_if_lost", Type.BIGINT, "and under the other"),
)

RATES = _table(
    "rates",
    "Commits by hour.",
    _GROUP,
    ("topic", Type.STRING, "the topic"),
    ("hour", Type.TIMESTAMP, "the hour's begin"),
    ("commits", Type.BIGINT, "commits of any of its partitions; without aborted ones"),
    ("rewinds", Type.BIGINT, "those to a lower offset than before"),
)

HOT_PARTITIONS = _table(
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

LAG = _table(
    "lag",
    "How far behind each group is.",
    *_KEY,
    ("ts", Type.TIMESTAMP, "the moment it is told of"),
    ("committed_offset", Type.BIGINT, "the group's offset then"),
    ("log_end", Type.BIGINT, "the offset after the topic's last record then; null: its log is not in the directory"),
    ("lag", Type.BIGINT, "their difference, in offsets, not below 0; null as `log_end`"),
)

REWINDS = _table(
    "rewinds",
    "A row for each commit that went backwards.",
    *_KEY,
    ("ts", Type.TIMESTAMP, "when"),
    ("from_offset", Type.BIGINT, "the offset before"),
    ("to_offset", Type.BIGINT, "the one committed"),
    ("rewound", Type.BIGINT, "their difference"),
    ("after_loss", Type.BOOLEAN, "the offset before had expired or been deleted meanwhile"),
    ("log_partition", Type.INT, "partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the record's offset there"),
)

STALLED = _table(
    "stalled",
    "A row for each offset that has not moved for a while.",
    *_KEY,
    ("committed_offset", Type.BIGINT, "where it stands"),
    ("since_ts", Type.TIMESTAMP, "its first commit there"),
    ("last_commit_ts", Type.TIMESTAMP, "its last one"),
    ("commits", Type.BIGINT, "commits of that offset; more than 1: the group is alive, and gets nowhere"),
    ("stalled_minutes", Type.BIGINT, "from `since_ts` to the moment asked about"),
    ("log_end", Type.BIGINT, "null: the topic's log is not in the directory"),
    ("lag", Type.BIGINT, "in offsets; null as `log_end`"),
)

REBALANCES = _table(
    "rebalances",
    "A row for each record of a group's life.",
    _GROUP,
    ("ts", Type.TIMESTAMP, "when"),
    ("event", Type.STRING, "formed, rebalanced, static member replaced, emptied or removed"),
    ("generation", Type.INT, "null: removed"),
    ("members", Type.INT, "null: removed"),
    ("members_before", Type.INT, "null: not known"),
    ("leader_changed", Type.BOOLEAN, "another member leads; null: none does, or did"),
    ("seconds_since", Type.DOUBLE, "since the group's event before; null: the first one of the log"),
)

VERSIONS = _table(
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
