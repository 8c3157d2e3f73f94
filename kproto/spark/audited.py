"""Request logs, captures and metrics of brokers as request reports: each file by a `kproto audit` in its own process.

Each file is audited by itself, wherever the engine runs: in parallel processes of this machine, or in the workers of a
cluster, which need the files at the same paths. What clients sent in an earlier file is not known in a later one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

REPORT_SUFFIX = ".json"
AUDITED = re.compile(r"\.(log(\.[\w.-]+)?|pcap|pcapng|prom|properties)(\.gz)?$")
"""Names of files in directories that are audited: also `kafka-request.log.2026-11-26-10`."""
AUDIT = (sys.executable, "-m", "kproto_server", "audit", "--quiet", "--report", "-")


def split(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the reports, and the files that are audited, each once; directories are searched for both.

    A file that is given by name is a report if it ends in .json.
    """
    found = (file for path in map(Path, paths) for file in (_inside(path) if path.is_dir() else [path]))
    files = list({file.resolve(): str(file) for file in found}.values())
    return [file for file in files if _is_report(file)], [file for file in files if not _is_report(file)]


def _inside(folder: Path) -> list[Path]:
    return sorted(
        file for file in folder.rglob("*") if file.is_file() and (_is_report(file.name) or AUDITED.search(file.name))
    )


def _is_report(name: str) -> bool:
    return name.endswith(REPORT_SUFFIX)


def audited(path: str, words: Sequence[str]) -> str:
    """Return the report of a file in JSON, or an object whose ``problem`` says in one line why there is none.

    Args:
        words: further options of `kproto audit`.
    """
    done = subprocess.run([*AUDIT, *words, path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout.decode()
    lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"kproto audit: exit code {done.returncode}"]
    return json.dumps({"problem": lines[-1].removeprefix("kproto audit: ")})


def audit_here(paths: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return what `audited` returns for files, as many at a time as this machine has processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda path: audited(path, words), paths))


def audit_on_workers(spark: SparkSession, paths: Sequence[str], words: Sequence[str]) -> DataFrame:
    """Return ``path`` and ``report``, which is what `audited` returns, of files; each is a task of its own."""
    rows = spark.createDataFrame([(path,) for path in paths], "path string")
    return rows.repartition(len(paths), "path").mapInArrow(_task(tuple(words)), "path string, report string")


def _task(words: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pydict({"path": [path], "report": [audited(path, words)]})

    return run
