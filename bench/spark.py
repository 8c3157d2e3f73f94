"""Compare the CPU time of the Spark data source and its alternatives on one generated log.

Method: a log of the offsets topic is made from a seed (`bench.offsets_log`). A figure is the CPU time, user and system,
of this process and all processes that it started (Spark's Java and the Python workers) during one case. In each round
the subjects of a case run once; the figure is the lowest of the rounds, and a ratio the median of the rounds' ratios.
The first rounds are not counted. The rounds of a case follow each other, as Spark ends workers that were idle for a
minute. Wall times are given too, but depend on the load of the machine. Before measuring, the results of all
alternatives are compared.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.model import KPROTO, Bench, BenchError, Lead, Limit, Metric, Note, Row
from bench.offsets_log import append_commits, make_log
from bench.options import count, some_of
from bench.process_tree import cpu_seconds
from kproto.arrow.schemas import COMMITS

CPU = Metric(key="cpu_s", title="CPU s", compared=True, digits=2)
WALL = Metric(key="wall_s", title="wall s", digits=2)
SIZE = Metric(key="mb", title="MB", compared=True)
LATENCY = Metric(key="p50_ms", title="median ms", digits=0)
METRICS = (CPU, WALL, SIZE, LATENCY)
DECODE, SCAN, LATEST, GROUP, PARQUET, MICRO_BATCH = "decode", "full scan", "latest", "one group", "size", "micro-batch"
REFERENCE, BARE, RECORDS, TABLES = "reference", "bare decode", "view records", "parquet"
DUCKDB, LOG = "duckdb", "log"
COUNTED, EXPORTED, WRITTEN, ENGINE, GROWTH = "latest counted", "exported", "tables", "embedded", "growth"
COUNTED_RATES = "rates counted"
JOB_ALONE, EXPORT, TENTH = "job alone", "log export", "a tenth x 10"
REFERENCE_SHARE = 16
"""The reference decoder reads one of this many segments; its figure is extrapolated to all."""
WORKERS = 2
"""Tasks of Spark that run at the same time, each in a Python worker."""
WARM_UP = 3
"""Rounds of each case that are not counted: Java still compiles, which takes up to a second of each query."""
MICRO_BATCHES = 15
KEY = "group_id, topic, partition"
NEEDED = ("pyspark", "pyarrow", "duckdb")

Rounds = dict[str, list[dict[str, float]]]
"""The figures of each round, by subject."""


CASES = (
    *(DECODE, SCAN, LATEST, GROUP, COUNTED, COUNTED_RATES, EXPORTED, WRITTEN, ENGINE, GROWTH),
    *(PARQUET, MICRO_BATCH),
)
TENTH_LOG = "tenth"
CHECKED = "checked.json"
"""In ``--data``: the number of records, and a small group with its number, once all alternatives were compared."""


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--commits", type=count, default=10_000_000, metavar="N", help="10000000 if not given")
    some_cases = partial(some_of, names=CASES)
    parser.add_argument(
        "--cases", type=some_cases, default=CASES, metavar="NAME,...", help=f"the rows: {', '.join(CASES)}"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the log there, and its tables; use them if they are there"
    )
    parser.add_argument(
        "--rounds", type=count, default=9, metavar="N", help="rounds, after three that are not counted; 9 if not given"
    )


def run(options: Namespace, note: Note) -> list[Row]:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise BenchError(f"needs {', '.join(missing)}: pip install kproto[spark] duckdb")
    with tempfile.TemporaryDirectory(prefix="kproto-bench-") as directory:
        data = (options.data or Path(directory) / "data").absolute()
        checked = data / CHECKED
        is_new = not checked.exists()
        if is_new:
            if data.exists():
                raise BenchError(f"{data}: has no {CHECKED}: give a directory that does not exist")
            made = make_log(data / LOG, options.commits)
            found = Checked(made, make_log(data / TENTH_LOG, max(1, made // 10)))
        else:
            found = Checked(**json.loads(checked.read_text()))
        logs = [path.stat().st_size for path in (data / LOG).rglob("*.log")]
        note(f"{found.records:,} records, {sum(logs) / 1e6:,.0f} MB, in {len(logs)} segments")
        subjects = Subjects(data, Path(directory), found)
        try:
            if is_new:
                checked.write_text(json.dumps(asdict(subjects.check())))
            return subjects.rows(options.rounds, options.cases)
        finally:
            subjects.decoders.shutdown()
            subjects.spark.stop()


@dataclass(frozen=True)
class Checked:
    """What is known of the log."""

    records: int
    tenth_records: int
    group: str = ""
    """A small group."""
    group_records: int = 0


class Subjects:
    """The cases to measure, on one log and in one session."""

    def __init__(self, data: Path, work_dir: Path, checked: Checked) -> None:
        from kproto.spark import session
        from kproto.spark.session import FOR_LARGE_INPUT, JAVA_OPTIONS

        self.log_dir = data / LOG
        self.tables = data / "tables"
        self.tenth = data / TENTH_LOG
        self.work_dir = work_dir
        self.checked = checked
        self.records = checked.records
        config = {JAVA_OPTIONS: FOR_LARGE_INPUT, "spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}
        self.spark = session("bench", master=f"local[{WORKERS}]", config=config)
        self.spark.sparkContext.setLogLevel("ERROR")
        self.decoders = ProcessPoolExecutor(WORKERS, get_context("spawn"))

    def rows(self, rounds: int, wanted: Sequence[str]) -> list[Row]:
        """Measure some cases."""
        alone: dict[str, Callable[[], object]] = {} if SCAN in wanted else {SCAN: self._scan}
        cases: dict[str, dict[str, Callable[[], object]]] = {
            DECODE: {
                KPROTO: lambda: self._decode("fast", 1),
                REFERENCE: lambda: self._decode("reference", REFERENCE_SHARE),
            },
            SCAN: {KPROTO: self._scan, BARE: self._decode_at_once},
            LATEST: {
                KPROTO: lambda: self._latest_of_log("candidates"),
                RECORDS: lambda: self._latest_of_log("records"),
                TABLES: self._latest_of_tables,
                DUCKDB: self._latest_by_duckdb,
            },
            GROUP: {KPROTO: self._one_group, **alone},
            COUNTED: {KPROTO: self._latest_with_coverage, JOB_ALONE: lambda: self._latest_of_log("candidates")},
            COUNTED_RATES: {KPROTO: self._rates_with_coverage, JOB_ALONE: self._rates_alone},
            EXPORTED: {KPROTO: lambda: self._latest_of_log("candidates"), EXPORT: self._latest_of_export},
            WRITTEN: {KPROTO: lambda: self._write(self.work_dir / "written"), EXPORT: self._export},
            ENGINE: {KPROTO: self._latest_embedded, DUCKDB: self._latest_by_duckdb},
            GROWTH: {
                KPROTO: lambda: self._latest_of_log("candidates"),
                TENTH: lambda: self._latest_of_log("candidates", self.tenth),
            },
        }
        cases = {case: subjects for case, subjects in cases.items() if case in wanted}
        found: dict[str, Rounds] = {case: {name: [] for name in subjects} for case, subjects in cases.items()}
        for case, subjects in cases.items():
            for nth in range(WARM_UP + rounds):
                for name, subject in subjects.items():
                    figures = _measured(subject)
                    if nth >= WARM_UP:
                        found[case][name].append(figures)
        for case, name, factor in (
            (DECODE, REFERENCE, self._share_factor(REFERENCE_SHARE)),
            (GROWTH, TENTH, self.records / self.checked.tenth_records),
        ):
            for figures in found.get(case, {}).get(name, []):
                figures |= {figure: factor * value for figure, value in figures.items()}
        if {SCAN, GROUP} <= {*found}:
            found[GROUP][SCAN] = found[SCAN][KPROTO]
        if PARQUET in wanted:
            sizes = {KPROTO: _size(self.tables, "*.parquet"), LOG: _size(self.log_dir, "*.log")}
            found[PARQUET] = {name: [{"mb": size}] for name, size in sizes.items()}
        if MICRO_BATCH in wanted:
            found[MICRO_BATCH] = {KPROTO: [{"p50_ms": self._micro_batches()}]}
        return [
            Row(
                bench=BENCH.name,
                case=case,
                figures={name: min(some, key=lambda one: one.get("cpu_s", 0.0)) for name, some in by_name.items()},
                rounds=by_name,
            )
            for case, by_name in found.items()
        ]

    def _load(self, log_dir: Path | None = None, **options: str) -> Any:
        return self.spark.read.format("kproto").options(**options).load(str(log_dir or self.log_dir))

    def _write(self, tables: Path) -> None:
        """Write new tables of the log, as the command `tables` does."""
        from kproto.spark.arguments import parse
        from kproto.spark.log_input import LogInput
        from kproto.spark.tables_command import write_tables

        shutil.rmtree(tables, ignore_errors=True)
        options = parse(["tables", str(self.log_dir), "-o", str(tables)])
        write_tables(self.spark, options, lambda: LogInput(self.spark, str(self.log_dir)), lambda _line: None)

    def _latest_with_coverage(self) -> int:
        from kproto.spark.log_input import LogInput

        with LogInput(self.spark, str(self.log_dir)).read_once("last_commits") as log:
            if log.coverage.records != self.records:
                raise BenchError(f"{self.records} records were made, {log.coverage.records} counted")
            return self._sum_of_latest(log.last_commits)

    def _rates_with_coverage(self) -> None:
        from kproto.spark.jobs import rates
        from kproto.spark.log_input import LogInput

        with LogInput(self.spark, str(self.log_dir)).read_once("commits", "markers") as log:
            self._check_rates(rates(log.commits, log.markers))

    def _rates_alone(self) -> None:
        from kproto.spark.jobs import rates
        from kproto.spark.log_input import LogInput

        self._check_rates(rates(LogInput(self.spark, str(self.log_dir)).commits, None))

    def _check_rates(self, rates: Any) -> None:
        from kproto.spark.engine import F

        counted = rates.agg(F.sum("commits")).collect()[0][0]
        if not 0 < counted <= self.records:
            raise BenchError(f"{self.records} records were made, rates counted {counted} commits")

    def _export(self) -> Path:
        """Export the commits by the command `kproto log export`; return the file."""
        output = self.work_dir / "exported.parquet"
        command = [sys.executable, "-m", "kproto_server", "log", "export", str(self.log_dir), "--output", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(done.stderr.strip())
        return output

    def _latest_of_export(self) -> int:
        return self._latest_by_duckdb(str(self._export()))

    def _latest_embedded(self) -> int:
        """Return the sum by the embedded engine, over the same Parquet as DuckDB's own SQL."""
        from kproto.spark.embedded import EmbeddedSession
        from kproto.spark.engine import EMBEDDED, using
        from kproto.spark.schemas import ddl

        session: Any = EmbeddedSession()
        with using(EMBEDDED):
            commits = session.read.schema(ddl(COMMITS)).parquet((self.tables / COMMITS.name).as_uri())
            found = self._sum_of_latest(commits)
        session.stop()
        return found

    def _commits_of_tables(self) -> Any:
        return self.spark.read.parquet(str(self.tables / "commits"))

    def check(self) -> Checked:
        """Write tables of the log, compare the results of all alternatives, and choose a small group."""
        self._write(self.tables)
        counted = self._decode("fast", 1)
        if not counted == self._load().count() == self._commits_of_tables().count() == self.records:
            raise BenchError(f"{self.records} records were made, {counted} decoded")
        sums = [
            *map(self._latest_of_log, ("candidates", "records")),
            self._latest_of_tables(),
            self._latest_by_duckdb(),
            self._latest_with_coverage(),
            self._latest_of_export(),
            self._latest_embedded(),
        ]
        if len(set(sums)) > 1:
            raise BenchError(f"the sums of the latest offsets are {sums}")
        counts = self._commits_of_tables().groupBy("group_id").count()
        first = counts.orderBy("count", "group_id").first()
        return replace(self.checked, group=first["group_id"], group_records=first["count"])

    def _segments(self, share: int) -> list[Path]:
        return sorted(self.log_dir.rglob("*.log"))[::share]

    def _share_factor(self, share: int) -> float:
        part = sum(path.stat().st_size for path in self._segments(share))
        return sum(path.stat().st_size for path in self._segments(1)) / part

    def _decode(self, decoder: str, share: int) -> int:
        return decode(self._segments(share), decoder)

    def _decode_at_once(self) -> int:
        """Decode in as many processes as Spark has workers: they share the caches and the memory of the machine."""
        segments = self._segments(1)
        return sum(self.decoders.map(decode, (segments[number::WORKERS] for number in range(WORKERS))))

    def _scan(self) -> None:
        self._load().write.format("noop").mode("overwrite").save()

    def _sum_of_latest(self, commits: Any) -> int:
        from kproto.spark.engine import F

        last = commits.groupBy("group_id", "topic", "partition").agg(
            F.max_by("committed_offset", "log_offset").alias("o")
        )
        return int(last.agg(F.sum("o")).collect()[0][0])

    def _latest_of_log(self, view: str, log_dir: Path | None = None) -> int:
        return self._sum_of_latest(self._load(log_dir, view=view))

    def _latest_of_tables(self) -> int:
        return self._sum_of_latest(self._commits_of_tables())

    def _latest_by_duckdb(self, files: str | None = None) -> int:
        import duckdb

        files = files or str(self.tables / "commits" / "**" / "*.parquet")
        query = f"select arg_max_null(committed_offset, log_offset) o from read_parquet(?) group by {KEY}"
        with duckdb.connect(config={"threads": 2}) as connection:
            found: Any = connection.execute(f"select sum(o) from ({query})", [files]).fetchone()
        return int(found[0])

    def _one_group(self) -> None:
        group, expected = self.checked.group, self.checked.group_records
        rows = self._load().where(f"group_id = '{group}'")
        if rows.count() != expected:
            raise BenchError(f"{group} has {expected} records, and {rows.count()} were found")

    def _micro_batches(self) -> float:
        """Return the median time from an append to its commit, in milliseconds."""
        log_dir, rows = self.work_dir / "growing", self.work_dir / "rows"
        make_log(log_dir, 10_000)
        writer = self.spark.readStream.format("kproto").load(str(log_dir)).writeStream.format("parquet")
        query = writer.options(checkpointLocation=str(self.work_dir / "checkpoint"), path=str(rows)).start()
        try:
            query.processAllAvailable()
            times = []
            for _ in range(MICRO_BATCHES):
                append_commits(log_dir, 20)
                before = time.perf_counter()
                query.processAllAvailable()
                times.append(1000 * (time.perf_counter() - before))
        finally:
            query.stop()
        return statistics.median(times)


def decode(segments: Sequence[Path], decoder: str = "fast") -> int:
    """Make the rows of segments and discard them; return the number of records."""
    from kproto.arrow.decoding import View
    from kproto.arrow.reading import RangeReader
    from kproto.logs.files import find_partitions
    from kproto.logs.ranges import OffsetRange

    records = 0
    for path in segments:
        (partition,) = find_partitions(str(path))
        reader = RangeReader(OffsetRange(partition, 0, None), View.COMMITS, decoder=decoder)
        for _ in reader:
            pass
        records += reader.counts.records
    return records


def _measured(subject: Callable[[], object]) -> dict[str, float]:
    """Measure a call, again if a process from before has ended: Spark ends workers that were idle for a minute,
    and their time would be missing.
    """
    while True:
        before, wall = cpu_seconds(), time.perf_counter()
        subject()
        after, wall_s = cpu_seconds(), time.perf_counter() - wall
        if before.keys() <= after.keys():
            return {"cpu_s": sum(after.values()) - sum(before.values()), "wall_s": wall_s}


def _size(directory: Path, pattern: str) -> float:
    return sum(path.stat().st_size for path in directory.rglob(pattern)) / 1e6


BENCH = Bench(
    name="spark",
    summary="the Spark data source: decoding, scanning, latest offsets, one group, tables, micro-batches",
    metrics=METRICS,
    peers=[KPROTO, REFERENCE, BARE, RECORDS, TABLES, SCAN, DUCKDB, LOG, JOB_ALONE, EXPORT, TENTH],
    floors=[
        Lead(case=DECODE, metric=CPU, peer=REFERENCE, at_least=6.0),
        Limit(case=SCAN, metric=CPU, peer=BARE, at_most=2.5),
        Limit(case=LATEST, metric=CPU, peer=TABLES, at_most=2.0),
        Lead(case=GROUP, metric=CPU, peer=SCAN, at_least=20.0),
        Lead(case=PARQUET, metric=SIZE, peer=LOG, at_least=6.0),
        Limit(case=COUNTED, metric=CPU, peer=JOB_ALONE, at_most=1.05),
        Limit(case=COUNTED_RATES, metric=CPU, peer=JOB_ALONE, at_most=1.05),
        Limit(case=EXPORTED, metric=WALL, peer=EXPORT, at_most=1.0),
        Limit(case=WRITTEN, metric=CPU, peer=EXPORT, at_most=3.0),
        Limit(case=ENGINE, metric=CPU, peer=DUCKDB, at_most=1.5),
        Limit(case=GROWTH, metric=CPU, peer=TENTH, at_most=1.1),
        Limit(case=MICRO_BATCH, metric=LATENCY, at_most=1000.0),
    ],
    add_options=add_options,
    run=run,
)
