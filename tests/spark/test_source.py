"""The data source through Spark: views, filters that spare reading, and errors instead of unexplained empty results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import EqualTo, In
from pyspark.testing import assertDataFrameEqual

from bench.offsets_log import make_log
from kproto.arrow.schemas import NEVER_NULL
from kproto.logs.files import find_partitions
from kproto.records.partitioning import partition_for
from kproto.spark import one_line, register
from kproto.spark.source import options as options_module
from kproto.spark.source.batch import NarrowingReader
from kproto.spark.source.options import OptionError, read_options
from kproto.spark.source.plan import parts_to_read
from kproto.spark.source.pruning import Wanted, partition_count, pruned
from kproto.spark.source.rows import rows_of
from kproto.spark.source.task import Task, tasks_of
from tests.arrow import golden
from tests.arrow.living_log import LivingLog
from tests.fixture_files import FIXTURES

COMMITS = 20_000


@pytest.fixture(scope="session")
def big_log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("log")
    make_log(path, COMMITS, groups=200, segment_size=1 << 18)
    return str(path)


def load(spark: SparkSession, path: object, **options: object) -> DataFrame:
    reader = spark.read.format("kproto")
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load(str(path))


def test_spark_returns_rows_as_kafka_prints_them(spark: SparkSession) -> None:
    path = golden.directory("4.4.0").parent
    names = list(golden.commits("4.4.0")[0])
    found = [row.asDict() for row in load(spark, path).orderBy("log_offset").collect()]
    expected = golden.commits("4.4.0")
    for row in expected:
        row["log_ts"], row["commit_ts"], row["expire_ts"] = map(
            _naive, (row["log_ts"], row["commit_ts"], row["expire_ts"])
        )
    assert [{name: _bytes(row[name]) for name in names} for row in found] == expected


def test_columns_that_are_never_null_have_no_nulls() -> None:
    """Spark does not look whether a value of these columns is null. Logs of each release, tombstones and
    transactions among them.
    """
    nulls: dict[str, int] = {}
    for log in sorted({segment.parent.parent for segment in (FIXTURES / "offsets-logs").rglob("*.log")}):
        options = read_options({"path": str(log), "allowEmpty": "true"})
        tasks = tasks_of(parts_to_read(options, Wanted()), options.task_bytes)
        batches = [batch for task in tasks for batch in rows_of(task.ranges, options)]
        rows = pa.Table.from_batches(batches, schema=options.arrow_schema)
        for column in rows.schema:
            nulls[column.name] = nulls.get(column.name, 0) + rows[column.name].null_count
            assert column.nullable == (column.name not in NEVER_NULL)
    assert {name for name, count in nulls.items() if count == 0} >= NEVER_NULL
    assert nulls["committed_offset"] > 0


def _naive(moment: Any) -> Any:
    """Return a timestamp as Spark returns it to Python: without a zone, in that of the machine."""
    return None if moment is None else moment.astimezone().replace(tzinfo=None)


def _bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def test_all_views_agree_on_one_log(spark: SparkSession, big_log: str) -> None:
    records = load(spark, big_log).cache()
    counted = load(spark, big_log, view="coverage", taskBytes=1 << 17)
    total = counted.agg(*(F.sum(name).alias(name) for name in ("records", "commits", "tombstones", "bytes"))).first()
    assert total is not None
    assert total["records"] == records.count() == total["commits"] + total["tombstones"] >= COMMITS
    batches = load(spark, big_log, view="batches").agg(F.sum("bytes"), F.sum("record_count")).first()
    files = sum(path.stat().st_size for path in Path(big_log).rglob("*.log"))
    assert tuple(batches or ()) == (files, total["records"])
    assert total["bytes"] == files
    assert load(spark, big_log, view="groups", allowEmpty="true").count() == 0
    last = records.groupBy("group_id", "topic", "partition").agg(
        *(F.max_by(name, "log_offset").alias(name) for name in ("committed_offset", "log_offset", "tombstone"))
    )
    expected = last.where("not tombstone").drop("tombstone")
    assertDataFrameEqual(load(spark, big_log, view="latest").select(expected.columns), expected)
    candidates = load(spark, big_log, view="candidates", taskBytes=1 << 17)
    assert expected.count() < candidates.count() < records.count()
    again = candidates.groupBy("group_id", "topic", "partition").agg(
        *(F.max_by(name, "log_offset").alias(name) for name in ("committed_offset", "log_offset", "tombstone"))
    )
    assertDataFrameEqual(again.where("not tombstone").drop("tombstone"), expected)


def test_a_segment_is_split_and_small_ones_are_put_together(spark: SparkSession, big_log: str) -> None:
    assert load(spark, big_log).select(F.spark_partition_id()).distinct().count() == 1
    many = load(spark, big_log, taskBytes=1 << 17)
    assert many.select(F.spark_partition_id()).distinct().count() > 8
    assert many.agg(F.count_distinct("log_partition", "log_offset")).first() == many.agg(F.count("*")).first()


def test_the_plain_decoder_is_the_one_that_runs_when_it_is_asked_for(spark: SparkSession, big_log: str) -> None:
    one = next(path for path in sorted(Path(big_log).iterdir()) if any(file.stat().st_size for file in path.iterdir()))
    assertDataFrameEqual(load(spark, one, decoder="reference"), load(spark, one))
    with pytest.raises(OptionError, match="decoder"):
        read_options({"path": "x", "decoder": "quick"})


def group_of(spark: SparkSession, path: str) -> str:
    first = load(spark, path).groupBy("group_id").count().orderBy("count").first()
    assert first is not None
    return str(first["group_id"])


def test_a_filter_on_a_group_reads_its_partition_only(spark: SparkSession, big_log: str, tmp_path: Path) -> None:
    """Every other partition is damaged, so reading one would fail."""
    group = group_of(spark, big_log)
    home = partition_for(group, 50)
    expected = load(spark, big_log, pushdown="false").where(F.col("group_id") == group).collect()
    broken = tmp_path / "log"
    for source in Path(big_log).rglob("*.log"):
        copy = broken / source.parent.name / source.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        data = source.read_bytes()
        wrong = bytearray(data)
        if data:
            wrong[-1] ^= 1
        copy.write_bytes(data if source.parent.name == f"__consumer_offsets-{home}" else bytes(wrong))
    found = load(spark, broken)
    assert found.where(F.col("group_id") == group).collect() == expected
    assert found.where(F.col("group_id").isin(group, group)).count() == len(expected)
    assert found.where((F.col("group_id") == group) & (F.col("log_partition") == home + 1)).count() == 0
    assert found.where(f"log_partition = {home} and group_id = '{group}' and log_offset < 0").count() == 0
    with pytest.raises(Exception, match="BadChecksum") as caught:
        load(spark, broken, pushdown="false").where(F.col("group_id") == group).count()
    line = one_line(caught.value)
    assert line is not None
    assert line.startswith("__consumer_offsets-")
    assert ": BadChecksum: " in line


def test_the_partition_count_is_used_only_if_the_groups_agree(big_log: str, tmp_path: Path) -> None:
    found = find_partitions(big_log)
    assert partition_count(found) == 50
    assert partition_count(found[1:]) is None
    assert partition_count(found[:7]) is None  # the first 7 of 50: the groups contradict a count of 7
    assert partition_count(found[:5]) == 5  # 5 divides 50, so each group is also where a count of 5 puts it
    assert len(pruned(found, Wanted(frozenset(["g"])), count=None, of_log=False)) == 1
    assert len(pruned(found[:7], Wanted(frozenset(["g"])), count=None, of_log=False)) == 7
    assert len(pruned(found[:7], Wanted(frozenset(["g"])), count=50, of_log=False)) == 1


def test_filters_narrow_each_other() -> None:
    wanted = Wanted(frozenset("ab"))
    assert wanted.narrowed([]) == wanted
    assert wanted.narrowed([In(("group_id",), ("b", "c", None))]).group_id == frozenset("b")
    assert wanted.narrowed([EqualTo(("group_id",), None)]).group_id == frozenset()


def test_offsets_in_options_limit_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    logs = [LivingLog(tmp_path / f"__consumer_offsets-{number}").filled(3) for number in range(2)]
    assert [log.next_offset for log in logs] == [90, 90]
    start, end = json.dumps({"0": 35, "__consumer_offsets-1": 80}), json.dumps({"0": 70})
    found = load(spark, tmp_path, startingOffsets=start, endingOffsets=end).select("log_partition", "log_offset")
    assert sorted(map(tuple, found.collect())) == [*((0, n) for n in range(35, 70)), *((1, n) for n in range(80, 90))]
    batches = load(spark, tmp_path, view="batches", startingOffsets=start).where("topic = '__consumer_offsets'")
    assert sorted(row.last_offset for row in batches.where("partition = 0").collect()) == [39, 49, 59, 69, 79, 89]


ERRORS = {
    "an unknown option": ({"viev": "records"}, "no option 'viev'"),
    "an unknown view": ({"view": "all"}, "option view: 'all' is not one of records"),
    "a size of zero": ({"taskBytes": "0"}, "option taskBytes: '0' is not a whole number above 0"),
    "offsets that are not JSON": ({"startingOffsets": "{]"}, "option startingOffsets"),
    "a negative offset": ({"endingOffsets": '{"0": -1}'}, "option endingOffsets"),
    "an invalid flag": ({"checkCrc": "maybe"}, "option checkCrc: 'maybe' is not one of true, false"),
    "latest outside of a stream": ({"startingOffsets": "latest"}, "only a stream can start at latest"),
    "another topic": ({"topic": "orders"}, "no directories like orders-0; it holds partitions of __consumer_off"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_a_wrong_option_is_an_error_in_one_line(spark: SparkSession, big_log: str, error: str) -> None:
    options, line = ERRORS[error]
    with pytest.raises(Exception, match="kproto") as caught:
        load(spark, big_log, **options).count()
    assert (one_line(caught.value) or "").startswith(line) or line in (one_line(caught.value) or "")


def test_an_empty_log_is_an_error_unless_allowed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").mkdir()
    (tmp_path / "__consumer_offsets-0" / f"{0:020}.log").touch()
    with pytest.raises(Exception, match="1 partitions with 1 segments, all empty"):
        load(spark, tmp_path).count()
    assert load(spark, tmp_path, allowEmpty="true").count() == 0
    assert load(spark, tmp_path / "nowhere", allowEmpty="true").count() == 0


def test_every_option_is_documented() -> None:
    """The names that are read are the fields of `Options`."""
    names = {options_module._snake(name) for name, _ in options_module._READERS.values()}
    assert names == set(options_module.Options.__dataclass_fields__)
    source = Path(options_module.__file__).read_text()
    for name in names:
        assert f"    {name}: " in source


def test_filters_work_without_pushdown_in_the_session(spark: SparkSession, big_log: str) -> None:
    group = group_of(spark, big_log)
    register(spark, pushdown=False)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        without = load(spark, big_log).where(F.col("group_id") == group).count()
    finally:
        register(spark)
    assert without == load(spark, big_log).where(F.col("group_id") == group).count() > 0


def test_tasks_can_be_pickled(big_log: str) -> None:
    import pickle

    reader = NarrowingReader(read_options({"path": big_log}))
    tasks = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301  # our own
    assert all(isinstance(task, Task) for task in tasks)
    assert sum(len(batch) for task in tasks for batch in reader.read(task)) >= COMMITS
