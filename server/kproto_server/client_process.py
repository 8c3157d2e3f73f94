"""The process of a client under test, which a command of the user's starts beside a broker."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kproto.errors import KprotoError
from kproto_server.process_tree import ProcessTree
from kproto_server.report.phrases import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kproto_server.broker.broker import Broker

TERMINATION_LIMIT_S = 5.0
"""From SIGTERM to SIGKILL."""


class ClientNotStarted(KprotoError):
    """The client's command cannot be executed; the text is one line for the user."""


class ClientProcess:
    """A client's process that runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.error_lines: Sequence[str] = ()
        """The lines of standard error, once the process has ended."""

    def exit_code(self) -> int | None:
        """Return the exit code, None while the process runs."""
        return self._process.poll()

    def end(self) -> None:
        """Terminate the process if it runs, with those that it has started, and wait for its end.

        The command may be a shell or `npm run`; the client that it leaves behind would join the next broker's group.
        """
        if self._process.poll() is None:
            tree = ProcessTree(self._process.pid)
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(TERMINATION_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            tree.end()


@contextmanager
def client_process(command: Sequence[str], broker: Broker, environment: Mapping[str, str]) -> Iterator[ClientProcess]:
    """Yield a process that has the broker's address in KAFKA_BOOTSTRAP_SERVERS; it ends with the block at the latest.

    Raises:
        ClientNotStarted: the command cannot be executed.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # the user's own command
                list(command),
                env={**os.environ, **environment, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        except OSError as error:
            raise ClientNotStarted(f"can't start {command[0]!r}: {error.strerror}") from None
        client = ClientProcess(process)
        try:
            yield client
        finally:
            client.end()
            errors.seek(0)
            client.error_lines = errors.read().decode(errors="replace").strip().splitlines()


def software_name(broker: Broker) -> str:
    """Return name and version that the first client gave in its ApiVersions request; empty: no client gave one."""
    for client in broker.observations.snapshot().clients:
        if client.software_name:
            return plain(f"{client.software_name} {client.software_version}")
    return ""
