"""Each kind of damage is refused in one line, or reported, or has cost nothing; `--repair` says what it did."""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path

import pytest

from kproto.errors import LogError
from kproto_server import Broker
from kproto_server.configuration.data_directory import DataDirectory, Durability
from tests.commandline.commands import kproto
from tests.network.raw_client import RawClient
from tests.network.requests import find_coordinator
from tests.robustness.changes import (
    State,
    commit,
    create_topic,
    delete_records,
    errors_of,
    produce,
    view,
    zookeeper_offset,
)
from tests.robustness.damage import KINDS

GROUPS = ("g", "h")
SETTINGS = {"offsets.topic.num.partitions": "2", "log.cleaner.enable": "false"}
KAFKA_VERSION = "2.8"
"""With OffsetCommit v0, and with segments of any size."""


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[Durability, Path]:
    """A directory of each durability after a clean shutdown, with topics of several segments and two groups."""
    found: dict[Durability, Path] = {}
    for durability in ("os", "fsync"):
        path = tmp_path_factory.mktemp(durability)
        data = DataDirectory(str(path), "os" if durability == "os" else "fsync")
        with _started(data) as broker, RawClient(broker.bootstrap_servers) as client:
            find_coordinator(client, "g")
            requests = [create_topic("first"), create_topic("t", 2, segment_bytes="200"), create_topic("empty")]
            requests += [produce("t", [b"%d" % number] * 2, number % 2) for number in range(20)]
            requests += [commit(group_id, {"t": {0: offset}}) for offset in range(5) for group_id in GROUPS]
            requests += [commit("g", {"t": {0: 5}}, 0)]
            for request, version in [*requests, produce("first", [b"1"]), delete_records("t", 3)]:
                response = client.ask(request, version)
                assert not errors_of(response), response
        found[data.durability] = path
    return found


def _started(data: DataDirectory) -> Broker:
    return Broker(data=data, settings=SETTINGS, kafka_version=KAFKA_VERSION)


def outcome(data: DataDirectory) -> State | str:
    """Start a broker and return its state; or why it does not start."""
    try:
        with _started(data) as broker, RawClient(broker.bootstrap_servers) as client:
            assert not find_coordinator(client, "g")
            try:
                return {**view(client, GROUPS), **zookeeper_offset(client, "g", "t")}
            except AssertionError as error:
                return {("error",): str(error)}
    except LogError as error:
        return str(error)


@pytest.mark.parametrize("durability", ["os", "fsync"])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_refused_or_reported_or_costs_nothing(
    kind: str,
    durability: Durability,
    directories: dict[Durability, Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "kproto.log")
    path = tmp_path / "data"
    shutil.copytree(directories[durability], path)
    expected = outcome(DataDirectory(str(path), durability))
    assert not isinstance(expected, str), expected
    caplog.clear()
    KINDS[kind](path, random.Random(kind))  # noqa: S311 - reproducible
    outside = tree(tmp_path, path)

    found = outcome(DataDirectory(str(path), durability))
    assert tree(tmp_path, path) == outside, "something outside the data directory was changed"
    if isinstance(found, str):
        assert "\n" not in found
        assert outcome(DataDirectory(str(path), durability)) == found, "the second start says something else"
        repaired = outcome(DataDirectory(str(path), durability, repair=True))
        assert ("--repair" in found) == (not isinstance(repaired, str)), f"{found}\n{repaired}"
        found = repaired
    if not isinstance(found, str):
        assert found == expected or caplog.messages, "something was lost in silence"
        assert not any("\n" in line for line in caplog.messages)


def tree(path: Path, without: Path) -> dict[Path, bytes]:
    """Return the files below a path, except those of one directory."""
    return {
        file: file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and not file.is_symlink() and without not in file.parents
    }


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(LogError, match="is no path of a directory"):
        Broker(data=DataDirectory(path)).start()


def test_the_command_refuses_in_one_line(directories: dict[Durability, Path], tmp_path: Path) -> None:
    kinds = ("topic named ../../evil", "last segment deleted", "swap of garbage", "segment is a directory")
    paths = [""]
    for kind in kinds:
        path = tmp_path / kind.replace("/", "")
        shutil.copytree(directories["os"], path)
        KINDS[kind](path, random.Random(kind))  # noqa: S311 - reproducible
        paths.append(str(path))
    for data in paths:
        done = kproto("serve", "--port", "0", "--data-dir", data)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith("kproto serve: --data-dir: ")
