"""`kproto run` runs a command beside a broker, passes signals and the exit code on, and writes the report.

Method. Each test starts `kproto run` as a process.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commandline.commands import KPROTO, LIMIT_S, OLD_CLIENT, is_running, kproto, kproto_started, line_of, python
from tests.waiting import wait_until

SHOW_ADDRESS = python("import os; print(os.environ['KAFKA_BOOTSTRAP_SERVERS'])")


class TestCommand:
    def test_the_command_finds_the_settings_of_tls_and_sasl(self) -> None:
        program = "import os; print(*(name for name in sorted(os.environ) if name.startswith('KAFKA_')))"
        done = kproto("run", "--quiet", "--tls", "auto", "--sasl", "PLAIN", "--", *python(program))
        sasl = ["JAAS_CONFIG", "MECHANISM", "PASSWORD", "USERNAME"]
        ssl = ["CA_LOCATION", "TRUSTSTORE_LOCATION", "TRUSTSTORE_PASSWORD", "TRUSTSTORE_TYPE"]
        names = [
            *(f"KAFKA_SASL_{name}" for name in sasl),
            "KAFKA_SECURITY_PROTOCOL",
            *(f"KAFKA_SSL_{name}" for name in ssl),
        ]
        assert done.stdout.split() == ["KAFKA_BOOTSTRAP_SERVERS", *names]

    def test_the_command_has_standard_output_alone(self) -> None:
        done = kproto("run", "--", *python("print('mine')"))
        assert (done.returncode, done.stdout) == (0, "mine\n")
        assert done.stderr.startswith("kproto: no client connected\n")

    def test_the_command_has_standard_input(self) -> None:
        program = "import sys; print(sys.stdin.read().upper())"
        done = subprocess.run(
            [*KPROTO, "run", "--", *python(program)],
            input="typed",
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        assert done.stdout == "TYPED\n"

    def test_the_command_receives_the_address_of_a_free_port_on_loopback(self) -> None:
        found = [kproto("run", "--", *SHOW_ADDRESS).stdout for _ in range(2)]
        assert all(re.fullmatch(r"127\.0\.0\.1:[0-9]+\n", line) for line in found)

    def test_the_command_receives_the_addresses_of_all_brokers_and_each_responds(self) -> None:
        program = """
import os, socket
for address in os.environ["KAFKA_BOOTSTRAP_SERVERS"].split(","):
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))  # ApiVersions v0
        print(connection.recv(8)[4:].hex())
"""
        done = kproto("run", "--brokers", "3", "--", *python(program))
        assert done.stdout.split() == ["00000001"] * 3

    def test_the_port_can_be_fixed_for_a_command_that_cannot_receive_it(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        assert kproto("run", "--port", str(port), "--", *SHOW_ADDRESS).stdout == f"127.0.0.1:{port}\n"

    @pytest.mark.parametrize("exit_code", [0, 1, 3, 255])
    def test_the_exit_code_is_the_commands(self, exit_code: int) -> None:
        assert kproto("run", "--", *python(f"raise SystemExit({exit_code})")).returncode == exit_code

    def test_a_command_that_a_signal_ends_gives_128_and_the_signals_number(self) -> None:
        done = kproto("run", "--", *python("import os; os.kill(os.getpid(), 9)"))
        assert done.returncode == 128 + 9

    def test_a_command_that_does_not_exist_gives_127(self) -> None:
        done = kproto("run", "--", "no-such-command-anywhere")
        assert done.returncode == 127
        assert done.stderr == "kproto run: no command 'no-such-command-anywhere': check its name and PATH\n"

    def test_a_command_that_is_not_executable_gives_126(self, tmp_path: Path) -> None:
        script = tmp_path / "script"
        script.write_text("echo no\n")
        done = kproto("run", "--", str(script))
        assert done.returncode == 126
        assert done.stderr == f"kproto run: can't run {str(script)!r}: Permission denied\n"


class TestSignals:
    PROGRAM = """
import signal, sys
awaited = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # a signal between two calls of pause() would be missed
print("ready", flush=True)
count = 0
while signal.sigwait(awaited) == signal.SIGINT:
    count += 1
    print("interrupted", flush=True)
print("interrupts:", count, flush=True)
sys.exit(7)
"""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
    def test_signals_reach_the_command_and_the_report_is_written(self, number: signal.Signals) -> None:
        program = f"""
import signal, sys
awaited = {{{number}}}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
print("ready", flush=True)
signal.sigwait(awaited)
sys.exit(7)
"""
        with kproto_started("run", "--", *python(program)) as process:
            assert line_of(process) == "ready"
            process.send_signal(number)
            _, err = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 7
        assert err.startswith("kproto: no client connected\n")

    def test_the_exit_code_names_the_signal_that_ended_the_command(self) -> None:
        program = "import signal; print('ready', flush=True); signal.pause()"
        with kproto_started("run", "--", *python(program)) as process:
            assert line_of(process) == "ready"
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=LIMIT_S)
        assert process.returncode == 128 + signal.SIGTERM

    def test_the_command_receives_a_signal_of_the_keyboard_once(self) -> None:
        """The terminal sends Ctrl-C to both processes; kproto must not send it to the command again.

        kproto passes signals on in order, so that the count at SIGTERM includes every SIGINT.
        """
        with on_terminal("run", "--", *python(self.PROGRAM)) as (process_id, terminal):
            assert b"ready" in read(terminal, b"ready")
            os.write(terminal, b"\x03")
            assert b"interrupted" in read(terminal, b"interrupted")
            os.kill(process_id, signal.SIGTERM)
            assert b"interrupts: 1\r\n" in read(terminal)
            _, status = os.waitpid(process_id, 0)
        assert os.waitstatus_to_exitcode(status) == 7

    def test_the_command_ignores_the_signals_that_kproto_ignores(self) -> None:
        program = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
        command = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *KPROTO, "run", "--", *python(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
        assert done.stdout == "True\n"


class TestEnd:
    """Nothing that `kproto run` has started stays behind when it is killed."""

    GRANDCHILD = """
import subprocess, sys
sleeper = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
child = subprocess.Popen([sys.executable, "-c", sleeper])
print(child.pid, flush=True)
child.wait()
"""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
    def test_the_command_and_what_it_has_started_end_too(self, number: signal.Signals) -> None:
        """Method. The command has a child that ignores SIGTERM."""
        with kproto_started("run", "--", *python(self.GRANDCHILD)) as process:
            pid = int(next(line for line in (line_of(process), line_of(process)) if line != "up"))
            command = next(child for child in children_of(process.pid) if pid in children_of(child))
            watcher = next(child for child in children_of(process.pid) if child != command)
            process.send_signal(number)
            process.wait(LIMIT_S)
            for one in (pid, command, watcher):
                wait_until(lambda one=one: not is_running(one), f"the end of process {one}")  # type: ignore[misc]

    @pytest.mark.parametrize("moment", ["before the command", "after it has begun"])
    def test_the_command_ends_with_kproto_from_its_first_moment_on(self, moment: str) -> None:
        """Method. kproto is killed by the command's process before exec, or by itself when `Popen` has returned.

        Both processes have standard output, which ends when the watcher has ended the command.
        """
        program = f"""
import os, signal, subprocess, sys
from kproto_server.commandline.cli import main
from kproto_server.process_tree import Watcher

class Popen(subprocess.Popen):
    def __init__(self, *words, **options):
        watch = options.get("preexec_fn")
        if watch is not None and "before" in {moment!r}:
            options["preexec_fn"] = lambda: (os.kill(os.getppid(), signal.SIGKILL), watch())
        super().__init__(*words, **options)
        if watch is not None:
            os.kill(os.getpid(), signal.SIGKILL)

subprocess.Popen = Popen
main(["run", "--", "sleep", "{LIMIT_S * 3:.0f}"])
"""
        done = subprocess.run(python(program), stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
        assert done.returncode == -signal.SIGKILL

    def test_a_command_that_ends_leaves_its_daemons(self) -> None:
        """A daemon outlives its parent on purpose."""
        program = """
import subprocess, sys
sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
print(subprocess.Popen(sleeper, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True).pid)
"""
        done = kproto("run", "--", *python(program))
        pid = int(done.stdout)
        assert is_running(pid)
        os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True)
    return [int(row.split()[0]) for row in done.stdout.splitlines() if int(row.split()[1]) == pid]


@contextmanager
def on_terminal(*words: str, env: Mapping[str, str] | None = None) -> Iterator[tuple[int, int]]:
    """Run kproto in the foreground of a terminal of its own; yield its process id and the terminal's other end."""
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.execve(sys.executable, [*KPROTO, *words], os.environ | dict(env or {}))
    try:
        yield process_id, terminal
    finally:
        os.close(terminal)  # SIGHUP ends the processes that still run


def read(terminal: int, wanted: bytes | None = None) -> bytes:
    """Read until these bytes have come, or until all writers have closed the terminal."""
    seen = b""
    while wanted is None or wanted not in seen:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # Linux: EIO
            break
    return seen


class TestReport:
    def test_the_report_lists_the_versions_that_would_break(self) -> None:
        done = kproto("run", "--target", "4.0", "--", *OLD_CLIENT)
        assert (done.returncode, done.stdout) == (0, "2\n")
        assert done.stderr == (
            "kproto: 1 of 1 client would break on Kafka 4.0\n"
            "  ListOffsets v0  1x  last served by 3.9; 4.0 serves v1-v10  consumer-1\n"
            "  consumer-1: Java client: use 2.1.0 or newer\n"
            "  Kafka 4.0.0 does not serve JoinGroup v0 and v1 (--target 4.0.0)\n"
            "1 client sent 2 requests:\n"
            "  consumer-1: 2 requests\n"
            "    ListOffsets v0, Metadata v0\n"
        )

    def test_fail_on_protocol_error_sets_the_exit_code(self, tmp_path: Path) -> None:
        report = tmp_path / "r.json"
        program = """
import os, socket
host, _, port = os.environ["KAFKA_BOOTSTRAP_SERVERS"].rpartition(":")
with socket.create_connection((host, int(port))) as connection:
    connection.sendall(bytes(4))
    assert connection.recv(1) == b""
"""
        words = ("--report", str(report), "--fail-on-protocol-error")
        done = kproto("run", *words, "--", *python(program))
        assert done.returncode == 3
        assert done.stderr.startswith("kproto: no client sent a request\nkproto: 1 connection broke: protocol errors\n")
        assert json.loads(report.read_text())["protocol_errors"] == 1
        assert kproto("run", "--", *python(program)).returncode == 0
        assert kproto("run", "--fail-on-protocol-error", "--target", "3.9", "--", *OLD_CLIENT).returncode == 0

    def test_fail_on_removed_sets_the_exit_code(self) -> None:
        assert kproto("run", "--target", "4.0", "--fail-on-removed", "--", *OLD_CLIENT).returncode == 1
        assert kproto("run", "--target", "3.9", "--fail-on-removed", "--", *OLD_CLIENT).returncode == 0

    def test_the_commands_own_exit_code_comes_first(self) -> None:
        fails = ("sh", "-c", '"$@"; exit 3', "sh", *OLD_CLIENT)
        assert kproto("run", "--target", "4.0", "--fail-on-removed", "--", *fails).returncode == 3

    def test_the_report_lists_the_versions_that_the_emulated_release_refused(self) -> None:
        done = kproto("run", "--kafka-version", "4.0", "--target", "4.0", "--fail-on-removed", "--", *OLD_CLIENT)
        assert done.returncode == 1
        assert "  ListOffsets v0  1x  last served by 3.9; 4.0 serves v1-v10  consumer-1\n" in done.stderr
        assert "connections that the broker closed:\n" in done.stderr

    def test_the_whole_report_is_written_to_files(self, tmp_path: Path) -> None:
        paths = [tmp_path / name for name in ("r.json", "r.md", "r.html")]
        done = kproto("run", "--target", "4.0", *(f"--report={path}" for path in paths), "--", *OLD_CLIENT)
        assert done.stderr.endswith("".join(f"whole report: {path}\n" for path in paths))
        found = json.loads(paths[0].read_text())
        assert found["would_break"] is True
        assert found["run"]["command"] == list(OLD_CLIENT)
        assert found["run"]["exit_code"] == 0
        assert 0 < found["run"]["duration_seconds"] < LIMIT_S
        assert "| ListOffsets v0 | 1 |" in paths[1].read_text()
        assert "would break on Kafka 4.0" in paths[2].read_text()

    def test_a_report_file_that_cannot_be_written_at_the_end_is_an_error(self, tmp_path: Path) -> None:
        folder = tmp_path / "reports"
        folder.mkdir()
        done = kproto("run", "--report", str(folder / "r.json"), "--", "rmdir", str(folder))
        assert done.returncode == 2
        assert done.stderr.endswith(
            f"kproto run: --report: can't write {str(folder / 'r.json')!r}: No such file or directory\n"
        )

    def test_a_closed_standard_error_leaves_the_exit_code(self) -> None:
        gone, pipe = os.pipe()
        os.close(gone)
        done = subprocess.run(
            [*KPROTO, "run", "--", *python("print('mine')")],
            stdout=subprocess.PIPE,
            stderr=pipe,
            timeout=LIMIT_S,
            check=False,
        )
        os.close(pipe)
        assert (done.returncode, done.stdout) == (0, b"mine\n")

    @pytest.mark.parametrize(
        ("env", "colored"),
        [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    )
    def test_the_report_has_colors_on_a_terminal_that_has_them(self, env: dict[str, str], colored: bool) -> None:
        with on_terminal("run", "--", "true", env=env) as (process_id, terminal):
            seen = read(terminal)
            os.waitpid(process_id, 0)
        assert b"kproto: no client connected" in seen
        assert (b"\x1b[1mkproto: no client connected\x1b[0m" in seen) is colored


class TestBroker:
    def test_a_taken_port_is_one_line(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
            done = kproto("run", "--port", str(port), "--", "true")
        assert done.returncode == 2
        assert done.stderr == (
            f"kproto run: can't listen on 127.0.0.1:{port}: Address already in use; "
            "choose another --host or --port (0: a free one)\n"
        )

    def test_the_broker_has_the_settings_of_the_command_line(self, tmp_path: Path) -> None:
        report = tmp_path / "r.json"
        program = """
import os, socket
from kproto.messages.k08_offset_commit import OffsetCommitRequest
import struct
body = OffsetCommitRequest(group_id="g", retention_time_ms=604800000, topics=()).encode(3)
frame = struct.pack(">hhih", 8, 3, 1, 3) + b"app" + body
host, _, port = os.environ["KAFKA_BOOTSTRAP_SERVERS"].rpartition(":")
with socket.create_connection((host, int(port))) as connection:
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    assert connection.recv(4)
"""
        done = kproto("run", "--set", "offsets.retention.minutes=60", "--report", str(report), "--", *python(program))
        assert done.returncode == 0, done.stderr
        assert "OffsetCommit v3 with retention_time, 1x, all with an override\n" in done.stderr
        assert "  set offsets.retention.minutes to at least 10,080 (here: 60, too little)\n" in done.stderr
        assert json.loads(report.read_text())["retention"]["offsets_retention_minutes"] == 60
