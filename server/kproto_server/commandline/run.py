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
import sys
import threading
from contextlib import contextmanager
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from kproto.errors import KprotoError
from kproto_server.broker.broker import Broker
from kproto_server.commandline import logs
from kproto_server.commandline.output import write
from kproto_server.commandline.reporting import report_on
from kproto_server.process_tree import ProcessTree, Watcher
from kproto_server.report.model import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from kproto_server.commandline.options import RunOptions

BOOTSTRAP_SERVERS = "KAFKA_BOOTSTRAP_SERVERS"
"""The environment variable that gives the command the address of the broker."""

CONTROL_URL = "KPROTO_CONTROL_URL"
"""The environment variable that gives the command the address of the control API."""

KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
FORWARDED = (*KEYBOARD_SIGNALS, *ENDING_SIGNALS)

SIGNALS_CHECK_S = 0.25
"""The longest time until a signal is forwarded."""

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
    security = broker_options.security
    with Broker.running(
        kafka_version=broker_options.kafka_version,
        settings=broker_options.settings,
        clock=broker_options.clock,
        brokers=broker_options.brokers,
        port=options.port,
        data=broker_options.data,
        faults=broker_options.faults or (),
        seed=broker_options.seed,
        tls=None if security is None else security.tls,
        tls_directory=None if security is None else security.tls_directory,
        sasl=() if security is None else security.mechanisms,
        users=None if security is None else security.users,
    ) as broker:
        observations = broker.observations
        exit_code = _run_command(options.command, _variables(broker, options))
        unused = [repr(rule) for rule in broker.faults if not rule.fired] if broker_options.faults is not None else []
    if not options.report.quiet:
        for rule in unused:
            write(sys.stderr, f"kproto run: --faults: no request met it: {rule}\n")
    ended = Run(options.command, exit_code, started_at.isoformat(timespec="seconds"), monotonic() - started)
    reported = report_on(observations, broker_options, options.report, "run", ended)
    return exit_code or reported


def _variables(broker: Broker, options: RunOptions) -> dict[str, str]:
    """Open the control port, if there is one; return the environment variables of the command."""
    variables = {BOOTSTRAP_SERVERS: broker.bootstrap_servers, **broker.client_variables}
    control = options.control
    if control is not None:
        from kproto_server.control.listening import TOKEN_VARIABLE, open_port

        port = open_port(control.host, control.port)
        broker.run(lambda server: server.start_task(port.serve))
        variables[CONTROL_URL] = port.url
        if port.token is not None:
            variables[TOKEN_VARIABLE] = port.token
    return variables


def _run_command(command: tuple[str, ...], variables: dict[str, str]) -> int:
    environment = os.environ | variables
    with _watcher() as watcher, _Forwarding() as forwarding:
        try:
            process = subprocess.Popen(command, env=environment, preexec_fn=watcher.watch_this_process)
        except FileNotFoundError:
            raise CannotRun(f"no command {command[0]!r}: check its name and PATH", NOT_FOUND) from None
        except OSError as error:
            raise CannotRun(f"can't run {command[0]!r}: {error.strerror}", NOT_EXECUTABLE) from None
        forwarding.to(process)
        code = _exit_code(process)
        forwarding.end_descendants()
    return SIGNALED - code if code < 0 else code


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """Wait for the command's end, and return its exit code.

    Python notes a signal when it arrives, and calls the handler when this thread next runs Python code. So the thread
    never waits long: a signal that arrives just before a wait would be forwarded only at the command's end.
    """
    ended = threading.Event()

    def wait() -> None:
        process.wait()
        ended.set()

    threading.Thread(target=wait, name="kproto run: command", daemon=True).start()
    while not ended.wait(SIGNALS_CHECK_S):
        pass
    return process.wait()


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
