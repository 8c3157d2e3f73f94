"""`watch` names the groups that break rules, on logs of real brokers, in each form of output."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.records.coordinator import encode_value
from kproto.records.offset_records import OffsetCommitValue
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto.spark import cli
from kproto.spark.engine import SPARK, using
from kproto.spark.watch import RulesError, read_rules
from tests.fixture_files import offsets_log
from tests.inspect.logs import NOW, commit, partition_folder
from tests.spark.scans import Run

RETENTIONS = offsets_log("requested-retentions", "2.0.1")
RETENTION_RULES = "expiring_hours: 48\nkafka_version: '2.0'\n"


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    """A command chooses the engine of its process."""
    with using(SPARK):
        yield


def watch(log: Path, rules: str | None, tmp_path: Path, *words: str) -> int:
    if rules is not None:
        (tmp_path / "rules.yaml").write_text(rules)
        words = ("--rules", str(tmp_path / "rules.yaml"), *words)
    return cli.main(["watch", str(log), "--engine", "embedded", *words])


@pytest.mark.parametrize(
    ("log", "rules", "found"),
    [
        (
            RETENTIONS,
            RETENTION_RULES,
            [f"expiring: {group}: 1 offset expiring within 48 h" for group in ("a-day", "changing")],
        ),
        (RETENTIONS, "expiring_hours: 2\nkafka_version: '2.0'", ["expiring: changing: 1 offset expiring within 2 h"]),
        (RETENTIONS, RETENTION_RULES + "ignored_groups: ['a-*', 'changing']", []),
        (offsets_log("no-records", "2.8.2"), "lag_more_than: 103", ["lag: readers: lag 104"]),
        (offsets_log("no-records", "2.8.2"), "lag_more_than: 104", []),
        (offsets_log("no-records", "2.8.2"), "stalled_minutes: 0", ["stalled: readers: 1 offset stalled, for 0 min"]),
        (offsets_log("replaced-commits", "4.4.0"), "rewinds_hours: 1", ["rewinds: seen: 1 rewind in 1 h, by up to 15"]),
        (
            offsets_log("several-partitions", "2.8.2"),
            "hot_partition_share: 0.3",
            ["hot_partition: __consumer_offsets-2: 38.5 % of all commits, 40 % of them of group group-0"],
        ),
        (offsets_log("replaced-commits", "4.4.0"), None, ["rewinds: seen: 1 rewind in 24 h, by up to 15"]),
    ],
)
def test_what_breaks_a_rule_is_named(
    log: Path, rules: str | None, found: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = watch(log, rules, tmp_path)
    assert capsys.readouterr().out.splitlines() == found
    assert code == (1 if found else 0)


@pytest.mark.parametrize(("at", "rewinds"), [("0001-01-01", 0), ("9999-12-31T23:59:59.999999", 1)])
def test_any_time_of_the_question(at: str, rewinds: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = "expiring_hours: 2147483647\nstalled_minutes: 2147483647\nrewinds_hours: 2147483647\n"
    watch(offsets_log("replaced-commits", "4.4.0"), rules, tmp_path, "--at", at)
    found = capsys.readouterr().out
    assert found.count("rewinds: seen: 1 rewind in 2,147,483,647 h, by up to 15") == rewinds


def test_timestamps_beyond_the_last_year(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients write timestamps of their own, which readers limit to the end of the year 9999."""
    late = Record(commit(1).key, commit(1).value, timestamp=2**62, offset=1)
    partition_folder(tmp_path, {0: build_record_batch([commit(0)]) + build_record_batch([late])})
    assert watch(tmp_path, None, tmp_path, "--format", "json") == 1
    assert json.loads(capsys.readouterr().out)["log_end"].startswith("9999-12-31T23:59:59")
    page = tmp_path / "page.html"
    value = OffsetCommitValue(offset=0, metadata="", commit_timestamp=2**62, expire_timestamp=2**62)
    expires = Record(commit(0).key, encode_value(value, 1), timestamp=NOW, offset=0)
    empty = Record(commit(1).key, encode_value(value, 3), timestamp=NOW, offset=1)
    partition_folder(tmp_path / "deadlines", {0: build_record_batch([expires]) + build_record_batch([empty])})
    for log in (tmp_path, tmp_path / "deadlines"):
        for version in ("2.0", "4.4"):
            words = ["report", str(log), "--engine", "embedded", "--kafka-version", version, "-o", str(page)]
            assert cli.main(words) == 0
            assert "9999-12-31" in page.read_text()


def test_standard_output_is_closed_or_lacks_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "log"
    partition_folder(folder, {0: build_record_batch([commit(0, "größer")])})
    printed = io.BytesIO()
    with io.TextIOWrapper(printed, encoding="ascii", write_through=True) as stream:
        monkeypatch.setattr("sys.stdout", stream)
        assert watch(folder, "hot_partition_share: 0.5", tmp_path, "--format", "chat") == 1
        assert b"of them of group gr\\xf6\\xdfer" in printed.getvalue()
        printed.truncate(0)
        assert cli.main(["latest", str(folder), "--engine", "embedded", "--format", "jsonl"]) == 0
        assert json.loads(printed.getvalue().strip(b"\0"))["group_id"] == "größer"
    monkeypatch.setattr("sys.stdout", None)
    capsys.readouterr()
    assert watch(folder, None, tmp_path) == 2
    assert capsys.readouterr().err == "kproto.spark watch: standard output is closed: give -o FILE\n"


def test_findings_as_json_metrics_and_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = offsets_log("before-recreation", "2.0.1")
    rules = "lag_more_than: 200\n"
    assert watch(log, rules, tmp_path, "--format", "json") == 1
    text = json.loads(capsys.readouterr().out)
    assert [(one["rule"], one["group_id"], one["value"]) for one in text["findings"]] == [
        ("lag", "readers", 296),
        ("lag", "", 293),
    ]
    assert watch(log, rules, tmp_path, "--format", "chat") == 1
    assert capsys.readouterr().out == 'lag: readers (lag 296), "" (lag 293)\n'
    assert watch(log, "lag_more_than: 900", tmp_path, "--format", "chat") == 0
    assert capsys.readouterr().out == "no group breaks a rule\n"
    metrics = tmp_path / "kproto.prom"
    assert watch(log, rules, tmp_path, "--format", "prometheus", "-o", str(metrics)) == 1
    lines = metrics.read_text().splitlines()
    assert 'kproto_lag_offsets{group="readers"} 296' in lines
    assert 'kproto_lag_offsets{group=""} 293' in lines
    assert lines.count("# TYPE kproto_lag_offsets gauge") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kproto.prom", "rules.yaml"]


def test_devices_and_links_stay_what_they_are(tmp_path: Path) -> None:
    device, target, link = tmp_path / "device", tmp_path / "target.prom", tmp_path / "link.prom"
    device.symlink_to("/dev/null")
    link.symlink_to(target)
    for output in (device, link):
        assert watch(RETENTIONS, RETENTION_RULES, tmp_path, "-o", str(output)) == 1
        assert output.is_symlink()
    assert Path("/dev/null").is_char_device()
    assert target.read_text().startswith("expiring: a-day")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["device", "link.prom", "rules.yaml", "target.prom"]


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert watch(RETENTIONS, RETENTION_RULES, tmp_path, "-o", str(pipe)) == 1
        assert os.read(reader, 10_000).startswith(b"expiring: a-day")
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_file_that_cannot_be_replaced_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source, None, target)

    monkeypatch.setattr(os, "replace", fail)
    output = tmp_path / "kproto.prom"
    assert watch(RETENTIONS, None, tmp_path, "-o", str(output)) == 2
    assert capsys.readouterr().err == f"kproto.spark: [Errno 28] No space left on device: '{output}'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        ("lag: 3", "no rule 'lag': use expiring_hours, stalled_minutes"),
        ("lag_more_than: many", "lag_more_than: 'many' is not a whole number from 0"),
        ("lag_more_than: true", "lag_more_than: True is not a whole number from 0"),
        ("hot_partition_share: 30", "hot_partition_share: 30 is not a share from 0 to 1"),
        ("kafka_version: 2.0", 'kafka_version: 2.0 is not a version in quotes, like "2.0"'),
        ("- lag", "not a mapping of rules like lag_more_than: 1000"),
        ("a: [", "not YAML: "),
        ("[" * 5000, "nested too deeply"),
        ("lag_more_than: " + "1" * 10_000, "not YAML: Exceeds the limit"),
        ("stalled_minutes: 0x" + "f" * 9_000, "stalled_minutes: a number of thousands of digits is not a whole"),
        ("expiring_hours: 10000000000", "expiring_hours: 10000000000 is not a whole number from 1 to 2147483647"),
        ("kafka_version: '2.²'", "kafka_version: '2.²' is not a version in quotes"),
    ],
)
def test_wrong_rules_are_one_line(rules: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert watch(RETENTIONS, rules, tmp_path) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert f"rules.yaml: {line}" in output.err
    with pytest.raises(RulesError):
        read_rules(str(tmp_path / "rules.yaml"))


def test_spark_finds_the_same(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("expiring_hours: 200\nrewinds_hours: 9\n")
    log = offsets_log("several-partitions", "2.8.2")
    words = ["watch", log, "--rules", rules, "--format", "json"]
    of_spark = run(*words)
    assert of_spark[0] == cli.main([*map(str, words), "--engine", "embedded"])
    assert of_spark[1] == capsys.readouterr().out
