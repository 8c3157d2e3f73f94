"""Read brokers with Spark's Kafka connector: ``JARS TOPIC NAME=SERVERS...``. Print the results by broker as JSON.

The results are the records of the topic, read once and as a stream; the number of rows of the offsets topic that the
connector reads by default; and the commits that `kproto.spark.kafka` reads.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

from pyspark.sql import SparkSession

from kproto.spark import session
from kproto.spark.kafka import read_commits, read_topic
from tests.spark.settings import LOCAL

BY_ITSELF = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


def values(rows: Any) -> list[str]:
    return sorted(row.value for row in rows.selectExpr("cast(value as string) value").collect())


def streamed(spark: SparkSession, servers: str, topic: str, name: str) -> list[str]:
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = read_topic(spark, servers, topic, streaming=True).writeStream.format("memory").queryName(name)
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    return values(spark.table(name))


def results(spark: SparkSession, servers: str, topic: str, name: str) -> dict[str, Any]:
    spark.conf.unset(BY_ITSELF)
    plain = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    found = {
        "batch": values(read_topic(spark, servers, topic)),
        "stream": streamed(spark, servers, topic, name),
        "offsets_by_itself": plain.option("subscribe", "__consumer_offsets").load().count(),
    }
    commits = read_commits(spark, servers).where("group_id not like 'spark-kafka-source%'")
    columns = ("group_id", "topic", "partition", "committed_offset", "metadata", "tombstone", "txn_state")
    return {**found, "commits": sorted(map(tuple, commits.select(*columns).collect()))}


if __name__ == "__main__":
    jars, topic, *brokers = sys.argv[1:]
    spark = session("connector", master="local[2]", config=LOCAL | {"spark.jars": jars})
    spark.sparkContext.setLogLevel("OFF")
    named = [broker.split("=") for broker in brokers]
    print(json.dumps({name: results(spark, servers, topic, name) for name, servers in named}))
    spark.stop()
