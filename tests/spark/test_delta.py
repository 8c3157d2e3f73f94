"""Delta tables have each row of the log once after any number of runs, also if one died or two overlapped."""

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
    made = make_log(tmp_path / "log", 2_000, groups=60, hours=30)
    command = [sys.executable, "-m", "tests.spark.delta_child", str(tmp_path / "log"), str(tmp_path / "tables")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    first, after_death = found["steps"]
    batches = first["log_batches"]
    assert first == {"commits": made, "group_metadata": 0, "log_batches": batches}
    assert after_death == {
        "commits": 0,
        "group_metadata": 0,
        "log_batches": 20,
    }  # the run that died had written the commits
    other, error = found["overlapping"]
    assert other == {"commits": 200, "group_metadata": 0, "log_batches": 20}
    assert error == "another `tables` wrote there meanwhile: run it again for the rest"
    assert found["tables"]["commits"] == {"rows": made + 400, "same": True, "days": 2}
    assert found["tables"]["log_batches"] == {"rows": batches + 40, "same": True, "days": 2}
    assert found["jobs"] == [True, True]
