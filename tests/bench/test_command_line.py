"""``python -m bench`` as a user types it, with the shortest possible runs; no time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import bench.__main__
from bench import codec
from bench.codecs import SUBJECTS, Call, Case, Subject
from bench.model import Bench, BenchError, Lead, Metric, Missing, Note, Row

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_without_a_name_it_lists_the_benches() -> None:
    done = run()
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        "audit",
        "backpressure",
        "client",
        "codec",
        "commit",
        "groups",
        "memory",
        "proxy",
        "rebalance",
        "restart",
        "secure",
        "shares",
        "spark",
        "start",
        "table",
        "throughput",
        "torture",
        "transactions",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["codec", "--nonsense"],
        ["codec", "--rounds", "0"],
        ["codec", "--only", "kproto,unknown"],
        ["codec", "--partitions", "1,,2"],
        ["commit", "--shapes", "8"],
        ["commit", "--seconds", "-1"],
        ["commit", "--durability", "memory,disk"],
        ["memory", "--shapes", "1000x10"],
        ["spark", "--cases", "full scan,unknown"],
        ["table", "--fraction", "0"],
        ["torture", "--durability", "memory"],
        ["--json"],
    ],
    ids=" ".join,
)
def test_bad_arguments_are_reported_in_one_line_with_exit_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        bench.__main__.main(arguments)
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert out == ""
    assert err.startswith("bench: ")
    assert err.count("\n") == 1


def test_the_spark_bench_leaves_a_directory_of_others_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert bench.__main__.main(["spark", "--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"bench: {tmp_path}: has no checked.json: give a directory that does not exist\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_codec_bench_prints_one_json_object_per_case() -> None:
    done = run("codec", "--json", "--rounds", "1", "--partitions", "2", "--only", "kproto,construct,hand-struct")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["case"] for row in rows] == ["2 partitions, metadata ''", "2 partitions, metadata 'm'"]
    for row in rows:
        assert list(row) == ["bench", "case", "kproto", "construct", "hand-struct"]
        assert set(row["kproto"]) == {"decode_ns", "encode_ns", "sum_ns"}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("case", [Case(1, ""), Case(3, "m"), Case(100, "é")], ids=str)
def test_every_measured_codec_does_the_same_work(name: str, case: Case) -> None:
    codec.check(name, SUBJECTS[name](case), case)


def test_a_codec_that_does_different_work_is_refused() -> None:
    right = SUBJECTS["kproto"](Case(1, ""))
    wrong = Subject(right.decode, Call(bytes), right.values)
    with pytest.raises(BenchError, match="kproto encodes another response"):
        codec.check("kproto", wrong, Case(1, ""))
    with pytest.raises(BenchError, match="kproto decodes another request"):
        codec.check("kproto", right, Case(1, "m"))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """A bench named ``tiny`` replaces the others; it returns the rows that the test puts into this list."""
    rows: list[Row] = []
    figure = Metric(key="ms", title="ms")

    def measure(_options: object, note: Note) -> list[Row]:
        note("kfake left out: no `go`")
        return rows

    made = Bench(
        name="tiny",
        summary="nothing",
        metrics=[figure],
        peers=["kproto", "kfake"],
        floors=[Lead(case="one", metric=figure, peer="kfake", at_least=2.0)],
        add_options=lambda _parser: None,
        run=measure,
    )
    monkeypatch.setattr(bench.__main__, "BENCHES", (made,))
    return rows


@pytest.mark.parametrize(
    ("kfake_ms", "status", "outcome"), [(2.0, 0, "held"), (1.9, 1, "MISSED"), (None, 1, "NOT MEASURED")]
)
def test_check_fails_unless_every_floor_held(
    tiny: list[Row], capsys: pytest.CaptureFixture[str], kfake_ms: float | None, status: int, outcome: str
) -> None:
    figures = {"kproto": {"ms": 1.0}} | ({} if kfake_ms is None else {"kfake": {"ms": kfake_ms}})
    tiny.append(Row(bench="tiny", case="one", figures=figures))
    assert bench.__main__.main(["tiny"]) == 0
    assert f"floor {outcome}: one: ms" in capsys.readouterr().out
    assert bench.__main__.main(["tiny", "--check"]) == status
    assert bench.__main__.main(["tiny", "--check", "--only", "kproto"]) == 0


def test_json_prints_rows_on_stdout_and_missing_peers_on_stderr(
    tiny: list[Row], capsys: pytest.CaptureFixture[str]
) -> None:
    tiny.append(Row(bench="tiny", case="one", figures={"kproto": {"ms": 1.0}}))
    assert bench.__main__.main(["tiny", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"bench": "tiny", "case": "one", "kproto": {"ms": 1.0}}
    assert err.splitlines()[0] == "kfake left out: no `go`"


def test_a_codec_that_is_not_installed_is_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_case: Case) -> Subject:
        raise Missing("kio is not installed in this Python")

    monkeypatch.setitem(SUBJECTS, "kio", absent)
    notes: list[str] = []
    parser = bench.__main__.parser()
    rows = codec.run(
        parser.parse_args(["codec", "--rounds", "1", "--partitions", "1", "--only", "kproto,kio"]), notes.append
    )
    assert notes == ["kio left out: kio is not installed in this Python"]
    assert [list(row.figures) for row in rows] == [["kproto"], ["kproto"]]
