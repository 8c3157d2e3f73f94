"""A broker that hangs for 11 s at the first assignment: no call waits for it, and the process survives."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.kproto_client.decision_tables import END
from tests.kproto_client.kafka_fixture import KafkaFixture, unique_name
from tests.kproto_client.reset_cases import resets
from tests.waiting import wait_until

LONGEST_CALL_S = 0.5
"""Of a call with timeout 0, on a busy machine. A query waits for a hung broker until its own limit, 5 s."""


def test_no_call_waits_for_a_hung_broker(tmp_path: Path) -> None:
    """CK-24: with a logger and debug lines too, which come as events between the callbacks."""
    port_file = tmp_path / "port"
    serve = ["serve", "--port", "0", "--port-file", str(port_file), "--quiet", "--exit-with-parent"]
    settings = ["--set", "group.initial.rebalance.delay.ms=0"]
    broker = subprocess.Popen([sys.executable, "-m", "kproto_server", *serve, *settings])
    try:
        wait_until(lambda: port_file.exists() and bool(port_file.read_text().strip()), "the broker")
        kafka = KafkaFixture(port_file.read_text().strip())
        topic = kafka.log()
        config = {**kafka.config(unique_name("group"), **resets("safe_latest", "latest")), "debug": "cgrp"}
        arguments = [json.dumps(config), topic, str(broker.pid)]
        member = subprocess.run(
            [sys.executable, "-m", "tests.kproto_client.hung_broker_member", *arguments], capture_output=True, text=True
        )
        assert member.returncode == 0, member.stderr
        found = json.loads(member.stdout)
        assert found["positions"] == {"0": END}
        assert found["assign"] < LONGEST_CALL_S
        assert found["poll"] < LONGEST_CALL_S
    finally:
        broker.send_signal(signal.SIGCONT)
        broker.kill()
        broker.wait()
