"""spark-submit runs jobs on two workers of Spark's standalone cluster, each a process, which need the wheel only.

Their kproto is the content of the wheel, not this repository; the packages of the extra are those of this environment.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bench.offsets_log import make_log
from kproto.spark.session import JAVA_OPTIONS
from tests.fixture_files import GOLDEN
from tests.requirements import need_java
from tests.spark import class_archive
from tests.spark.settings import LOCAL

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow  # starts a master, two workers and two executors
def test_spark_submit_needs_the_wheel_and_the_extra_only(tmp_path: Path) -> None:
    need_java()
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    installed = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(installed)  # our own
    made = make_log(tmp_path / "log", 20_000, groups=200)
    child = tmp_path / "child.py"
    child.write_text((ROOT / "tests/spark/cluster_child.py").read_text())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(installed), "PYSPARK_PYTHON": sys.executable}
    executors = f"{LOCAL[JAVA_OPTIONS]} {os.environ.get(class_archive.OPTIONS, '')}"
    settings = LOCAL | {"spark.executor.extraJavaOptions": executors}
    fast = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = Path(sys.executable).with_name("spark-submit")
    job = ["latest", str(GOLDEN / "logs" / "2.0.1"), "--format", "csv"]
    done = subprocess.run(
        [submit, "--master", "local-cluster[2,1,1024]", *fast, child, str(tmp_path / "log"), *job],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    line, *lines = done.stdout.splitlines()
    found = json.loads(line)
    assert sum(row["rows"] for row in found) == made
    assert {row["kproto"] for row in found} == {str(installed / "kproto" / "__init__.py")}
    assert len({row["executor"] for row in found}) == 2
    rows = list(csv.DictReader(lines))
    assert {row["topic"] for row in rows} >= {"t"}
    assert all(row["commit_ts"].endswith("Z") for row in rows)
