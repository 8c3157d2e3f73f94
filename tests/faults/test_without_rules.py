"""A broker without rules has none of their code."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
ONLY_WITH_FAULTS = "kproto_server.faults", "kproto_server.network.links", "kproto_server.connection.commit_ext", "yaml"
from kproto_server import Broker
from tests.network.raw_client import RawClient
from tests.network.requests import commit_offset

with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
    commit_offset(client)
    broker.reset()
    print([name for name in sys.modules if name.startswith(ONLY_WITH_FAULTS)])
    broker.faults.add(api="Heartbeat", close=True)
    print("kproto_server.faults" in sys.modules)
"""


def test_its_modules_are_imported_with_the_first_rule() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\nTrue\n", done.stderr
