"""An archive of the classes that Spark loads (class-data sharing): with it, a session starts in half of the time.

Every command of ``python -m kproto.spark`` and every session of a test starts a JVM, which loads 20,000 classes. The
archive is written once for a release of PySpark and of Java, by a short job, and all JVMs after it use it through
``SPARK_SUBMIT_OPTS``.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from importlib.metadata import version
from typing import Any

from kproto.spark.session import NoJava, find_java
from tests.oracle.class_archives import QUIET
from tests.oracle.releases import CACHE

OPTIONS = "SPARK_SUBMIT_OPTS"


def use() -> None:
    """Have the JVMs of this process, and of those that it starts, use the archive; write it if there is none."""
    try:
        java = find_java()
    except NoJava:  # the tests that need it say so
        return
    release = re.search(r'^JAVA_VERSION="(.*)"', (java / "release").read_text(), re.MULTILINE)
    assert release is not None
    folder = CACHE / "spark"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"pyspark-{version('pyspark')}-java-{release[1]}.jsa"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            part = archive.with_suffix(".part")
            write = " ".join([*QUIET, f"-XX:ArchiveClassesAtExit={part}"])
            subprocess.run([sys.executable, "-m", __name__], env={**os.environ, OPTIONS: write}, check=True)
            part.rename(archive)
    os.environ[OPTIONS] = " ".join([*QUIET, f"-XX:SharedArchiveFile={archive}"])


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
