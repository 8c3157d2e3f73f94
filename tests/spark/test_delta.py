"""Delta tables have the rows of the log after any number of runs, also after one that died."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.offsets_log import make_log
from tests.requirements import need_java


@pytest.mark.oracle
@pytest.mark.slow  # starts Spark with Delta, whose jars come from Maven Central
def test_delta_tables_grow_by_new_rows(tmp_path: Path) -> None:
    need_java()
    made = make_log(tmp_path / "log", 2_000, groups=60)
    command = [sys.executable, "-m", "tests.spark.delta_child", str(tmp_path / "log"), str(tmp_path / "tables")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    first, again, after_death = found["steps"]
    batches = first["log_batches"]
    assert first == {"commits": made, "group_metadata": 0, "log_batches": batches}
    assert set(again.values()) == {0}
    assert after_death == {
        "commits": 0,
        "group_metadata": 0,
        "log_batches": 20,
    }  # the run that died had written the commits
    assert found["tables"]["commits"] == {"rows": made + 200, "same": True, "days": 10}
    assert found["tables"]["log_batches"] == {"rows": batches + 20, "same": True, "days": 10}
