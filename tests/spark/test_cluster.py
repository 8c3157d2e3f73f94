"""Spark's standalone cluster: a master and three workers, processes which share no directory, and logs in a store.

The logs and tables are on a server of S3. A worker is killed in a batch job, and a driver in a stream. Each worker has
a directory of its own, and kproto from the content of the wheel, not from this repository; the packages of the extra
are those of this environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from bench.offsets_log import make_log
from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.logs.files import find_partitions
from kproto.logs.ranges import OffsetRange, RangeBlocks
from kproto.spark.commands import JOBS
from kproto.spark.session import find_java
from tests.fixture_files import GOLDEN
from tests.oracle.processes import FAST_START
from tests.requirements import need_java
from tests.spark import class_archive
from tests.spark.scans import Command
from tests.spark.settings import LOCAL
from tests.stores.s3_server import BUCKET, bucket, configure, environment, s3_server, upload

ROOT = Path(__file__).resolve().parents[2]
RECORDED = GOLDEN / "logs" / "2.0.1"
HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
WORKERS = 3
COMMANDS: list[list[str]] = {
    "some": [["lag"], ["assignments"]],  # a scan with the ends of all topics, and rows of a view
    "all": [[job, *(["--retention-minutes", "1440"] if job == "what-if" else [])] for job in JOBS],
}[os.environ.get("KPROTO_CLUSTER_JOBS", "some")]
"""The jobs that run on the cluster; `tests/stores` runs all of them in one process on a log in a store."""


@contextmanager
def daemon(directory: Path, variables: dict[str, str], name: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a master or a worker."""
    options = [*FAST_START.split(), *os.environ.get(class_archive.OPTIONS, "").split(), "-Xmx128m"]
    java = [str(find_java() / "bin" / "java"), *options, "-cp", f"{HOME / 'jars'}/*", f"org.apache.spark.deploy.{name}"]
    command = [*java, "--host", HOST, "--port", "0", "--webui-port", "0", *words]
    directory.mkdir()
    with subprocess.Popen(command, cwd=directory, env=variables, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def logged(process: subprocess.Popen[str], pattern: str) -> str:
    """Wait for a line of a daemon's log; return what the pattern finds in it."""
    assert process.stderr is not None, "it was asked for"
    seen = []
    for line in process.stderr:
        seen.append(line)
        if found := re.search(pattern, line):
            return found[1]
    pytest.fail("".join(seen[-30:]))


@pytest.mark.slow  # starts a master, three workers and three executors
def test_a_cluster_without_a_shared_directory_loses_a_worker_a_driver_and_no_row(
    tmp_path: Path, run_embedded: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_java()
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    installed = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(installed)  # our own
    child = tmp_path / "child.py"
    child.write_text((ROOT / "tests/spark/cluster_child.py").read_text())
    made, streamed = make_log(tmp_path / "log", 20_000, groups=200), commits_of(RECORDED)
    executors = f"{FAST_START} {os.environ.get(class_archive.OPTIONS, '')}"
    settings = LOCAL | {"spark.executor.extraJavaOptions": executors, "spark.executor.memory": "512m"}
    settings |= {"spark.ui.enabled": "false"}
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {"PYTHONPATH": str(installed), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(HOME)}
    variables |= {"JAVA_HOME": str(find_java()), "SPARK_LOCAL_IP": HOST, "SPARK_SCALA_VERSION": "2.13"}
    with ExitStack() as stack:
        port = stack.enter_context(s3_server())
        files = bucket(port)
        files.mkdir(BUCKET)
        upload(files, tmp_path / "log", f"{BUCKET}/big")
        upload(files, RECORDED, f"{BUCKET}/small")
        upload(files, first_half(RECORDED, tmp_path / "half"), f"{BUCKET}/half")
        variables |= environment(port)
        master = stack.enter_context(daemon(tmp_path / "master", variables, "master.Master"))
        address = logged(master, rf"(spark://{HOST}:\d+)")
        one = ("--cores", "1", "--memory", "600m", address)
        workers = [
            stack.enter_context(daemon(folder, variables, "worker.Worker", "--work-dir", str(folder), *one))
            for folder in (tmp_path / f"worker{number}" for number in range(WORKERS))
        ]
        for worker in workers:
            logged(worker, "(Successfully registered) with master")
        submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", address]
        submit += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        small, half, tables = f"s3a://{BUCKET}/small", f"s3://{BUCKET}/half", f"s3://{BUCKET}/tables"
        common = [small, str(tmp_path), str(len(streamed) // 3)]
        of_driver: dict[str, Any] = {"cwd": tmp_path, "env": variables, "capture_output": True, "text": True}
        drivers = [
            subprocess.run([*submit, child, *words], check=False, **of_driver)
            for words in (
                ["first", f"s3://{BUCKET}/big", *common],
                ["second", *common, half, tables, json.dumps(COMMANDS)],
            )
        ]
        assert [driver.returncode for driver in drivers] == [-signal.SIGKILL, 0], drivers[1].stderr[-3000:]
        ended = [worker.poll() for worker in workers]
        configure(monkeypatch, environment(port))
        for job in ("latest", "rates"):
            of_log = run_embedded(job, RECORDED, "--format", "jsonl")
            assert run_embedded(job, tables, "--format", "jsonl")[:2] == (0, of_log[1])
    assert sorted(ended, key=str) == [-9, None, None]
    found, lines = (json.loads(driver.stdout.splitlines()[-1]) for driver in drivers)
    assert sum(row["rows"] for row in found) == made
    assert {row["kproto"] for row in found} == {str(installed / "kproto" / "__init__.py")}
    assert len({row["executor"] for row in found}) >= 2
    batches = [json.loads(line) for line in (tmp_path / "streamed").read_text().splitlines()]
    assert [number for number, _ in batches][:3] == [0, 1, 1], "the second driver repeats what the first had not ended"
    assert batches[1] == batches[2]
    assert [offset for _, offsets in dict(batches).items() for offset in offsets] == streamed
    assert lines[2][-3:] == [f"{name}: 0 rows added" for name in ("commits", "group_metadata", "log_batches")]
    in_runs = [int(match[1]) for run in lines for line in run if (match := re.match(r"commits: (\d+) row", line))]
    assert sum(in_runs) == len(streamed)
    assert min(in_runs[:2]) > 0
    assert lines[1][-3:] == [f"{name}: 1 file fewer" for name in ("commits", "group_metadata", "log_batches")]
    for command in COMMANDS:
        rows = run_embedded(*command, RECORDED, "--format", "jsonl")[1]
        assert (tmp_path / command[0]).read_text() == rows, command


def first_half(log: Path, copy: Path) -> Path:
    """Copy a log of one partition without the later half of its batches; return the copy."""
    shutil.copytree(log, copy)
    (partition,) = find_partitions(str(copy))
    (segment,) = partition.segments()
    (block,) = RangeBlocks(OffsetRange(partition, 0, None))
    os.truncate(str(segment.path), block.starts[len(block.starts) // 2])
    return copy


def commits_of(log: Path) -> list[int]:
    """Return the offsets of the commits in a log of one partition."""
    (partition,) = find_partitions(str(log))
    commits = RangeReader(OffsetRange(partition, 0, None), View.COMMITS)
    return [
        offset for decoded in commits if decoded.rows is not None for offset in decoded.rows["log_offset"].to_pylist()
    ]
