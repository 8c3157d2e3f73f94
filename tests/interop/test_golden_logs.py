"""kproto serves the recorded log.dirs of real brokers as those releases did.

The expected values are the responses of brokers of 2.0.1, 2.1.1 and 4.4.0 on copies of these directories. The clock is
stopped, because the offsets are older than any retention.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kproto_server.broker.broker import Broker, DataDirectory
from tests.fixture_files import golden_log
from tests.interop.kproto_process import verify
from tests.interop.served import Committed, Group, Offsets, served_by

RETAINED = {("t", 0): Committed(42, -1, "r")}
PLAIN: Offsets = {
    ("t", 0): Committed(42, -1, "meta"),
    ("t", 1): Committed(7),
    ("t", 2): Committed(0),
    ("u", 0): Committed(1099511627776, -1, "héllo ✓"),
}
WITH_EPOCH = {**PLAIN, ("t", 0): Committed(43, 5, "le")}
OF_ALL: dict[str, Offsets] = {
    "ret-v2": RETAINED,
    "ret-v3": RETAINED,
    "ret-v4": RETAINED,
    "tx": {("t", 0): Committed(501, -1, "tx")},
    "v3": PLAIN,
    "v4": PLAIN,
    "live": {},
    "v2": {},
}
OFFSETS: dict[str, dict[str, Offsets]] = {
    "2.0.1": {**OF_ALL, "v1": {("t", 0): Committed(1, -1, "x")}},
    "2.1.1": {**OF_ALL, "v1": {("t", 0): Committed(1, -1, "x")}, "v5": PLAIN, "v6": WITH_EPOCH},
    "4.4.0": {
        **OF_ALL,
        "v5": PLAIN,
        "v6": WITH_EPOCH,
        "v7": WITH_EPOCH,
        "v8": WITH_EPOCH,
        "v9": {place: committed for place, committed in WITH_EPOCH.items() if place != ("t", 1)},
        "static": {},
    },
}
"""Release -> group -> offsets. "live" and "v2" were deleted; one offset of "tx" was in an aborted transaction."""


@pytest.mark.parametrize("release", OFFSETS)
def test_a_real_brokers_directory_is_served(release: str, tmp_path: Path) -> None:
    log_dir = Path(shutil.copytree(golden_log(release), tmp_path / "data"))
    offsets = OFFSETS[release]
    with Broker(kafka_version=release, data=DataDirectory(str(log_dir), "os"), clock="manual") as broker:
        served = served_by(broker.bootstrap_servers, release, offsets)

    assert served.offsets == offsets
    static = served.groups.pop("static", None)
    if static is not None:
        assert static[:3] == ("Stable", "consumer", "range")
        assert [member.member_id[:7] for member in static.members] == ["inst-1-"]
        assert served.listed.pop("static") == "consumer"
        served.listed.pop("k848", None)  # a group of KIP-848
    assert served.groups == {
        group_id: Group("Empty" if offsets[group_id] else "Dead") for group_id in offsets if group_id != "static"
    }
    assert served.listed == {group_id: "" for group_id in served.groups if offsets[group_id]}
    verify(log_dir)
