"""`kproto run`: run a command beside a broker, then write the report.

The command inherits standard input, output and error, and receives every signal that is meant for it. The report goes
to standard error after the command has ended, so that a pipe behind ``kproto run -- COMMAND`` receives only the output
of the command.

A signal that asks the command to end (SIGTERM, SIGHUP) also ends the processes that the command has started. If this
process is killed, its watcher ends them all (`process_tree`).
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from kproto.errors import KprotoError
from kproto_server.broker.broker import Broker
from kproto_server.commandline import logs
from kproto_server.commandline.process_tree import ProcessTree, Watcher
from kproto_server.commandline.reporting import report_on
from kproto_server.report.model import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from kproto_server.commandline.options import RunOptions

BOOTSTRAP_SERVERS = "KAFKA_BOOTSTRAP_SERVERS"
"""The environment variable that gives the command the address of the broker."""

KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
FORWARDED = (*KEYBOARD_SIGNALS, *ENDING_SIGNALS)

NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNALED = 128
"""Plus the number of the signal that ended the command. NOT_EXECUTABLE to SIGNALED follow POSIX shells."""


class CannotRun(KprotoError):
    """The command cannot be started; the text is one line for the user."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def run(options: RunOptions) -> int:
    """Run the command beside a broker and write the report; return the exit code.

    Raises:
        CannotRun: the command does not exist or is not executable.
        CannotListen: the port is in use.
    """
    started_at, started = datetime.now().astimezone(), monotonic()
    broker_options = options.broker
    logs.configure(broker_options.log_level)
    with Broker.running(
        kafka_version=broker_options.kafka_version,
        settings=broker_options.settings,
        clock=broker_options.clock,
        brokers=broker_options.brokers,
        port=options.port,
        data=broker_options.data,
    ) as broker:
        observations = broker.observations
        exit_code = _run_command(options.command, broker.bootstrap_servers)
    ended = Run(options.command, exit_code, started_at.isoformat(timespec="seconds"), monotonic() - started)
    reported = report_on(observations, broker_options, options.report, "run", ended)
    return exit_code or reported


def _run_command(command: tuple[str, ...], bootstrap_servers: str) -> int:
    environment = os.environ | {BOOTSTRAP_SERVERS: bootstrap_servers}
    with _watcher() as watcher, _Forwarding() as forwarding:
        try:
            process = subprocess.Popen(command, env=environment)
        except FileNotFoundError:
            raise CannotRun(f"no command {command[0]!r}: check its name and PATH", NOT_FOUND) from None
        except OSError as error:
            raise CannotRun(f"can't run {command[0]!r}: {error.strerror}", NOT_EXECUTABLE) from None
        watcher.watch(process.pid)
        forwarding.to(process)
        code = process.wait()
        forwarding.end_descendants()
    return SIGNALED - code if code < 0 else code


@contextmanager
def _watcher() -> Iterator[Watcher]:
    """Yield a watcher that ends the command if this process is killed in the block."""
    watcher = Watcher()
    try:
        yield watcher
    finally:
        watcher.done()


class _Forwarding:
    """Forwards signals to the command, which decides how to react; the report follows when it has ended.

    A terminal sends Ctrl-C to the whole foreground process group, the command included. A forwarded Ctrl-C would arrive
    twice, and many programs end at once on the second.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []
        """Signals that arrived before the command was started."""
        self._before: dict[int, Any] = {}
        self._trees: list[ProcessTree] = []
        """The command and its descendants when a signal asked them to end."""

    def __enter__(self) -> Self:
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup the command ignores the signal too
                self._before[number] = signal.signal(number, self._forward)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def to(self, process: subprocess.Popen[bytes]) -> None:
        """Set the command, and send it the signals that have arrived."""
        self._process = process
        while self._waiting:
            process.send_signal(self._waiting.pop(0))

    def end_descendants(self) -> None:
        """After the command has ended: end what it has started, if a signal has asked for the end."""
        for tree in self._trees:
            tree.end()

    def _forward(self, number: int, _frame: object) -> None:
        if self._process is None:
            self._waiting.append(number)
            return
        if number in ENDING_SIGNALS:
            self._trees.append(ProcessTree(self._process.pid))
        if not (number in KEYBOARD_SIGNALS and _in_foreground()):
            self._process.send_signal(number)


def _in_foreground() -> bool:
    """Return whether this process group is its terminal's foreground group, which receives Ctrl-C from the terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
