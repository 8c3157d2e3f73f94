"""Log.dirs of a real cluster of three brokers: one stopped for a while, one elected uncleanly, and damaged copies."""

from __future__ import annotations

import csv
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from kproto.logs.log_dirs import log_dirs
from kproto.logs.replicas import find_replicas
from kproto.records.segment_files import segment_name
from kproto.spark.engine import EMBEDDED, using
from kproto_server.commandline.cli import main
from tests.fixture_files import offsets_log
from tests.spark.record_replicas import FOLDER
from tests.spark.scans import Command, Run

ONE, TWO, BEHIND, ELECTED = (FOLDER / name for name in ("broker-1", "broker-2", "broker-3", "broker-3-elected"))
ALL = str(FOLDER / "broker-[123]")
TOPIC, OFFSETS = ("orders", "0"), ("__consumer_offsets", "0")
Row = dict[str, str]


def rows_of(text: str) -> list[Row]:
    return list(csv.DictReader(text.splitlines()))


def replicas(run_embedded: Command, *paths: Path) -> dict[tuple[str, str, str], Row]:
    """Return the rows by topic, partition and broker."""
    code, out, err = run_embedded("replicas", *paths, "--format", "csv")
    assert (code, err) == (0, "")
    return {(row["topic"], row["partition"], row["broker_id"]): row for row in rows_of(out)}


def states(rows: dict[tuple[str, str, str], Row], partition: tuple[str, str]) -> list[tuple[str, ...]]:
    names = ("broker_id", "state", "is_read", "log_end", "leader_epoch", "behind", "diverged_at")
    return sorted(tuple(row[name] for name in names) for key, row in rows.items() if key[:2] == partition)


def test_a_broker_that_was_stopped_is_behind(run_embedded: Command) -> None:
    rows = replicas(run_embedded, ONE, TWO, BEHIND)
    assert states(rows, TOPIC) == [
        ("1", "read", "true", "40", "1", "0", ""),
        ("2", "same", "false", "40", "1", "0", ""),
        ("3", "behind", "false", "20", "0", "20", ""),
    ]
    assert len(rows) == 9
    assert {row["cluster_id"] for row in rows.values()} == {"Tgp_B1NsT122N67fn6twLg"}


def test_logs_have_diverged_after_an_unclean_election(run_embedded: Command) -> None:
    """The leader that was elected has less offsets, and a higher epoch: the other brokers would remove theirs."""
    rows = replicas(run_embedded, ONE, TWO, ELECTED)
    assert states(rows, TOPIC) == [
        ("1", "diverged", "false", "40", "1", "0", "20"),
        ("2", "diverged", "false", "40", "1", "0", "20"),
        ("3", "read", "true", "25", "4", "0", ""),
    ]
    assert states(rows, OFFSETS)[2] == ("3", "read", "true", "4", "4", "0", "")
    code, out, err = run_embedded("lag", ONE, TWO, ELECTED, "--format", "csv")
    assert code == 0
    assert "of 9 replicas, 6 diverged: the job replicas shows them" in err
    found = {row["group_id"]: (row["committed_offset"], row["log_end"], row["lag"]) for row in rows_of(out)}
    assert found == {f"group-{n}": ("22", "25", "3") if n < 2 else ("5", "25", "20") for n in range(6)}


@pytest.mark.parametrize(("kept", "expected"), [(-10, "cut"), (-115, "cut")], ids=["in a batch", "after a batch"])
def test_a_log_cut_by_hand(run_embedded: Command, tmp_path: Path, kept: int, expected: str) -> None:
    """After a whole batch, the stored high watermark shows it."""
    copy = shutil.copytree(TWO, tmp_path / "broker-2")
    segment = copy / "__consumer_offsets-0" / segment_name(0)
    data = segment.read_bytes()
    assert len(data) == 6 * 115
    segment.write_bytes(data[:kept])
    found = states(replicas(run_embedded, ONE, copy), OFFSETS)
    assert found[1] == ("2", expected, "false", "5", "1", "1", "")


def test_a_batch_with_other_bytes_has_diverged(run_embedded: Command, tmp_path: Path) -> None:
    copy = shutil.copytree(TWO, tmp_path / "broker-2")
    segment = copy / "__consumer_offsets-0" / segment_name(0)
    data = bytearray(segment.read_bytes())
    data[-115 + 17] ^= 1  # its checksum
    segment.write_bytes(data)
    assert states(replicas(run_embedded, ONE, copy), OFFSETS)[1][1:] == ("diverged", "false", "6", "1", "0", "5")


@pytest.mark.parametrize("job", ["lag", "check", "expiry", "assignments"])
def test_a_job_reads_the_most_complete_replica_of_each_partition(
    run_embedded: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """Broker 1 has the most complete log of one partition, broker 2 of the others. A directory is listed at the first
    look, and again at the end of each of its logs, in which the broker may have rolled meanwhile.
    """
    listings: Counter[str] = Counter()
    listdir = os.listdir

    def counted(path: str | Path) -> list[str]:
        listings[os.fspath(path)] += 1
        return listdir(path)

    monkeypatch.setattr(os, "listdir", counted)
    one = shutil.copytree(ONE, tmp_path / "broker-1")
    for cut in ("__consumer_offsets-1", "orders-0"):
        segment = one / cut / segment_name(0)
        segment.write_bytes(segment.read_bytes()[:-10])
    two = shutil.copytree(TWO, tmp_path / "broker-2")
    shutil.rmtree(two / "__consumer_offsets-0")
    _, several, err = run_embedded(job, one, two, BEHIND, "--format", "csv")
    assert {listings[str(broker)] for broker in (one, two, BEHIND)} == {1}
    assert all(listings[str(partition)] <= 4 for partition in (*one.iterdir(), *two.iterdir()))
    code, alone, _ = run_embedded(job, ONE, "--format", "csv")
    assert (code, several) == (0, alone)
    assert job == "assignments" or "12 records in 12 batches of 2 partitions" in err


def test_spark_reads_them_in_one_scan(run: Run, run_embedded: Command, tmp_path: Path) -> None:
    manifest = tmp_path / "brokers.txt"
    manifest.write_text(f"# of all brokers\n\n{FOLDER}/broker-3\n{FOLDER}/broker-[12]\n")
    code, rows, err = run("lag", manifest, "--format", "csv")
    assert (code, rows) == (0, run_embedded("lag", ONE, "--format", "csv")[1])
    assert "3 behind" in err
    assert run("replicas", manifest, "--format", "csv")[1] == run_embedded("replicas", ALL, "--format", "csv")[1]


def test_the_commands_of_kproto_log_read_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with using(EMBEDDED):  # the commands choose it for their process
        assert main(["log", "report", str(ONE), str(BEHIND), "-o", str(page)]) == 0
        assert main(["log", "retention", ALL, "--format", "csv"]) == 0
        assert main(["log", "watch", ALL, "--format", "chat"]) == 0
    assert "and 1 other path" in page.read_text(encoding="utf-8")
    assert "3 behind" in capsys.readouterr().err


def test_rows_of_several_clusters_have_their_ids(run_embedded: Command, tmp_path: Path) -> None:
    other = offsets_log("kafka-tools", "4.4.0")
    code, out, _ = run_embedded("latest", ONE, other, "--format", "csv")
    rows = [(row["cluster_id"], row["group_id"], row["committed_offset"]) for row in rows_of(out)]
    assert code == 0
    assert rows[0] == ("Tgp_B1NsT122N67fn6twLg", "group-0", "30")
    assert rows[-1] == ("a3Byb3RvLW9yYWNsZS0wMQ", "transfers", "7")
    assert len(rows) == 6 + 9
    assert run_embedded("check", ONE, other)[0] == 1  # of one cluster
    code, _, err = run_embedded("report", ONE, other, "-o", tmp_path / "page.html")
    assert (code, err.count("\n")) == (2, 1)
    assert "these are logs of several clusters (Tgp_B1NsT122N67fn6twLg, a3Byb3RvLW9yYWNsZS0wMQ)" in err


def test_two_copies_of_one_broker_are_refused(run_embedded: Command) -> None:
    """They may be of two clusters: releases up to 2.1 do not store the id."""
    for paths in ((BEHIND, ELECTED), (offsets_log("kafka-tools", "1.1.1"), offsets_log("kafka-tools", "2.0.1"))):
        code, _, err = run_embedded("latest", *paths)
        assert (code, err.count("\n")) == (2, 1)
        assert "both are of broker" in err


def test_the_broker_is_in_the_path_where_its_file_is_missing(tmp_path: Path) -> None:
    for name in ("kafka-07/data", "node_8"):
        shutil.copytree(ONE, tmp_path / name, ignore=shutil.ignore_patterns("meta.properties"))
    (found, *_) = find_replicas(log_dirs(f"{tmp_path}/kafka-07/data\n{tmp_path}/node_8"))
    assert sorted(one.log_dir.broker_id or 0 for one in found) == [7, 8]


def text_of(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("\n".join(lines))
    return path


def test_mistakes_are_one_line(run_embedded: Command, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for path, reason in (
        (tmp_path / "nothing-*", "no directory has such a name"),
        (text_of(tmp_path / "empty", ["# none"]), "an empty list of paths"),
        (text_of(tmp_path / "list", ["gone-*"]), "list: gone-*: no directory has such a name"),
        (text_of(tmp_path / "missing", ["gone"]), "gone: no such file or directory"),
        (tmp_path / "binary", "neither a segment nor a list of paths"),
        (text_of(tmp_path / "zeros", ["\n\r\r\n\0\0\0"]), "neither a segment nor a list of paths"),
    ):
        code, out, err = run_embedded("latest", path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert reason in err
