"""An archive of the classes that Spark loads (class-data sharing): a session with it takes 8 instead of 13 s of CPU.

Every command of ``python -m kproto.spark`` and every session of a test starts a JVM, which loads 20,000 classes. JVMs
use the archive through ``SPARK_SUBMIT_OPTS``. Java ignores an archive whose jars have moved or changed, so there is one
for each directory of jars. Writing it takes 43 s of CPU, more than one run of the tests saves: the second run in an
environment writes it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark

from kproto.spark.session import NoJava, find_java
from tests.oracle.class_archives import QUIET
from tests.oracle.releases import CACHE

OPTIONS = "SPARK_SUBMIT_OPTS"


ARCHIVES_MAX = 2
"""The newest archives are kept: each has 170 MB."""


def use() -> None:
    """Have the JVMs of this process, and of those that it starts, use the archive, if there is one."""
    try:
        java = find_java()
    except NoJava:  # the tests that need it say so
        return
    folder = CACHE / "spark"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{_digest(java)}.jsa"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists() and not _is_wanted(archive.with_suffix(".run")):
            return
        if not archive.exists():
            _write(archive)
    os.environ[OPTIONS] = " ".join([*QUIET, f"-XX:SharedArchiveFile={archive}"])


def _digest(java: Path) -> str:
    """Return a text that changes whenever Java would refuse the archive."""
    release = (java / "release").read_bytes()
    jars = sorted((Path(pyspark.__file__).parent / "jars").iterdir())
    files = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
    return hashlib.sha256(release + repr(files).encode()).hexdigest()[:16]


def _is_wanted(seen: Path) -> bool:
    """Return whether an earlier run of tests, of which this is no process, would have used the archive."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    is_wanted = seen.exists() and seen.read_text() != run
    seen.write_text(run)
    return is_wanted


def _write(archive: Path) -> None:
    for old in sorted(archive.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime)[: 1 - ARCHIVES_MAX]:
        old.unlink()
    part = archive.with_suffix(".part")
    write = " ".join([*QUIET, f"-XX:ArchiveClassesAtExit={part}"])
    subprocess.run([sys.executable, "-m", __name__], env={**os.environ, OPTIONS: write}, check=True)
    part.rename(archive)


def main() -> None:
    """Load the classes: read a log, shuffle, and write and read a table."""
    import tempfile

    from kproto.spark import session
    from tests.fixture_files import golden_log
    from tests.spark.settings import LOCAL

    spark = session("classes", master="local[2]", config=LOCAL)
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.read.format("kproto").load(str(golden_log("4.4.0")))
        rows.groupBy("topic").count().orderBy("topic").write.parquet(f"{folder}/table")
        spark.read.parquet(f"{folder}/table").collect()
    gateway: Any = spark.sparkContext._gateway
    java = gateway.proc
    spark.stop()
    java.stdin.close()  # Java ends with its input, and then writes the archive
    java.wait()


if __name__ == "__main__":
    main()
