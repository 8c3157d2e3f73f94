"""Spark's standalone cluster: a master and three workers, processes which share no directory, and logs in a store.

The log is on a server of S3. Each worker has a directory of its own, and kproto from the content of the wheel, not from
this repository; the packages of the extra are those of this environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from bench.offsets_log import make_log
from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.logs.files import find_partitions
from kproto.logs.ranges import OffsetRange
from kproto.spark.commands import JOBS
from kproto.spark.session import find_java
from tests.fixture_files import GOLDEN
from tests.oracle.processes import FAST_START
from tests.requirements import need_java
from tests.spark import class_archive
from tests.spark.scans import Command
from tests.spark.settings import LOCAL
from tests.stores.s3_server import BUCKET, bucket, environment, s3_server, upload

ROOT = Path(__file__).resolve().parents[2]
RECORDED = GOLDEN / "logs" / "2.0.1"
HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
WORKERS = 3
COMMANDS: list[list[str]] = {
    "some": [["expiry"], ["lag"], ["assignments"]],  # a scan, a scan with the ends of all topics, and rows of a view
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
def test_a_cluster_without_a_shared_directory_loses_a_worker_and_no_row(tmp_path: Path, run_embedded: Command) -> None:
    need_java()
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    installed = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(installed)  # our own
    child = tmp_path / "child.py"
    child.write_text((ROOT / "tests/spark/cluster_child.py").read_text())
    made = make_log(tmp_path / "log", 20_000, groups=200)
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
        logs = [f"s3://{BUCKET}/big", f"s3a://{BUCKET}/small", str(tmp_path), json.dumps(COMMANDS)]
        done = subprocess.run(
            [*submit, child, *logs], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        ended = [worker.poll() for worker in workers]
    assert sorted(ended, key=str) == [-9, None, None]
    printed = json.loads(done.stdout.splitlines()[-1])
    assert sum(row["rows"] for row in printed["found"]) == made
    assert {row["kproto"] for row in printed["found"]} == {str(installed / "kproto" / "__init__.py")}
    assert len({row["executor"] for row in printed["found"]}) >= 2
    (partition,) = find_partitions(str(RECORDED))
    commits = RangeReader(OffsetRange(partition, 0, None), View.COMMITS)
    assert printed["streamed"] == sum(len(decoded.rows) for decoded in commits if decoded.rows is not None) > 0
    for command in COMMANDS:
        rows = run_embedded(*command, RECORDED, "--format", "jsonl")[1]
        assert (tmp_path / command[0]).read_text() == rows, command
