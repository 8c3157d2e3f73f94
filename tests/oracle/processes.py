"""The processes of a cluster, each with a folder for its settings, output and pid. Linux only (/proc)."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.oracle import class_archives
from tests.oracle.releases import classpath

JAVA = str(Path(os.environ["JAVA_HOME"]) / "bin/java") if os.environ.get("JAVA_HOME") else "java"
TERMINATE = ((signal.SIGTERM, 60.0), (signal.SIGKILL, 5.0))
"""A broker that writes its archive of classes takes some seconds more."""
KILL = ((signal.SIGKILL, 5.0),)


# Old releases access the JDK by reflection; new releases ignore the flags.
JVM = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:-UsePerfData",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.lang", "java.nio", "java.util", "sun.nio.ch")),
)
FAST_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Most of the CPU of a Java that runs for seconds is spent on loading classes: the verifier has a tenth of it."""


def java(jars: Path, conf: Path, level: str, heap: str, archive: Sequence[str] | None = None) -> list[str]:
    """Return the start of a command that runs a class of these jars; write its log configuration to `conf`.

    ``archive``: flags of the archive of classes, if others than `class_archives.use` returns.
    """
    flags = os.environ.get("KAFKA_JVM", FAST_START).split()
    shared = class_archives.use(jars) if archive is None else archive
    return [JAVA, f"-Xmx{heap}", *JVM, *flags, *shared, *_logging(conf, level), "-cp", classpath(jars)]


def spawn(folder: Path, command: list[str]) -> "subprocess.Popen[bytes]":
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "out.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    (folder / "pid").write_text(f"{process.pid} {_start_time(str(process.pid))}")
    return process


def alive(process: Path) -> int | None:
    """Return the pid of the process that was started in this folder, or None if it has ended."""
    try:
        pid, start_time = (process / "pid").read_text().split()
        dead = _stat(pid)[0] == "Z"
    except (OSError, ValueError):
        return None
    return int(pid) if not dead and start_time == _start_time(pid) else None


def end(process: Path, signals: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Send the signals in turn until the process has ended, with a time limit for each; return whether the first one
    was enough."""
    pid = alive(process)
    sent = 0
    for number_of_signal, limit_s in signals:
        limit = time.monotonic() + limit_s
        if pid and alive(process):
            os.kill(pid, number_of_signal)
            sent += 1
        while alive(process) and time.monotonic() < limit:
            time.sleep(0.05)
    (process / "pid").unlink(missing_ok=True)
    return sent == 1


def _logging(folder: Path, level: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j.properties").write_text(
        f"log4j.rootLogger={level}, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.target=System.err\nlog4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
    )
    (folder / "log4j2.properties").write_text(
        f"rootLogger.level={level}\nrootLogger.appenderRef.out.ref=out\nappender.out.type=Console\n"
        "appender.out.name=out\nappender.out.target=SYSTEM_ERR\nappender.out.layout.type=PatternLayout\n"
        "appender.out.layout.pattern=[%d] %p %m (%c)%n\n"
    )
    return [
        f"-Dlog4j.configuration=file:{folder}/log4j.properties",
        f"-Dlog4j2.configurationFile={folder}/log4j2.properties",
    ]


def log_level(default: str = "INFO") -> str:
    return os.environ.get("KAFKA_LOG_LEVEL", default)


def heap_size() -> str:
    return os.environ.get("KAFKA_HEAP", "512m")


def _stat(pid: str) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _start_time(pid: str) -> str | None:
    """Return the kernel's start time of a process, which distinguishes a reused pid."""
    try:
        return _stat(pid)[19]
    except OSError:
        return None
