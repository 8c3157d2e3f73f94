"""Read topics of a running broker, also the offsets topic, with Spark's own Kafka connector.

The connector is not part of PySpark: it comes as ``spark.jars.packages`` (`connector_package`), or as jars.

By default the connector silently reads no rows from ``__consumer_offsets``: it requests the topic's offsets through the
admin client, which leaves out internal topics. Its older method, through a consumer, includes them
(``spark.sql.streaming.kafka.useDeprecatedOffsetFetching``); `read_topic` uses it for internal topics. That method joins
a group of its own, so reading the offsets topic adds records to it, and the broker has to allow reads of internal
topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.schemas import COMMITS, GROUP_METADATA
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto.spark.schemas import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC)
BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
COLUMNS = ("partition", "offset", "timestamp", "key", "value")
"""The columns of the connector that are used."""


def connector_package(spark_version: str) -> str:
    """Return the Maven coordinates of the connector for a version of PySpark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}"


def read_topic(
    spark: SparkSession, servers: str, topic: str, *, streaming: bool = False, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the connector's rows of a topic; by default from its beginning.

    For an internal topic, `BY_CONSUMER` is set in the session and stays: a stream reads the setting in each
    micro-batch.
    """
    if topic in INTERNAL_TOPICS:
        spark.conf.set(BY_CONSUMER, "true")
    given = {"startingOffsets": "earliest", **(options or {})}
    reader = spark.readStream if streaming else spark.read
    return (
        reader.format("kafka")
        .options(**given)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .load()
    )


def read_commits(
    spark: SparkSession, servers: str, *, streaming: bool = False, options: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the offset commits in the offsets topic of a running broker as rows of `commits`.

    Commits in transactions are read once they are committed, and aborted ones never. ``txn_state`` and ``producer_id``
    are null, because the connector does not return them. Group records are left out.

    Raises:
        BadKey, BadValue: while it runs: a key or value is malformed.
    """
    given = {"kafka.isolation.level": "read_committed", **(options or {})}
    return commits_of(read_topic(spark, servers, OFFSETS_TOPIC, streaming=streaming, options=given))


def commits_of(rows: DataFrame) -> DataFrame:
    """Return rows of `commits` from rows of the connector.

    Raises:
        BadKey, BadValue: while it runs: a key or value is malformed.
    """
    return rows.select(*COLUMNS).mapInArrow(_commits, spark_schema(COMMITS))


def groups_of(rows: DataFrame) -> DataFrame:
    """Return rows of `group_metadata` from rows of the connector; it raises what `commits_of` does."""
    return rows.select(*COLUMNS).mapInArrow(_groups, spark_schema(GROUP_METADATA))


def _commits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from kproto.arrow.key_value_pairs import commits_of_pairs

    for batch in batches:
        yield from commits_of_pairs(batch).to_batches()


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from kproto.arrow.key_value_pairs import groups_of_pairs

    for batch in batches:
        yield groups_of_pairs(batch)
