"""Delta and Iceberg tables have each row of a real broker's log once, also after runs that died or overlapped."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kproto.logs.blocks import SegmentBlocks
from kproto.spark.embedded import EmbeddedSession
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.log_input import LogInput
from tests.fixture_files import offsets_log
from tests.requirements import need_java

TABLES = ("commits", "group_metadata", "log_batches")


def state_of(log: Path, target: Path, share: float) -> dict[str, int]:
    """Copy a log as it was when its newest segments had a share of their batches; return its rows by table."""
    shutil.copytree(log, target)
    for folder in (path for path in target.iterdir() if path.is_dir()):
        newest = max(folder.glob("*.log"))
        base_offset = int(newest.stem)
        with newest.open("rb") as file:
            blocks = SegmentBlocks(file, newest.name, base_offset=base_offset, is_newest=True)
            ends = [block.position + end for block in blocks for end in block.ends()]
        with newest.open("r+b") as file:
            file.truncate(ends[round(share * len(ends)) - 1])
    session: Any = EmbeddedSession()
    with using(EMBEDDED):
        counts = {name: LogInput(session, str(target)).table(name).count() for name in TABLES}
    session.stop()
    return counts


@pytest.mark.oracle
@pytest.mark.slow  # starts Spark with Delta and Iceberg, whose jars come from Maven Central
def test_tables_grow_by_new_rows(tmp_path: Path) -> None:
    need_java()
    states = [tmp_path / f"state{number}" for number in range(2)]
    log = offsets_log("several-partitions", "2.8.2")
    first, last = (state_of(log, path, share) for path, share in zip(states, (0.5, 1), strict=True))
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "tests.spark.tables_child",
        tmp_path / "log",
        tmp_path / "tables",
        *states,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert first["commits"] < last["commits"] == 13
    for found in json.loads(done.stdout.splitlines()[-1]).values():
        other, error = found["overlapping"]
        # The run that died had written the other tables.
        assert other == {name: last[name] - first[name] for name in TABLES} | {"log_batches": last["log_batches"]}
        assert error == "another `tables` wrote there meanwhile: run it again for the rest"
        for name in ("commits", "log_batches"):
            assert found["tables"][name] == {"rows": last[name], "same": True}
        assert found["jobs"] == [True, True, True]
        assert found["compacted"] == [True, True]
        assert found["again"] == dict.fromkeys(TABLES, 0)
        assert found["waiting"] == [0, 7]
        assert found["grown"] == [["None"], 1, True, 16]
