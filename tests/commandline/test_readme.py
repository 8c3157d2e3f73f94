"""Every command and program of the README does what the README says, and each command of pages without a broker.

Method. The commands and programs are taken from the text and run. The commands that set up a virtual environment are
not among them: CI runs them on a fresh clone, and so does tests.spark.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
README = "README.md"
PAGES_WITHOUT_A_BROKER = ("server/INSPECT.md", "server/REPORT.md", "server/RESETS.md")
OWN_PROCESS_S = 60
BROKERLESS = {
    "kproto audit --kafka-version 2.0 ": "kproto: 1 of 6 clients would break on Kafka 4.4\n  ListOffsets v0  1x  ",
    "kproto audit --target 4.0 ": "read 2 files: ",
    "kproto log dump ": "__consumer_offsets-0/00000000000000000000.log at 325: offsets 4..4, 114 bytes, ",
    "kproto log verify ": "valid: 2 partitions, 2 segments, 37 batches, 71 records\n",
    "kproto scenario list": "expired-offsets",
    "AUTO_OFFSET_RESET=latest kproto scenario run ": "expired-offsets  0          100             500 (the end)  400 ",
}
"""Start of a command that ends by itself and needs no broker -> text in its output."""


def blocks(language: str, page: str = README) -> list[str]:
    """Return the fenced blocks of a language, without those between HTML comments (the set-up commands)."""
    text = re.sub(r"<!-- (\S+) -->.*?<!-- /\1 -->", "", (ROOT / page).read_text(), flags=re.DOTALL)
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def environment() -> dict[str, str]:
    bin_folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", "")])}


def test_the_readme_has_commands_and_programs() -> None:
    assert len(blocks("sh")) >= 3
    assert len(blocks("python")) >= 2


def test_the_example_of_a_group_equals_the_tested_file() -> None:
    assert (ROOT / "tests/examples/test_two_consumers.py").read_text() in blocks("python", "server/TESTING.md")


def commands(page: str) -> list[str]:
    return [line for block in blocks("sh", page) for line in block.splitlines()]


def test_pages_have_the_commands_without_a_broker() -> None:
    found = [command for page in PAGES_WITHOUT_A_BROKER for command in commands(page)]
    assert [begin for begin in BROKERLESS if not any(command.startswith(begin) for command in found)] == []


@pytest.mark.parametrize(
    "command",
    [command for page in PAGES_WITHOUT_A_BROKER for command in commands(page) if command.startswith(tuple(BROKERLESS))],
)
def test_each_command_without_a_broker_prints_what_it_should(command: str, tmp_path: Path) -> None:
    for folder in ("tests", "fixtures"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=OWN_PROCESS_S
    )
    assert done.returncode == 0, done.stderr
    assert (
        next(printed for begin, printed in BROKERLESS.items() if command.startswith(begin)) in done.stdout + done.stderr
    )


@pytest.mark.parametrize("command", commands(README))
def test_each_command_of_the_readme_works(command: str, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    words = ["bash", "-c", f"exec {command}"]
    if " serve " in command:
        process = subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("kproto: listening on ")
        brokers = 3 if "--brokers 3" in command else 1
        wait_until(lambda: (tmp_path / "brokers.txt").exists(), "the port file")
        assert len((tmp_path / "brokers.txt").read_text().splitlines()) == brokers
        process.send_signal(signal.SIGTERM)
        assert process.wait(OWN_PROCESS_S) == 0
    else:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=OWN_PROCESS_S
        )
        assert done.returncode == 0, done.stderr
        assert "orders-0: offset 42" in done.stdout
        assert "OffsetCommit" in done.stderr
    if "report.html" in command:
        assert "<html" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("program", blocks("python"))
def test_each_program_of_the_readme_works(program: str, tmp_path: Path) -> None:
    is_test = "def test_" in program
    file = tmp_path / ("test_readme_example.py" if is_test else "example.py")
    file.write_text(program)
    runner = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if is_test else []
    words = [sys.executable, *runner, file.name]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=OWN_PROCESS_S)
    assert done.returncode == 0, done.stdout + done.stderr
