"""A broker that hangs for 11 s at the first assignment: no call waits for it, and the process survives."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.kproto_client.hung_broker_member import check
from tests.kproto_client.kafka_fixture import KafkaFixture
from tests.waiting import wait_until


def test_no_call_waits_for_a_hung_broker(tmp_path: Path) -> None:
    """CK-24; `test_with_kafka` has the same with real brokers."""
    port_file = tmp_path / "port"
    serve = ["serve", "--port", "0", "--port-file", str(port_file), "--quiet", "--exit-with-parent"]
    settings = ["--set", "group.initial.rebalance.delay.ms=0"]
    broker = subprocess.Popen([sys.executable, "-m", "kproto_server", *serve, *settings])
    try:
        wait_until(lambda: port_file.exists() and bool(port_file.read_text().strip()), "the broker")
        check(KafkaFixture(port_file.read_text().strip()), broker.pid)
    finally:
        broker.send_signal(signal.SIGCONT)
        broker.kill()
        broker.wait()
