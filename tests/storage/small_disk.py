"""A real file system of a few megabytes that programs can be run on, without privileges.

It is a tmpfs in a mount namespace of its own. A process that does nothing holds the namespace, so that what is on the
file system outlives the programs that run there; the test reaches in through that process's ``/proc/PID/root``.
"""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.requirements import missing, need

BLOCK = 4096


class SmallDisk:
    def __init__(self, holder: int, directory: Path) -> None:
        self.directory = directory
        """Where programs that run on it find it."""
        self.seen_from_here = Path(f"/proc/{holder}/root{directory}")
        self._holder = holder

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs a program where the file system is."""
        enter = ["nsenter", f"--target={self._holder}", "--user", "--mount", "--preserve-credentials"]
        return [*enter, *argv]

    @property
    def free_bytes(self) -> int:
        return shutil.disk_usage(self.seen_from_here).free

    def fill(self) -> None:
        """Take all space that is left, to the last block."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, BLOCK):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def release(self) -> None:
        """Give back what `fill` took."""
        self._ballast.unlink()

    @property
    def _ballast(self) -> Path:
        return self.seen_from_here / "ballast"


@contextmanager
def small_disk(directory: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Mount one over ``directory``; skips the test where nobody but root may."""
    unshare = need("unshare", install="util-linux")
    need("nsenter", install="util-linux")
    script = 'mount -t tmpfs -o "size=$1" kproto-test "$0" && echo mounted && exec cat'
    holder = subprocess.Popen(
        [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script, str(directory), str(size_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stderr is not None
    with holder:
        if holder.stdout.readline() != "mounted\n":
            why = holder.stderr.read().strip()
            missing(f"needs a mount namespace of its own, which this system does not give to this user: {why}")
        try:
            yield SmallDisk(holder.pid, directory)
        finally:
            holder.stdin.close()  # `cat` ends, and the namespace with it
