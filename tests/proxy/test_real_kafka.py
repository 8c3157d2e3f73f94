"""In front of real brokers: the clients stay on the proxy, and its report has the rows of `kproto run`.

Method. kafka-python and librdkafka produce, consume in groups and commit through the proxy. The real brokers log all
requests that they get: the log has none that the proxy has not counted, so that no request came past it.
Then librdkafka recovers from faults of a proxy in front of the same broker.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.audit.record import level
from tests.audit.recorded import CLIENTS, program
from tests.audit.test_same_rows import rows
from tests.commandline.commands import LIMIT_S, kproto
from tests.oracle.cluster import real_kafka
from tests.proxy.proxies import proxy_of
from tests.proxy.test_faulty_clients import check_that_librdkafka_recovers

pytestmark = pytest.mark.oracle
SLOW = pytest.mark.slow  # three real brokers start; tests/proxy/test_brokers_of_kproto.py has three of kproto's


@pytest.mark.parametrize(("release", "brokers"), [("4.4.0", 1), pytest.param("3.9.2", 3, marks=SLOW)])
def test_the_report_in_front_of_a_real_broker_is_that_of_a_run(
    release: str, brokers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_LOG_LEVEL", level(release))
    with real_kafka(release, brokers) as cluster:
        with proxy_of(cluster.bootstrap, tmp_path) as proxy:
            assert proxy.cluster.endswith(f", Kafka {release.rpartition('.')[0]}")
            variables = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": proxy.address}
            subprocess.run(program(release), env=variables, timeout=LIMIT_S, check=True)
            report = proxy.end()
        logs = [str(cluster.folder / f"node-{node}/out.log") for node in range(1, brokers + 1)]
        audited = tmp_path / "audit.json"
        done = kproto("audit", *logs, "--report", str(audited))
        assert done.returncode == 0, done.stderr
        if brokers == 1:
            check_that_librdkafka_recovers(cluster.bootstrap, tmp_path)
    run = tmp_path / "run.json"
    done = kproto("run", "--kafka-version", release, "--report", str(run), "--", *program(release))
    assert done.returncode == 0, done.stderr
    assert rows(report) == rows(json.loads(run.read_text()))

    through, logged = counts(report), counts(json.loads(audited.read_text()))
    assert {client_id for client_id, *_ in through} == {*CLIENTS}
    past = {row: logged[row] - through[row] for row in logged if logged[row] > through[row]}
    assert not past
    # A broker does not log the request of a client that has ended before its response. Clients end without waiting for
    # a consumer's last Fetch and for a Metadata in the background.
    assert {row[1] for row in through if through[row] > logged[row]} <= {"Fetch", "Metadata"}


def counts(report: dict[str, Any]) -> Counter[tuple[str, str, int]]:
    """Return the number of requests by client id, API and version."""
    return Counter(
        {
            (client["client_id"], row["api"], row["api_version"]): row["count"]
            for client in report["clients"]
            for row in client["requests"]
            if client["client_id"] in CLIENTS
        }
    )
