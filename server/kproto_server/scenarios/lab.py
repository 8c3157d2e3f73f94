"""One accident with one client: a broker of its own, the client's program, and what became of it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kproto_server.broker.broker import Broker
from kproto_server.scenarios.ground import GROUP, TOPIC, Ground
from kproto_server.scenarios.journey import Journey, journeys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto_server.scenarios.accidents import Accident

CHECK_S = 0.02
"""How often the client is looked at."""
END_S = 3.0
"""From SIGTERM to SIGKILL."""
REBALANCE_SETTLES_S = 0.3
"""From the last record that a client can read until it is stopped: it may still want to commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one partition."""

    partition: int
    log_start: int
    log_end: int
    resume_at: int
    """From here on nothing would have been skipped or repeated."""
    went_to: int | None
    """None: it never could fetch."""
    steps: tuple[str, ...]

    @property
    def skipped(self) -> int:
        """Records that the group has never seen, and does not see now; of a client that never fetched: all."""
        return max(0, (self.log_end if self.went_to is None else self.went_to) - self.resume_at)

    @property
    def repeated(self) -> int:
        """Records that are read once more, or are others at offsets that were read before."""
        return 0 if self.went_to is None else max(0, self.resume_at - self.went_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one client did about one accident."""

    accident: Accident
    outcomes: tuple[Outcome, ...]
    client: str
    """What it called itself, or its command."""
    exit_code: int | None
    """None: it was still running when it had read everything."""
    timed_out: bool
    last_words: str
    """The last line that it wrote to standard error, if it ended by itself."""


class CannotStart(Exception):
    """The client's command can't be started; the text is one line for the user."""


def run_accident(
    accident: Accident,
    command: Sequence[str],
    *,
    kafka_version: str = "latest",
    timeout_s: float = 30.0,
    environment: Mapping[str, str] | None = None,
) -> Findings:
    """Let an accident happen, start the client, and see where it goes.

    The client finds KAFKA_BOOTSTRAP_SERVERS, KPROTO_TOPIC and KPROTO_GROUP in its environment. It is stopped once it
    has read everything, or after ``timeout_s`` of real time.

    Raises:
        CannotStart: there is no such command.
    """
    with Broker.running(kafka_version=kafka_version) as broker, tempfile.TemporaryFile() as errors:
        ground = Ground(broker)
        accident.happen(ground)
        names = {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers, "KPROTO_TOPIC": TOPIC, "KPROTO_GROUP": GROUP}
        try:
            process = subprocess.Popen(  # the user's own command
                list(command),
                env={**os.environ, **(environment or {}), **names},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        except OSError as error:
            raise CannotStart(f"can't start {command[0]!r}: {error.strerror}") from None
        try:
            timed_out = not _wait(broker, ground, process, timeout_s)
            exit_code = process.poll()
        finally:
            _end(process)
        found = journeys(broker.requests, TOPIC, ground.topic_id())
        errors.seek(0)
        words = errors.read().decode(errors="replace").strip().splitlines()
        return Findings(
            accident=accident,
            outcomes=tuple(_outcome(accident, ground, found)),
            client=_software(broker) or command[0],
            exit_code=exit_code,
            timed_out=timed_out,
            last_words=words[-1] if words and exit_code is not None else "",
        )


def _wait(broker: Broker, ground: Ground, process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait until the client has read everything, or has ended; return False if it takes too long."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    topic_id = ground.topic_id()
    ends = {partition: end for partition, (_, end) in ground.bounds().items()}
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return True
        found = journeys(broker.requests, TOPIC, topic_id)
        if all(partition in found and (found[partition].position or 0) >= end for partition, end in ends.items()):
            pause.wait(REBALANCE_SETTLES_S)
            return True
        pause.wait(CHECK_S)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _outcome(accident: Accident, ground: Ground, found: Mapping[int, Journey]) -> list[Outcome]:
    return [
        Outcome(
            partition=partition,
            log_start=start,
            log_end=end,
            resume_at=accident.resume_at[partition],
            went_to=found[partition].went_to if partition in found else None,
            steps=tuple(found[partition].steps) if partition in found else (),
        )
        for partition, (start, end) in sorted(ground.bounds().items())
    ]


def _software(broker: Broker) -> str:
    for client in broker.snapshot().clients:
        if client.software_name:
            return f"{client.software_name} {client.software_version}"
    return ""
