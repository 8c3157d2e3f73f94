"""Write the offsets topic of a running cluster to tables, as a stream with a checkpoint.

Theory of operation. Each micro-batch of Spark's Kafka connector becomes one write of the tables, as a run over logs is
one (`tables`). The tables know the last offset of each partition, and rows up to it are not new. A micro-batch that is
repeated, because the run died between the write and the checkpoint, therefore adds nothing.

The connector is assigned to the partitions, so it joins no group and adds no record to the topic that it reads. It
reads with read_committed isolation: commits of aborted transactions never come, and those after the first open
transaction of a partition wait. It returns records, not batches; `log_batches` has a row for each micro-batch and
partition instead, and a row without records for the end of the log of each other topic's partition, at the time at
which the cluster was asked for it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.arrow.schemas import COMMITS, LOG_BATCHES
from kproto.logs.identity import LogIdentity
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.engine import F
from kproto.spark.kafka import BY_CONSUMER, COLUMNS, commits_of, groups_of
from kproto.spark.kafka_admin import read_topics
from kproto.spark.output import spark_path
from kproto.spark.publish import OWN
from kproto.spark.schemas import ddl
from kproto.spark.tables import BATCHES, Origin, Source, check_it_is_the_same, rows_after

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from kproto.spark.kafka_admin import ClusterTopics
    from kproto.spark.tables import Added, Marks

    Write = Callable[[Source], dict[str, Added]]
    """Appends the rows of a source that are new to the tables."""
    Note = Callable[[dict[str, Added]], None]

BATCH_MAX = 5_000_000
"""Offsets of a micro-batch, over all partitions: Spark keeps its rows, and a run that died repeats one at most."""
CHECKPOINT = f"{OWN}/checkpoint"


@dataclass(frozen=True)
class Stream:
    """A cluster to read."""

    settings: Mapping[str, str]
    """Of Kafka's client, with ``bootstrap.servers``."""
    batch_max: int = BATCH_MAX
    every_seconds: int | None = None
    """The time from micro-batch to micro-batch; None: read to the present end of the topic, and end."""


def checkpoint_of(root: str) -> str:
    """Return where the stream to tables below a path or URI keeps its position."""
    return f"{root if '://' in root else spark_path(Path(root))}/{CHECKPOINT}"


def follow(
    spark: SparkSession, stream: Stream, root: str, marks: Mapping[str, Marks], before: Origin, write: Write, note: Note
) -> None:
    """Append the new rows of the offsets topic to tables, once or until it is interrupted.

    Args:
        root: the path or URI of the tables, for the checkpoint and for errors.
        marks: the marks of the tables, and `before` their origin: another cluster is noticed before it is read.
        write: called for each micro-batch.
        note: is given what each of them added.

    Raises:
        NoLog: the cluster cannot be reached.
        TablesError: the tables are of another cluster.
        BadKey, BadValue: a record is malformed.
    """
    topics = read_topics(spark, stream.settings)
    spark.conf.set(BY_CONSUMER, "true")
    rows = _read(spark, stream, topics)
    check_it_is_the_same(source_of(topics, rows), marks, root, before.identity)

    def add(batch: DataFrame, _number: int) -> None:
        kept = batch.persist()
        try:
            note(write(source_of(read_topics(spark, stream.settings), kept)))
        finally:
            kept.unpersist()

    writer = rows.writeStream.foreachBatch(add).option("checkpointLocation", checkpoint_of(root))
    if stream.every_seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{stream.every_seconds} seconds")
    query = writer.start()
    try:
        query.awaitTermination()
    finally:
        with suppress(Exception):  # the session may be gone already, and the error that ended it counts
            query.stop()
    if stream.every_seconds is None:  # the ends of other topics, also if the offsets topic has nothing new
        add(spark.createDataFrame([], rows.schema), -1)


def _read(spark: SparkSession, stream: Stream, topics: ClusterTopics) -> DataFrame:
    options = {f"kafka.{name}": value for name, value in stream.settings.items()}
    assigned = json.dumps({OFFSETS_TOPIC: sorted(topics.stable_ends)})
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .option("kafka.isolation.level", "read_committed")
        .option("assign", assigned)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(stream.batch_max))
        .load()
        .select(*COLUMNS)
    )


def source_of(topics: ClusterTopics, batch: DataFrame) -> Source:
    """Return the rows of a micro-batch of the connector as a log to write to tables."""

    def table(name: str, marks: Marks) -> DataFrame:
        if name == LOG_BATCHES.name:
            return _batches(topics, batch, marks)
        return commits_of(batch) if name == COMMITS.name else groups_of(batch)

    count = len(topics.stable_ends)
    return Source(
        table,
        {number: topics.ends[OFFSETS_TOPIC, number] - 1 for number in topics.stable_ends},
        Origin(count, count, topics.waiting, LogIdentity(topics.cluster_id, topics.topic_ids, {})),
        {partition: end - 1 for partition, end in topics.ends.items()},
    )


def _batches(topics: ClusterTopics, batch: DataFrame, marks: Marks) -> DataFrame:
    """Return rows of `LOG_BATCHES`: for each partition of the micro-batch, and for the end of each other log.

    A row is of all records after the mark: tables may have some of them, from a log or from before the checkpoint.
    """
    named = batch.withColumn("topic", F.lit(OFFSETS_TOPIC))
    read = (
        rows_after(named, BATCHES, marks, "offset")
        .groupBy("topic", "partition")
        .agg(
            F.min("offset").alias("base_offset"),
            F.max("offset").alias("last_offset"),
            F.max("timestamp").alias("max_ts"),
            F.count("*").cast("int").alias("record_count"),
        )
    )
    now = datetime.now(UTC)
    ends = [
        (topic, number, end, end - 1, now, 0, 0)
        for (topic, number), end in topics.ends.items()
        if topic != OFFSETS_TOPIC
    ]
    schema = "topic string, partition int, base_offset bigint, last_offset bigint, max_ts timestamp, record_count int"
    others = batch.sparkSession.createDataFrame(ends, f"{schema}, bytes bigint")
    empty = batch.sparkSession.createDataFrame([], ddl(LOG_BATCHES))
    return empty.unionByName(read, allowMissingColumns=True).unionByName(others, allowMissingColumns=True)
