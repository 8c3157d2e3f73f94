"""The tables that a log of `__consumer_offsets` is decoded to, each declared once with the meaning of its columns.

`COMMITS` has a row for each offset commit or tombstone, `GROUP_METADATA` for each record about a group, `LOG_BATCHES`
for each batch of any topic. `LATEST` has the offsets that are valid at the end of the log. `SHARE_STATES` has a row for
each record of `__share_group_state`, `TRANSACTION_STATES` for each of `__transaction_state`.

Timestamps are microseconds in UTC; null stands for Kafka's -1. Columns are nullable for Spark, as columns read from
Parquet always are, but for `NEVER_NULL`; where null has a meaning, the column's doc gives it. pyarrow is imported when
a schema is built, not with this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class Type(Enum):
    """The type of a column, named as in Spark SQL."""

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

    def arrow(self, never_null: frozenset[str] = frozenset()) -> pa.Schema:
        """Return the pyarrow schema. `UUID` becomes plain ``binary``, the only type as which Spark accepts bytes."""
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
        return pa.schema(
            [pa.field(column.name, types[column.type], column.name not in never_null) for column in self.columns]
        )


def declare(name: str, doc: str, *columns: tuple[str, Type, str]) -> Table:
    """Return a table of ``(name, type, doc)`` columns."""
    return Table(name, doc, tuple(Column(*column) for column in columns))


GROUP = ("group_id", Type.STRING, "the group")
KEY = (GROUP, ("topic", Type.STRING, "the topic"), ("partition", Type.INT, "the partition of the topic"))
RECORD = (
    ("log_partition", Type.INT, "the partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the offset of the record in that partition"),
    ("log_ts", Type.TIMESTAMP, "the timestamp of the record"),
)
"""Columns that identify a record of the offsets topic."""

COMMITS = declare(
    "commits",
    "A row for each record about one offset: a commit, or a tombstone.",
    *RECORD,
    *KEY,
    ("tombstone", Type.BOOLEAN, "the offset was removed: it expired, or was deleted"),
    ("value_version", Type.SMALLINT, "the version of the stored value, 0 to 4; null for a tombstone"),
    ("committed_offset", Type.BIGINT, "null for a tombstone, as are the columns up to `expire_ts`"),
    ("leader_epoch", Type.INT, "null: unknown, or the value has no such field (before version 3)"),
    ("topic_id", Type.UUID, "16 bytes; null: the value has none"),
    ("metadata", Type.STRING, "a text that the client sent"),
    ("commit_ts", Type.TIMESTAMP, "the stored commit time"),
    ("expire_ts", Type.TIMESTAMP, "the stored expire timestamp; null: the value has none"),
    ("producer_id", Type.BIGINT, "null: not in a transaction, or as `txn_state`"),
    (
        "txn_state",
        Type.STRING,
        "none, pending (no end marker before the end of the log), committed or aborted; null: none or committed, read "
        "from a broker, which does not return it",
    ),
)

NEVER_NULL = frozenset({"log_offset", "group_id", "topic", "partition", "tombstone", "txn_state"})
"""The columns of `COMMITS` that are never null in a log. Spark asks of each other value twice whether it is null, and
takes a twelfth more CPU time for a scan without these names (`python -m bench spark`)."""

GROUP_METADATA = declare(
    "group_metadata",
    "A row for each record about a group or one of its members.",
    *RECORD,
    GROUP,
    (
        "kind",
        Type.STRING,
        "classic (record type 2), or, with a type for the group and one for a member, consumer (KIP-848: 3 and 5), "
        "share (11 and 10) or streams (17 and 19)",
    ),
    ("member_id", Type.STRING, "the member of the record; null: the record is about the group"),
    ("tombstone", Type.BOOLEAN, "the group or the member was removed; the columns below are null"),
    ("protocol_type", Type.STRING, "`consumer`, `connect`, `share`, ...; empty: the group never had a member"),
    ("generation", Type.INT, "the generation; of other kinds than classic, the epoch"),
    ("protocol", Type.STRING, "the assignor; null: no members"),
    ("leader", Type.STRING, "the member id of the leader; null: no members"),
    ("state_ts", Type.TIMESTAMP, "when the group entered its state; null: not stored (value v0 and v1)"),
    ("member_count", Type.INT, "null for other kinds than classic"),
    (
        "subscribed_topics",
        Type.STRINGS,
        "of all members, or of the one in `member_id`; sorted, without duplicates; "
        "null: unknown, which counts as every topic; those of streams groups are in the topology",
    ),
)

LOG_BATCHES = declare(
    "log_batches",
    "A row for each batch of any topic, from its header; with magic 0 and 1, for each outer message. A running cluster "
    "returns records: a row for each micro-batch and partition of the offsets topic, and one without records for the "
    "end of each other log.",
    ("topic", Type.STRING, "the topic"),
    ("partition", Type.INT, "its partition"),
    ("base_offset", Type.BIGINT, "the first offset; null as `record_count`"),
    ("last_offset", Type.BIGINT, "the last offset, even if compaction removed that record"),
    ("max_ts", Type.TIMESTAMP, "the highest timestamp of the records; null: magic 0 has none"),
    ("bytes", Type.BIGINT, "size on disk, header included; null: read from a broker"),
    ("codec", Type.STRING, "none, gzip, snappy, lz4 or zstd; null as `bytes`"),
    ("record_count", Type.INT, "from the header; null: only the compressed content shows it (magic 0 and 1)"),
    ("magic", Type.SMALLINT, "0, 1 or 2; null as `bytes`"),
    ("control", Type.BOOLEAN, "the batch is an end marker of a transaction; null as `bytes`"),
    ("producer_id", Type.BIGINT, "null: no idempotent producer, or as `bytes`"),
    ("transactional", Type.BOOLEAN, "written in a transaction; null as `bytes`"),
)

ASSIGNMENT_RECORDS = declare(
    "assignment_records",
    "A row for each partition of a member in a record about a group or member, or one row without a partition.",
    *RECORD,
    GROUP,
    ("kind", Type.STRING, "classic (record type 2), consumer (KIP-848: 8), share (14) or streams (22)"),
    ("subject", Type.STRING, "the member that the record is about; empty: the record is about all members"),
    ("member_id", Type.STRING, "the owner; null: no member has a partition"),
    ("epoch", Type.INT, "the generation; of other kinds, the epoch of the member; null: the subject was removed"),
    ("topic", Type.STRING, "null: no partition, or the record has the id only"),
    ("topic_id", Type.STRING, "as Kafka's tools print it; null: no partition, or the record has the name only"),
    ("partition", Type.INT, "null: no partition"),
    ("revoked", Type.BOOLEAN, "the member has to give it up; null: no partition"),
    ("subtopology", Type.STRING, "the partition is that of a task of this subtopology; null: not of a streams group"),
    ("task", Type.STRING, "active, standby or warmup; null as `subtopology`"),
)

TRANSACTION_STATES = declare(
    "transaction_states",
    "A row for each record of `__transaction_state`: the state of a transactional id, or a tombstone.",
    ("log_partition", Type.INT, "the partition of `__transaction_state`"),
    ("log_offset", Type.BIGINT, "the offset of the record in that partition"),
    ("log_ts", Type.TIMESTAMP, "the timestamp of the record"),
    ("transactional_id", Type.STRING, "the id"),
    ("tombstone", Type.BOOLEAN, "the id was removed; the columns below are null"),
    ("state", Type.STRING, "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, ..."),
    ("producer_id", Type.BIGINT, "the producer of the id"),
    ("producer_epoch", Type.INT, "rises when a producer begins or is fenced"),
    ("timeout_ms", Type.BIGINT, "the coordinator aborts a transaction that is open for longer"),
    ("started_ts", Type.TIMESTAMP, "when the transaction began; null: none has"),
    ("updated_ts", Type.TIMESTAMP, "when the state changed"),
    ("partitions", Type.STRINGS, "of the open transaction: `orders-0`; with offsets of groups, `__consumer_offsets-3`"),
)

SHARE_STATES = declare(
    "share_states",
    "A row for each record of `__share_group_state`: a snapshot of a state, an update, or a tombstone.",
    ("log_partition", Type.INT, "the partition of `__share_group_state`"),
    ("log_offset", Type.BIGINT, "the offset of the record in that partition"),
    ("log_ts", Type.TIMESTAMP, "the timestamp of the record"),
    GROUP,
    ("topic_id", Type.UUID, "16 bytes"),
    ("partition", Type.INT, "the partition of the topic"),
    ("kind", Type.STRING, "snapshot, or update of the snapshot before it"),
    ("tombstone", Type.BOOLEAN, "the state was deleted; the columns below are null"),
    ("snapshot_epoch", Type.INT, "the number of the snapshot"),
    ("state_epoch", Type.INT, "null: an update, which has none"),
    ("leader_epoch", Type.INT, "of the leader of the partition that has written it"),
    ("start_offset", Type.BIGINT, "all records before it are done with; null: none yet, or unchanged"),
    ("delivery_complete_count", Type.INT, "records from the start offset on that are done with; null: unknown"),
    ("create_ts", Type.TIMESTAMP, "null: an update, which has none"),
    ("write_ts", Type.TIMESTAMP, "null as `create_ts`"),
    ("batches", Type.STRINGS, "the records in flight: `FIRST-LAST STATE COUNT`, with the number of the state"),
)

LATEST = declare(
    "latest",
    "The valid offset of each group for each partition at the end of the log.",
    *KEY,
    ("committed_offset", Type.BIGINT, "where the group continues to read"),
    ("leader_epoch", Type.INT, "null: unknown"),
    ("metadata", Type.STRING, "a text that the client sent"),
    ("commit_ts", Type.TIMESTAMP, "the stored commit time"),
    ("expire_ts", Type.TIMESTAMP, "null: the offset has no expire timestamp of its own"),
    ("log_partition", Type.INT, "partition of `__consumer_offsets`"),
    ("log_offset", Type.BIGINT, "the record's offset there"),
)
