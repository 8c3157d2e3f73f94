"""`kproto log` as a command: output, exit codes, one line for each mistake, and memory on a large log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kproto.records.compression import Compression
from kproto.records.record_batch import build_record_batch
from kproto.records.segment_files import segment_name
from kproto_server.commandline import cli
from kproto_server.commandline import log as log_commands
from tests.commandline.commands import KPROTO, LIMIT_S
from tests.fixture_files import golden_log
from tests.inspect.logs import FIRST_SEGMENT, OFFSETS, commit, copy_of, partition_folder

GOLDEN = str(golden_log("4.4.0"))
LARGE_BYTES = 50_000_000
MEMORY_MAX_KB = 96 * 1024
"""An interpreter with this program and a few blocks; half of it is in use before the first byte is read."""

PEAK = """
import resource, sys
unit = 1024 if sys.platform == "darwin" else 1
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // unit))
"""


def outcome(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["log", *words])
    out, err = capsys.readouterr()
    return code, out, err


class TestOutcomes:
    def test_a_valid_log(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert outcome(capsys, "verify", GOLDEN) == (0, "valid: 2 partitions, 2 segments, 37 batches, 71 records\n", "")

    def test_notes_go_to_standard_error(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        with open(folder / FIRST_SEGMENT, "ab") as file:
            file.write(bytes(100))
        code, out, err = outcome(capsys, "verify", str(folder))
        assert (code, out) == (0, "valid: 1 partition, 1 segment, 29 batches, 63 records\n")
        assert (
            err == f"note: torn tail: {OFFSETS}/{FIRST_SEGMENT} at byte 5690: 100 bytes zeros that were never written\n"
        )
        code, _, err = outcome(capsys, "dump", str(folder))
        assert code == 0
        assert (
            err == f"note: torn tail: {OFFSETS}/{FIRST_SEGMENT} at byte 5690: 100 bytes zeros that were never written\n"
        )

    @pytest.mark.parametrize("command", ["verify", "dump"])
    def test_damage_is_one_line_with_its_position(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
    ) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        data = bytearray((folder / FIRST_SEGMENT).read_bytes())
        data[400] ^= 1
        (folder / FIRST_SEGMENT).write_bytes(data)
        code, _, err = outcome(capsys, command, str(folder))
        assert code == 1
        assert err.startswith(f"kproto log {command}: {OFFSETS}/{FIRST_SEGMENT} at byte 325, offset 4: BadChecksum: ")
        assert err.count("\n") == 1

    def test_options_may_stand_before_and_after_the_directory(self, capsys: pytest.CaptureFixture[str]) -> None:
        after = outcome(capsys, "dump", GOLDEN, "--format", "jsonl", "--partition=0")
        before = outcome(capsys, "dump", "--format=jsonl", "--partition", "0", GOLDEN)
        assert after == before
        assert after[0] == 0
        assert {json.loads(line)["partition"] for line in after[1].splitlines()} == {0}

    def test_one_partition_of_several(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        for partition in (2, 10):
            partition_folder(tmp_path, {0: build_record_batch([commit(0)])}, partition=partition)
        rows = [json.loads(line) for line in outcome(capsys, "dump", str(tmp_path), "--format=jsonl")[1].splitlines()]
        assert [row["partition"] for row in rows] == [2, 2, 10, 10]
        out = outcome(capsys, "dump", str(tmp_path), "--partition", "10")[1]
        assert out.startswith("__consumer_offsets-10/")
        assert out.count("\n") == 2

    def test_a_segment_outside_of_a_partition_directory(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        file = tmp_path / segment_name(0)
        file.write_bytes(build_record_batch([commit(0)]))
        assert "__consumer_offsets-?/" in outcome(capsys, "dump", str(file))[1]
        assert outcome(capsys, "verify", str(tmp_path))[0] == 0

    def test_the_number_of_partitions(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, err = outcome(capsys, "verify", GOLDEN, "--partitions", "50")
        assert code == 1
        assert "offset 0: 'v2' belongs to partition 8 of 50" in err

    def test_a_closed_pipe_is_no_error(self) -> None:
        with subprocess.Popen(
            [*KPROTO, "log", "dump", GOLDEN], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(LIMIT_S) == 141

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
    def test_a_full_disk_is_an_error(self) -> None:
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [*KPROTO, "log", "dump", GOLDEN], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S
            )
        assert (done.returncode, done.stderr) == (2, "kproto log dump: can't write: No space left on device\n")

    def test_a_closed_standard_output_is_an_error(self) -> None:
        words = ["bash", "-c", 'exec "$@" >&-', "bash", *KPROTO, "log", "dump", GOLDEN]
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        assert (done.returncode, done.stderr) == (2, "kproto log dump: can't write: standard output is closed\n")


NAMES = "use dump, verify, export, collect, report, retention or watch, see kproto log --help"


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ([], f"kproto log: no command given: {NAMES}"),
            (["show"], f"kproto log: no command 'show': {NAMES}"),
            (["dump"], "kproto log dump: no log given: write kproto log dump DIR"),
            (["verify"], "kproto log verify: no log given: write kproto log verify DIR"),
            (["dump", GOLDEN, "more"], "kproto log dump: unexpected argument 'more': give one directory"),
            (["dump", "/no/such"], "kproto log dump: /no/such: no such file or directory"),
            (["verify", "/no/such"], "kproto log verify: /no/such: no such file or directory"),
            (["dump", GOLDEN, "--format", "xml"], "kproto log dump: --format can't be 'xml': use text or jsonl"),
            (["dump", GOLDEN, "--format"], "kproto log dump: --format needs a value: write --format FORMAT"),
            (["dump", GOLDEN, "--partition", "7"], f"kproto log dump: {GOLDEN!r} holds no partition 7"),
            (
                ["dump", "--partition", "x", GOLDEN],
                "kproto log dump: --partition can't be 'x': give a whole number from 0 to 2147483647",
            ),
            (
                ["verify", GOLDEN, "--partitions", "0"],
                "kproto log verify: --partitions can't be '0': give a whole number from 1 to 2147483647",
            ),
            (
                ["verify", GOLDEN, "--partition", "1"],
                "kproto log verify: no option '--partition': did you mean --partitions? "
                "(kproto log verify --help lists all)",
            ),
            (
                ["dump", f"{GOLDEN}/meta.properties"],
                f"kproto log dump: {GOLDEN}/meta.properties: "
                "not a segment: the name of a segment is 20 digits and .log",
            ),
        ],
    )
    def test_one_line_and_exit_code_2(self, capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
        assert outcome(capsys, *words) == (2, "", f"{line}\n")

    def test_a_directory_without_a_log(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        line = (
            f"{tmp_path}: no segments and no directories like __consumer_offsets-0; it holds no partition directories"
        )
        assert outcome(capsys, "verify", str(tmp_path)) == (2, "", f"kproto log verify: {line}\n")

    @pytest.mark.parametrize("command", ["dump", "verify"])
    def test_a_compression_whose_package_is_missing(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        data = build_record_batch([commit(0)], partition_leader_epoch=0, compression=Compression.SNAPPY)
        folder = partition_folder(tmp_path, {0: data})
        monkeypatch.setitem(sys.modules, "cramjam", None)
        code, _, err = outcome(capsys, command, str(folder))
        assert code == 2
        line = "snappy compression needs the package cramjam (pip install cramjam)"
        assert err == f"kproto log {command}: {line}\n"

    def test_a_segment_that_cannot_be_read(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        folder = partition_folder(tmp_path, {})
        (folder / FIRST_SEGMENT).mkdir()
        line = f"can't read {str(folder / FIRST_SEGMENT)!r}: Is a directory"
        assert outcome(capsys, "dump", str(folder)) == (2, "", f"kproto log dump: {line}\n")
        assert outcome(capsys, "verify", str(folder)) == (2, "", f"kproto log verify: {line}\n")


class TestHelp:
    @pytest.mark.parametrize("words", [["log", "--help"], ["log", "help"], ["help", "log"]])
    def test_of_kproto_log(self, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
        assert cli.main(words) == 0
        assert capsys.readouterr().out == log_commands.HELP

    @pytest.mark.parametrize("name", ["dump", "verify", "export"])
    def test_of_each_command(self, capsys: pytest.CaptureFixture[str], name: str) -> None:
        for words in (["log", name, "--help"], ["help", "log", name]):
            assert cli.main(words) == 0
            text = capsys.readouterr().out
            assert text.startswith(f"usage: kproto log {name} [options] DIR\n")
            assert all(option in text for option in log_commands.COMMANDS[name].options)
            assert max(map(len, text.splitlines())) <= 110


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "dump"])
def test_memory_does_not_grow_with_the_log(tmp_path: Path, command: str) -> None:
    """50 MB in five segments; takes seconds because every byte is read."""
    folder = partition_folder(tmp_path, {})
    offset = 0
    for _ in range(5):
        with open(folder / segment_name(offset), "wb") as file:
            while file.tell() < LARGE_BYTES // 5:
                records = [commit(offset + index, metadata="m" * 4000) for index in range(10)]
                file.write(build_record_batch(records, partition_leader_epoch=0))
                offset += 10
    words = [*KPROTO, "log", command, str(folder)]
    program = f"import subprocess\nsubprocess.run({words!r}, check=True)\n{PEAK}"
    with open(os.devnull, "w") as nowhere:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=nowhere, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S
        )
    assert done.returncode == 0, done.stderr
    *notes, peak = done.stderr.splitlines()
    assert int(peak) < MEMORY_MAX_KB
    assert len(notes) <= 1
