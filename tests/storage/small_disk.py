"""A real file system of a few megabytes for programs under test, without privileges.

It is a tmpfs in a mount namespace of its own. An idle process keeps the namespace alive, so that the files outlive the
programs that run there; the test reaches them through ``/proc/PID/root`` of that process.
"""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.requirements import missing, need

BLOCK = 4096


class SmallDisk:
    """A mounted file system."""

    def __init__(self, namespace_pid: int, directory: Path) -> None:
        self.directory = directory
        """The path for programs in the namespace."""
        self.outer_path = Path(f"/proc/{namespace_pid}/root{directory}")
        """The path for the test."""
        self._namespace_pid = namespace_pid

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs a program in the namespace."""
        enter = ["nsenter", f"--target={self._namespace_pid}", "--user", "--mount", "--preserve-credentials"]
        return [*enter, *argv]

    def fill(self) -> None:
        """Take all free space, to the last block."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, BLOCK):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def release(self) -> None:
        """Free the space that `fill` took."""
        self._ballast.unlink()

    @property
    def _ballast(self) -> Path:
        return self.outer_path / "ballast"


@contextmanager
def small_disk(directory: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Mount a file system over ``directory``; skip the test if this user may not."""
    unshare = need("unshare", install="util-linux")
    need("nsenter", install="util-linux")
    script = 'mount -t tmpfs -o "size=$1" kproto-test "$0" && echo mounted && exec cat'
    idle_process = subprocess.Popen(
        [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script, str(directory), str(size_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert idle_process.stdin is not None
    assert idle_process.stdout is not None
    assert idle_process.stderr is not None
    with idle_process:
        if idle_process.stdout.readline() != "mounted\n":
            why = idle_process.stderr.read().strip()
            missing(f"needs a mount namespace of its own, which this system refuses to this user: {why}")
        try:
            yield SmallDisk(idle_process.pid, directory)
        finally:
            idle_process.stdin.close()  # `cat` ends, and the namespace with it
