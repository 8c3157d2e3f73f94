"""The tools for reassignments and log directories print with kproto what they print with real brokers of their release.

The output of real brokers is recorded (`recorded_tools`): three real brokers would take more than the test.
"""

import json
from pathlib import Path

import pytest

from kproto_server.broker.broker import Broker
from tests.clients.recorded_tools import RECORDED, run_all
from tests.clients.tools import running_tools

RELEASES = sorted(path.stem for path in RECORDED.glob("*.json"))


@pytest.mark.parametrize("release", RELEASES)
def test_the_tools_print_what_they_print_with_a_real_cluster(release: str, tmp_path: Path) -> None:
    with Broker(kafka_version=release, brokers=3) as broker, running_tools(release) as tools:
        runs = run_all(tools, broker.bootstrap_servers, tmp_path, release)
    printed = json.loads(json.dumps([one._asdict() for one in runs]).replace(str(tmp_path), "FOLDER"))
    recorded = json.loads((RECORDED / f"{release}.json").read_text())
    assert [one["arguments"] for one in printed] == [one["arguments"] for one in recorded]
    for ours, theirs in zip(printed, recorded, strict=True):
        assert ours == theirs
