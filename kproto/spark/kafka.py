"""Topics of a live broker, read by Spark's own Kafka connector - the offsets topic too.

The connector is no part of PySpark: it comes as ``spark.jars.packages`` (`connector_package`), or as jars of one's own.

Of ``__consumer_offsets`` it reads nothing, and does not say so: it asks the admin client for the topic's offsets, and
internal topics are left out there. Its older way, by a consumer, has them (``spark.sql.streaming.kafka.
useDeprecatedOffsetFetching``). `read_topic` takes that way for internal topics. Its price: the connector joins a group
of its own, so that reading the offsets topic adds to it; and the broker has to let clients read internal topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow.schemas import COMMITS
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.schemas import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

INTERNAL_TOPICS = (OFFSETS_TOPIC, "__transaction_state", "__share_group_state")
BY_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
COLUMNS = ("partition", "offset", "timestamp", "key", "value")
"""What is used of the connector's columns."""


def connector_package(spark_version: str) -> str:
    """Return what ``spark.jars.packages`` needs for a PySpark of this version, as Maven names it."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}"


def read_topic(
    spark: SparkSession,
    servers: str,
    topic: str,
    *,
    streaming: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the connector's rows of a topic, from its beginning unless the options tell otherwise.

    Of an internal topic the session is set to `BY_CONSUMER`, for good: a stream asks again with each micro-batch.
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
    """Return the records about offsets in a live broker's offsets topic, as rows of `commits`.

    Commits of transactions are read when they are committed, and aborted ones never: ``txn_state`` is none and
    ``producer_id`` null, since the connector does not hand on what it knows. Records about groups are left out.

    Raises:
        BadKey, BadValue: while it runs: a key or value is malformed.
    """
    given = {"kafka.isolation.level": "read_committed", **(options or {})}
    rows = read_topic(spark, servers, OFFSETS_TOPIC, streaming=streaming, options=given)
    return rows.select(*COLUMNS).mapInArrow(_commits, spark_schema(COMMITS))


def _commits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from kproto.arrow.key_value_pairs import commits_of_pairs

    for batch in batches:
        yield from commits_of_pairs(batch).to_batches()
