"""Choose the engine of a command, and start its session.

The embedded engine reads the whole input into the memory of this process. By default it runs what is on this machine
and at most `EMBEDDED_MAX_BYTES`; Spark runs everything else.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.errors import CommandLineError
from kproto.logs.locations import is_remote
from kproto.spark.engine import EMBEDDED, SPARK, use
from kproto.spark.packages import CONNECTOR, DELTA, ICEBERG, config_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from kproto.spark.packages import Package

EMBEDDED_MAX_BYTES = 64 << 20
"""The size of an input up to which `--engine auto` takes the embedded engine, with up to 1 GB of memory: `rates` of 2
million commits, 152 MB, took 2.3 GB and 11 s of CPU, `latest` 0.25 GB and 2.5 s."""
SMALL_MAX_BYTES = 32 << 20
"""The size of an input up to which Spark's start takes most of the time."""
QUIET = Path(__file__).with_name("log4j2.properties")
PACKAGES = {SPARK: ("pyspark", "pyarrow", "numpy"), EMBEDDED: ("duckdb", "pyarrow", "numpy")}
EXTRAS = {SPARK: "kproto[spark]", EMBEDDED: "kproto[logs]"}


def check_engine(options: Namespace) -> None:
    """Replace the engine `auto` by the one that runs the command, and check that its packages are installed.

    Raises:
        CommandLineError: a package is missing, or the embedded engine cannot run the command.
        NoLog, OSError: the input cannot be read.
    """
    command = options.program.of(options.job)
    needs_spark = _why_spark(options)
    if options.engine == EMBEDDED and needs_spark is not None:
        raise CommandLineError(f"{command}: --engine embedded: {needs_spark}")
    if options.engine == "auto":
        if needs_spark is not None or _size(options) > EMBEDDED_MAX_BYTES:
            options.engine = SPARK
        else:
            installed = (engine for engine in (EMBEDDED, SPARK) if find_spec(PACKAGES[engine][0]) is not None)
            options.engine = next(installed, options.program.engine)
    for package in PACKAGES[options.engine]:
        if find_spec(package) is None:
            raise CommandLineError(f"{command}: needs {package}: pip install '{EXTRAS[options.engine]}'")


def _why_spark(options: Namespace) -> str | None:
    """Return why a command needs Spark; None: it does not."""
    from kproto.spark.formats import needs_spark

    if options.job == "tables":
        return "only Spark writes tables"
    if options.master is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return "it runs in this process, not on a cluster"
    if options.jars:
        return "--jars is for Spark"
    if options.job != "versions" and needs_spark(options.dir):
        return "only Spark reads Delta and Iceberg tables"
    return None


def _size(options: Namespace) -> int:
    from kproto.spark.inputs import input_size

    return 0 if options.job == "versions" else input_size(options.dir)


def packages_of(options: Namespace) -> dict[str, Package]:
    """Return the packages that a command needs beside Spark, by the name of what needs them."""
    from kproto.logs.remote import UnknownStore
    from kproto.spark.formats import atomic_format

    of_formats = {"delta": DELTA, "iceberg": ICEBERG}
    wanted = {options.format}
    if options.job != "versions" and options.dir is not None:
        try:
            wanted.add(atomic_format(options.dir))
        except UnknownStore:
            wanted |= {*of_formats}
    found = {name: package for name, package in of_formats.items() if name in wanted}
    if options.job == "tables" and options.from_kafka is not None:
        found["kafka"] = CONNECTOR
    return found


def starting(options: Namespace) -> str:
    """Return in words what `start` does."""
    from kproto.spark.formats import ATOMIC

    if options.engine == EMBEDDED:
        return "starting the embedded engine"
    downloads = not options.jars and (options.format in ATOMIC or (options.job == "tables" and options.from_kafka))
    return "starting Spark, and downloading jars that are not there yet" if downloads else "starting Spark"


def start(options: Namespace) -> SparkSession:
    """Start the session of the engine that `check_engine` chose, for all DataFrames of this process."""
    use(options.engine)
    if options.engine == EMBEDDED:
        from kproto.spark.embedded import EmbeddedSession

        return EmbeddedSession()  # type: ignore[return-value]  # has what is used of a SparkSession
    return _start_spark(options)


def _is_small(options: Namespace) -> bool:
    from kproto.spark.formats import needs_spark

    if options.job == "versions":
        return True
    if options.dir is None or (is_remote(options.dir) and needs_spark(options.dir)):
        return False
    return _size(options) <= SMALL_MAX_BYTES


@contextmanager
def _standard_output_of_rows() -> Iterator[None]:
    """Let processes that are started write to standard error instead of standard output, to which the rows of the
    command go: Spark's launcher prints there which settings it uses for downloads, and Java keeps the output.
    """
    if sys.stdout is None:  # it is closed, and the rows go to a file
        yield
        return
    sys.stdout.flush()
    before = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


def _start_spark(options: Namespace) -> SparkSession:
    from kproto.spark.session import FOR_LARGE_INPUT, FOR_SMALL_INPUT, JAVA_OPTIONS, session

    config = {"spark.ui.showConsoleProgress": "false"}  # its bar would write into the lines of `kproto.spark.progress`
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started Java and configured how it logs
        logging = f"-Dlog4j2.configurationFile={QUIET}"
        if options.master is None and _is_small(options):
            config |= FOR_SMALL_INPUT
            config[JAVA_OPTIONS] = f"{logging} {FOR_SMALL_INPUT[JAVA_OPTIONS]}"
        else:
            config[JAVA_OPTIONS] = f"{logging} {FOR_LARGE_INPUT}"
    packages = packages_of(options)
    try:
        with _standard_output_of_rows():
            return session("kproto", master=options.master, config=config | config_of(packages.values(), options.jars))
    except Exception as error:
        if not packages or options.jars or "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        names = ", ".join(package.coordinates for package in packages.values())
        raise CommandLineError(
            f"{options.program.of(options.job)}: cannot download {names} from Maven Central: give all jars by --jars"
        ) from error
