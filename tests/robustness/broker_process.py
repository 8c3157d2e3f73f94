"""A broker in a process of its own, whose CPU time and memory are its own, too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.commandline.commands import line_of, process_started

LISTENING = "kproto: listening on "
MAIN = "import sys\nfrom kproto_server.commandline.cli import main\nsys.exit(main(sys.argv[1:]))\n"


class BrokerProcess(NamedTuple):
    address: str
    """HOST:PORT of the first node."""
    pid: int


@contextmanager
def broker_process(*words: str, planted: str = "") -> Iterator[BrokerProcess]:
    """Run `kproto serve` on a free port with these further arguments; kill it at the end.

    ``planted``: Python source that the process runs first, for example to plant a defect.
    """
    with process_started(sys.executable, "-c", planted + MAIN, "serve", "--port", "0", *words) as process:
        yield BrokerProcess(line_of(process).removeprefix(LISTENING), process.pid)
