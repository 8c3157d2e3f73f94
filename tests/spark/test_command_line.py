"""`python -m kproto.spark`. The commands run in this process, because each process starts a Java.

`test_fresh_install` runs one as a process, `test_cluster` one through spark-submit.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from shutil import copyfile

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kproto.spark import cli
from kproto.spark.atomic_tables import has_remote_tables
from kproto.spark.commands import JOBS
from kproto.spark.formats import tables_to_write
from kproto.spark.publish import Publication, TablesError
from kproto.spark.start import _standard_output_of_rows
from tests.commandline.commands import kproto
from tests.fixture_files import FIXTURES, offsets_log
from tests.spark.scans import Command, Run

LOGS = FIXTURES / "golden" / "logs"


def test_requested_retentions_and_what_was_read(run_embedded: Command) -> None:
    code, out, err = run_embedded("retention-audit", LOGS / "2.1.1", "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    requested = {row["group_id"]: row["max_override_ms"] for row in rows if row["max_override_ms"] is not None}
    assert requested == {"ret-v2": 60_000, "ret-v3": 60_000, "ret-v4": 60_000}
    assert "38 records in 19 batches of 1 partition of __consumer_offsets" in err.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["expiry", "/nowhere"], "kproto.spark: /nowhere: no such file or directory"),
        (["expiry"], "kproto.spark expiry: the following arguments are required: DIR (see --help)"),
        (["expire", "x"], "kproto.spark: argument JOB: invalid choice: 'expire' (choose from"),
        (["lag", "x", "--moment", "3"], "kproto.spark: unrecognized arguments: --moment 3 (see --help)"),
        (["what-if", "x"], "kproto.spark what-if: the following arguments are required: --retention-minutes"),
        (["rates", "x", "--limit", "0"], "kproto.spark rates: argument --limit: '0' is not a whole number from 1"),
        (["stalled", "x", "--at", "noon"], "kproto.spark stalled: argument --at: 'noon' is neither end nor now nor"),
        (
            ["expiry", "x", "--kafka-version", "new"],
            "argument --kafka-version: 'new' is not a Kafka version like 2.0 or 4.4.0",
        ),
        (["expiry", LOGS / "2.1.1", "--format", "parquet"], "kproto.spark expiry: --format parquet needs a directory"),
        (["expiry", LOGS / "2.1.1", "-o", "/nowhere/x"], "kproto.spark expiry: /nowhere: no such directory"),
        (["expiry", LOGS / "2.1.1", "-o", LOGS, "--format", "parquet"], "golden/logs exists already"),
        (["expiry", LOGS / "2.1.1", "-o", LOGS], f"kproto.spark expiry: {LOGS} is a directory"),
        (["watch", LOGS / "2.1.1", "-o", "/"], "kproto.spark watch: / is a directory"),
        (["watch", LOGS / "2.1.1", "-o", ""], "kproto.spark watch: the name of the output is empty"),
        (["report", LOGS / "2.1.1", "-o", LOGS], f"kproto.spark report: {LOGS} is a directory"),
        (["transactions", "x", "--group", "g"], "kproto.spark: unrecognized arguments: --group g (see --help)"),
        (["expiry", ""], "kproto.spark expiry: the name of an input is empty"),
        (["report", "x", "", "-o", "y"], "kproto.spark report: the name of an input is empty"),
        (["versions", ""], "kproto.spark versions: the name of an input is empty"),
        (["versions", "/nowhere"], "/nowhere: not a report, and not a directory of reports"),
        (["tables", "x", "-o", "y", "--minutes", "5"], "kproto.spark tables: --minutes needs --derived"),
        (["tables", "-o", "y"], "kproto.spark tables: give DIR or --from-kafka HOST:PORT, and not both"),
        (["tables", "x", "-o", "y", "--from-kafka", "a:1"], "give DIR or --from-kafka HOST:PORT, and not both"),
        (["tables", "-o", "y", "--from-kafka", "a:b"], "argument --from-kafka: 'a:b' is not HOST:PORT (see --help)"),
        (["tables", "x", "-o", "y", "--once"], "kproto.spark tables: --once needs --from-kafka"),
        (["tables", "x", "-o", "y", "--command-config", "z"], "tables: --command-config needs --from-kafka"),
        (["tables", "-o", "y", "--from-kafka", "a:1", "--compact"], "kproto.spark tables: --compact needs --once"),
        (["tables", "-o", "y", "--from-kafka", "a:1", "--command-config", "/nowhere"], "No such file or directory"),
        (["tables", "-o", "s3://b/x", "--from-kafka", "a:1"], "give a local directory, or --format delta"),
        (["tables", "x", "-o", "y", "--format", "orc"], "argument --format: invalid choice: 'orc' (choose from"),
        (["latest", LOGS / "2.1.1", "--engine", "embedded", "--jars", __file__], "embedded: --jars is for Spark"),
        (["tables", "-o", "y", "--from-kafka", "a:1", "--once", "--every", "5"], "give --once or --every, not both"),
        (["latest", "x", "--jars", "/nowhere.jar"], "latest: argument --jars: '/nowhere.jar': no such file"),
        (["tables", FIXTURES, "-o", "x"], "no segments and no directories like __consumer_offsets-0; it holds"),
    ],
)
def test_a_wrong_command_is_one_line_before_spark_starts(
    words: list[object], line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(cli, "_run")
    assert cli.main([str(word) for word in words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert line in output.err


def test_settings_that_are_no_properties_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(cli, "_run")
    file = tmp_path / "client.properties"
    for content, text in ((b"a=\\u12", "1: "), (b"\xff", "not a text file in UTF-8")):
        file.write_bytes(content)
        assert cli.main(["tables", "-o", "y", "--from-kafka", "a:1", "--command-config", str(file)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"kproto.spark tables: --command-config {file}: ")
        assert text in error
        assert error.count("\n") == 1


def test_help_names_every_job(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert all(name in output for name in (*JOBS, "versions", "tables", "report"))


def test_a_damaged_log_is_one_line(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    data = bytearray((LOGS / "2.1.1" / "__consumer_offsets-0" / "00000000000000000000.log").read_bytes())
    data[70] ^= 1
    (folder / "00000000000000000000.log").write_bytes(data)
    code, out, err = run("rates", tmp_path)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(
        "kproto.spark: __consumer_offsets-0/00000000000000000000.log at byte 0, offset 0: BadChecksum"
    )


def test_an_empty_log_is_an_error(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    (folder / "00000000000000000000.log").touch()
    code, out, err = run("latest", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "empty" in err


def test_a_uri_without_tables_is_one_line(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    code, out, err = run("latest", "nowhere://bucket/tables")
    assert (code, out) == (2, "")
    assert err == 'kproto.spark: nowhere://bucket/tables: Spark cannot read it: No FileSystem for scheme "nowhere"\n'
    root = tmp_path.as_uri()
    assert not has_remote_tables(spark, root, "_delta_log")
    (tmp_path / "commits" / "_delta_log").mkdir(parents=True)
    assert not has_remote_tables(spark, root, "_delta_log")
    (tmp_path / "commits" / "_delta_log" / f"{0:020}.json").touch()
    assert has_remote_tables(spark, root, "_delta_log")
    assert not has_remote_tables(spark, root, "metadata")


def test_rows_as_a_table(run_embedded: Command) -> None:
    code, out, err = run_embedded("retention-audit", LOGS / "4.4.0", "--retention-minutes", 1, "--limit", 2)
    heads, ruler, *rows = out.splitlines()
    assert code == 0
    assert heads.split()[:3] == ["group_id", "max_override_ms", "n_overrides"]
    assert set(ruler) == {"-", " "}
    assert len(rows) == 2
    assert "3 records skipped, of types that no table has: 6 (1), 7 (1), 8 (1)" in err
    assert "the first 2 rows are shown" in err


def test_rows_of_one_group(run_embedded: Command) -> None:
    code, out, _ = run_embedded("latest", LOGS / "4.4.0", "--group", "v3", "--group", "tx", "--format", "csv")
    assert code == 0
    assert {row["group_id"] for row in csv.DictReader(io.StringIO(out))} == {"v3", "tx"}


def test_jobs_return_the_same_from_tables(run: Run, run_embedded: Command, tmp_path: Path) -> None:
    """A job returns the same rows from tables as from the log, and a second `tables` adds nothing."""
    tables = tmp_path / "tables"
    code, _, err = run("tables", LOGS / "2.1.1", "-o", tables)
    assert code == 0
    assert "commits: " in err
    code, _, err = run("tables", LOGS / "2.1.1", "-o", tables)
    assert err.count(": 0 rows added") == 3
    for job, run_job in (("expiry", run), ("expiry", run_embedded), ("rebalances", run_embedded)):
        from_log = run_embedded(job, LOGS / "2.1.1", "--format", "jsonl")
        from_tables = run_job(job, tables, "--format", "jsonl")
        assert from_log[:2] == from_tables[:2]
        assert from_log[1]

    for path in (tables / "commits").rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-1])
    for run_job in (run, run_embedded):
        code, out, err = run_job("latest", tables)
        assert (code, out) == (2, "")
        assert ".parquet" in err.splitlines()[-1]


def test_tables_of_a_partition_by_another_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(LOGS / "2.1.1" / "__consumer_offsets-0")
    for is_first in (True, False):
        code, _, err = run("tables", tmp_path / "latest", "-o", tmp_path / "tables")
        assert (code, err.count(": 0 rows added") == 3) == (0, not is_first), err


def test_tables_of_two_formats_need_two_directories(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "delta" / "commits" / "_delta_log").mkdir(parents=True)
    code, _, err = run("tables", LOGS / "2.1.1", "-o", tmp_path / "delta")
    reason = "has tables in the format delta: those in parquet need another directory"
    assert (code, err) == (2, f"kproto.spark: {tmp_path / 'delta'}: {reason}\n")
    with Publication(tmp_path / "parquet").writing():
        Publication(tmp_path / "parquet").publish({})
    with pytest.raises(TablesError, match="has tables in the format parquet: those in iceberg need another directory"):
        tables_to_write(spark, str(tmp_path / "parquet"), "iceberg")


def test_rows_as_parquet(run: Run, run_embedded: Command, tmp_path: Path) -> None:
    for run_job, name in ((run, "latest ä%20[1]"), (run_embedded, "embedded ä%20[1]")):
        code, out, _ = run_job("latest", LOGS / "2.1.1", "--format", "parquet", "-o", tmp_path / name)
        assert (code, out) == (0, "")
        table = pq.read_table(tmp_path / name)
        assert table.num_rows == len(run_embedded("latest", LOGS / "2.1.1", "--format", "jsonl")[1].splitlines())
        assert str(table.schema.field("commit_ts").type) == "timestamp[us, tz=UTC]"


def test_rows_go_to_a_file_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    with _standard_output_of_rows():
        pass


def test_versions_over_reports(run_embedded: Command, tmp_path: Path) -> None:
    request = {"api_key": 1, "api": "Fetch", "api_version": 3, "count": 5, "verdict": "breaks", "last_served_by": "3.9"}
    client = {"client_id": "old", "software_name": None, "software_version": None, "requests": [request]}
    report = {"schema": 1, "target": "4.0", "run": None, "clients": [client]}
    (tmp_path / "a.json").write_text(json.dumps(report))
    code, out, err = run_embedded("versions", tmp_path, "--format", "jsonl")
    row = json.loads(out)
    assert (code, row["client_id"], row["verdict"], row["runs"]) == (0, "old", "breaks", 1)
    assert "1 report" in err
    assert run_embedded("versions", tmp_path, tmp_path / "a.json", "--format", "jsonl")[1] == out
    (tmp_path / "b.json").write_text('{"something": "else"}')
    code, _, err = run_embedded("versions", tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert "b.json: not a request report of schema 1" in err


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]",
        "[]",
        '""',
        "7",
        "[" * 100_000,
        '{"schema": 1, "run": {"started_at": "xyz"}}',
        '{"schema": 1, "clients": [{"requests": [{"count": 9223372036854775807}]}]}',
        '{"schema": 1, "clients": [{"requests": [{"count": 1e400}]}]}',
        '{"schema": 1, "clients": [{"requests": [{"count": 99999999999999999999}]}]}',
        '{"schema": 99999999999}',
    ],
)
def test_json_that_is_no_report_is_one_line(text: str, run_embedded: Command, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    code, out, err = run_embedded("versions", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "x.json: not a request report of schema 1" in err


def test_versions_over_logs_and_captures(run_embedded: Command, tmp_path: Path) -> None:
    """Each file is audited by itself, as `kproto audit` reads it, whatever its kind."""
    (tmp_path / "rolled").mkdir()
    log = (FIXTURES / "request-logs/4.4.0.log").read_bytes()
    (tmp_path / "rolled/kafka-request.log.2026-11-26-10").write_bytes(log)
    copyfile(FIXTURES / "copies/3.9.2/kafka-node.pcap.gz", tmp_path / "kafka-node.pcap.gz")
    (tmp_path / "notes.txt").write_text("no input")
    code, out, err = run_embedded("versions", tmp_path, "--format", "jsonl", "--target", "4.0")
    assert (code, "2 reports" in err) == (0, True)
    rows = [json.loads(line) for line in out.splitlines()]
    (fetch,) = (row for row in rows if (row["client_id"], row["api"]) == ("kafka-node-client", "Fetch"))
    assert (fetch["verdict"], fetch["target"], fetch["runs"]) == ("breaks", "4.0", 1)
    audit = tmp_path / "audit.json"
    assert kproto("audit", *map(str, tmp_path.rglob("*k*[0gz]")), "--report", str(audit)).returncode == 0
    counted = sum(row["count"] for client in json.loads(audit.read_text())["clients"] for row in client["requests"])
    assert sum(row["requests"] for row in rows) == counted

    copyfile(FIXTURES / "request-logs/2.0.1.log", tmp_path / "old.log")
    code, _, err = run_embedded("versions", tmp_path / "old.log")
    assert (code, err.count("\n")) == (2, 1)
    assert "old.log' is of a Kafka older than 2.8: give its release, for example --kafka-version 2.0" in err
    assert run_embedded("versions", tmp_path / "old.log", "--kafka-version", "2.0")[0] == 0


def test_a_report_of_a_recorded_log(run: Run, run_embedded: Command, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    log = offsets_log("requested-retentions", "2.0.1") / "__consumer_offsets-0"  # without the log of `orders`
    code, _, err = run("report", log, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert code == 0, err
    assert "7 records in 7 batches" in text
    assert "3 groups need a longer retention than 10,080 minutes: set offsets.retention.minutes to 86,400" in text
    assert text.count("<svg") == 2 * 2  # in two sizes; without the topics' logs there is no chart of lag
    assert "lag is unknown" in text
    assert run_embedded("report", log, "-o", page)[0] == 0
    assert page.read_text(encoding="utf-8") == text
