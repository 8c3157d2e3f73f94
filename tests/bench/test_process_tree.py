"""The CPU time of a tree of processes."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.process_tree import cpu_seconds

BUSY = "import time\nwhile time.process_time() < 0.4: pass\nprint(flush=True)\nimport sys; sys.stdin.read()"


def test_a_child_has_its_own_time_until_it_is_waited_for() -> None:
    before = cpu_seconds()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        during = cpu_seconds()
    after = cpu_seconds()
    assert during.keys() - before.keys() == {child.pid}
    assert during[child.pid] >= 0.3
    assert child.pid not in after
    assert after[os.getpid()] - before[os.getpid()] >= 0.3
