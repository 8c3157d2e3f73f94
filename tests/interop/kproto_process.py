"""`kproto serve --data-dir` as a process on a directory: shut down cleanly, or killed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.commandline.commands import LIMIT_S, kproto, kproto_started, line_of
from tests.oracle.releases import number

LISTENING = "kproto: listening on "


@dataclass(frozen=True, slots=True)
class KprotoProcess:
    """A running kproto broker."""

    address: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """Kill the process and wait for its end."""
        self.process.kill()
        self.process.wait(LIMIT_S)


@contextmanager
def kproto_on(data: Path, release: str, settings: Mapping[str, str], durability: str = "os") -> Iterator[KprotoProcess]:
    """Run kproto in the Kafka version of a release; shut it down cleanly at the end unless it was killed."""
    kafka_version = ".".join(map(str, number(release)[:2]))
    flags = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    where = ("--data-dir", str(data), "--durability", durability)
    with kproto_started("serve", "--port", "0", "--kafka-version", kafka_version, *where, *flags) as process:
        yield KprotoProcess(line_of(process).removeprefix(LISTENING).split()[0], process)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 0, error


def verify(log_dir: Path) -> str:
    """Check every invariant of a log.dir by `kproto log verify`; return its counts."""
    done = kproto("log", "verify", str(log_dir))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
