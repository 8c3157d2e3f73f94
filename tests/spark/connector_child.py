"""Read brokers with Spark's Kafka connector: ``JARS TOPIC OUTPUT NAME=SERVERS=SETTINGS...``, where SETTINGS is a file.
Print the results by broker as JSON.

The results are the records of the topic, read once and as a stream; the number of rows of the offsets topic that the
connector reads by default; the commits that `kproto.spark.kafka` reads; and what runs of ``tables --from-kafka`` added
to the tables below OUTPUT. Without tables there, the first run dies after a write, the second one in the middle of one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kproto.spark import session, tables_command
from kproto.spark.arguments import parse
from kproto.spark.inputs import open_input
from kproto.spark.kafka import read_commits, read_topic
from kproto.spark.publish import Publication
from kproto.spark.tables_command import client_settings, write_tables
from tests.spark.settings import LOCAL

BY_ITSELF = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
BATCH = "24"
"""Offsets of a micro-batch, so that there are several."""


class Died(Exception):
    """A run dies."""


def values(rows: Any) -> list[str]:
    return sorted(row.value for row in rows.selectExpr("cast(value as string) value").collect())


def streamed(spark: SparkSession, servers: str, topic: str, name: str, options: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as checkpoint:
        rows = read_topic(spark, servers, topic, streaming=True, options=options)
        writer = rows.writeStream.format("memory").queryName(name)
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    return values(spark.table(name))


@contextmanager
def dying(owner: Any, name: str, *, after: bool) -> Iterator[None]:
    """Have the first call of a function raise an error, before it does anything or at its end."""
    function: Callable[..., object] = getattr(owner, name)

    def dies(*arguments: Any) -> object:
        if after:
            function(*arguments)
        raise Died

    setattr(owner, name, dies)
    try:
        yield
    finally:
        setattr(owner, name, function)


def tables(spark: SparkSession, servers: str, settings: str, root: str) -> list[list[str]]:
    """Return the lines of the runs."""
    from_kafka = ("--from-kafka", servers, "--command-config", settings, "--once", "--offsets-per-batch", BATCH)
    options = parse(["tables", *from_kafka, "-o", root])
    runs: list[list[str]] = []

    def run() -> None:
        runs.append([])
        write_tables(spark, options, lambda: open_input(spark, root), runs[-1].append)

    deaths = ((tables_command, "write_parquet", True), (Publication, "publish", False))
    for owner, name, after in () if Path(root).exists() else deaths:
        try:
            with dying(owner, name, after=after):
                run()
        except Exception as error:
            if "Died" not in str(error):
                raise
    run()
    run()
    return runs


def results(
    spark: SparkSession, servers: str, topic: str, name: str, settings_file: str, output: Path
) -> dict[str, Any]:
    spark.conf.unset(BY_ITSELF)
    given = parse(["tables", "--from-kafka", servers, "--command-config", settings_file, "-o", str(output)])
    options = {f"kafka.{key}": value for key, value in client_settings(given).items()}
    plain = spark.read.format("kafka").options(**options).option("kafka.bootstrap.servers", servers)
    found = {
        "batch": values(read_topic(spark, servers, topic, options=options)),
        "stream": streamed(spark, servers, topic, name, options),
        "offsets_by_itself": plain.option("subscribe", "__consumer_offsets").load().count(),
    }
    commits = read_commits(spark, servers, options=options).where("group_id not like 'spark-kafka-source%'")
    columns = ("group_id", "topic", "partition", "committed_offset", "metadata", "tombstone", "txn_state")
    found["commits"] = sorted(map(tuple, commits.select(*columns).collect()))
    return {**found, "runs": tables(spark, servers, settings_file, str(output / name))}


if __name__ == "__main__":
    jars, topic, output, *brokers = sys.argv[1:]
    spark = session("connector", master="local[2]", config=LOCAL | {"spark.jars": jars})
    spark.sparkContext.setLogLevel("OFF")
    named = [broker.split("=") for broker in brokers]
    print(json.dumps({name: results(spark, at, topic, name, file, Path(output)) for name, at, file in named}))
    spark.stop()
