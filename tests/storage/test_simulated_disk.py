"""The simulated disk has every failure that it describes, and loses nothing that was synced.

Each test collects the possible results of a crash over many seeds, and expects exactly the possible ones.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from kproto_server.storage.disk import Disk, read_all, replace_file
from kproto_server.testing.simulated_disk import Operation, PowerLost, SimulatedDisk

SEEDS = range(400)


def with_file(path: str, content: bytes, *, capacity_bytes: int | None = None) -> SimulatedDisk:
    """Return a disk with a durable file."""
    disk = SimulatedDisk(capacity_bytes=capacity_bytes)
    file = disk.open(path, create=True)
    file.write_at(0, content)
    file.sync()
    file.close()
    disk.sync_directory("")
    return disk


def after_crashes(make: Callable[[], SimulatedDisk], path: str) -> set[bytes | None]:
    """Return the possible contents of a file after a crash; None for a missing file."""
    found = set()
    for seed in SEEDS:
        disk = make().crash(random.Random(seed))  # noqa: S311 - reproducible
        found.add(read_all(disk, path) if disk.exists(path) else None)
    return found


def test_the_simulated_disk_has_the_protocol_of_a_disk() -> None:
    disk: Disk = SimulatedDisk()
    disk.make_directory("d")
    replace_file(disk, "d/f", b"content")
    assert (disk.names("d"), disk.size_of("d/f"), disk.exists("d/g"), disk.names("e")) == (["f"], 7, False, [])
    with pytest.raises(FileNotFoundError):
        disk.open("d/g")
    with pytest.raises(OSError, match="not empty"):
        disk.remove("d")
    disk.remove("d/f")
    disk.remove("d")
    assert disk.names("") == []


def test_synced_content_survives() -> None:
    assert after_crashes(lambda: with_file("f", b"old"), "f") == {b"old"}


def test_an_unsynced_write_survives_up_to_any_byte() -> None:
    def make() -> SimulatedDisk:
        disk = with_file("f", b"old")
        disk.open("f").write_at(3, b"new")
        return disk

    assert after_crashes(make, "f") == {b"old", b"oldn", b"oldne", b"oldnew"}


def test_blocks_reach_the_disk_in_any_order() -> None:
    """A gap before a block contains zeros."""

    def make() -> SimulatedDisk:
        disk = with_file("f", b"")
        disk.open("f").write_at(0, b"a" * 512 + b"b" * 512)
        return disk

    found = after_crashes(make, "f")
    assert bytes(512) + b"b" * 512 in found
    assert {b"a" * size for size in (0, 512)} < found


def test_files_survive_independently() -> None:
    def make() -> SimulatedDisk:
        disk = with_file("f", b"old")
        replace_file(disk, "g", b"old")
        for path in "fg":
            disk.open(path).write_at(0, b"new")
        return disk

    found = {
        (read_all(disk, "f"), read_all(disk, "g"))
        for seed in SEEDS
        for disk in [make().crash(random.Random(seed))]  # noqa: S311 - reproducible
    }
    assert {(b"old", b"new"), (b"new", b"old"), (b"old", b"old"), (b"new", b"new")} <= found


def test_an_unsynced_size_can_be_lost() -> None:
    def shorter() -> SimulatedDisk:
        disk = with_file("f", b"content")
        disk.open("f").truncate(2)
        return disk

    def longer() -> SimulatedDisk:
        disk = with_file("f", b"c")
        disk.open("f").preallocate(3)
        return disk

    assert after_crashes(shorter, "f") == {b"content", b"co"}
    assert after_crashes(longer, "f") == {b"c", b"c\0\0"}


def test_a_name_and_its_content_survive_independently() -> None:
    """A sync of the file does not cover its name, and a sync of the directory does not cover the content."""

    def make(*, syncs_file: bool, syncs_directory: bool) -> SimulatedDisk:
        disk = SimulatedDisk()
        file = disk.open("f", create=True)
        file.write_at(0, b"new")
        if syncs_file:
            file.sync()
        if syncs_directory:
            disk.sync_directory("")
        return disk

    assert after_crashes(lambda: make(syncs_file=True, syncs_directory=False), "f") == {None, b"new"}
    torn = {b"", b"n", b"ne", b"new"}
    assert after_crashes(lambda: make(syncs_file=False, syncs_directory=True), "f") == torn
    assert after_crashes(lambda: make(syncs_file=True, syncs_directory=True), "f") == {b"new"}


def test_a_rename_is_atomic() -> None:
    def make(*, syncs: bool) -> SimulatedDisk:
        disk = with_file("f", b"old")
        replace_file(disk, "g", b"other")
        disk.rename("f", "g")
        if syncs:
            disk.sync_directory("")
        return disk

    found = {
        (disk.exists("f"), read_all(disk, "g"))
        for seed in SEEDS
        for disk in [make(syncs=False).crash(random.Random(seed))]  # noqa: S311 - reproducible
    }
    assert found == {(True, b"other"), (False, b"old")}
    assert after_crashes(lambda: make(syncs=True), "g") == {b"old"}


def test_removals_survive_independently() -> None:
    def make() -> SimulatedDisk:
        disk = with_file("f", b"")
        replace_file(disk, "g", b"")
        disk.remove("f")
        disk.remove("g")
        return disk

    found = {tuple(make().crash(random.Random(seed)).names("")) for seed in SEEDS}  # noqa: S311 - reproducible
    assert found == {(), ("f",), ("g",), ("f", "g")}


def test_files_in_a_lost_directory_are_lost() -> None:
    def make() -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.make_directory("d")
        replace_file(disk, "d/f", b"new")
        return disk

    assert after_crashes(make, "d/f") == {None, b"new"}


def test_a_killed_process_leaves_its_writes_unsynced() -> None:
    """A later power loss can lose them."""

    def make() -> SimulatedDisk:
        disk = with_file("f", b"old")
        disk.open("f").write_at(3, b"!")
        after = disk.kill()
        assert read_all(after, "f") == b"old!"
        with pytest.raises(PowerLost):
            disk.exists("f")
        return after

    assert after_crashes(make, "f") == {b"old", b"old!"}


def fail(disk: SimulatedDisk, kind: str) -> None:
    disk.fails = lambda operation: operation.kind == kind


def test_a_failed_write_writes_a_prefix() -> None:
    found = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed=seed)
        file = disk.open("f", create=True)
        fail(disk, "write")
        with pytest.raises(OSError, match="Input/output error"):
            file.write_at(0, b"new")
        found.add(file.read_at(0, 9))
    assert found == {b"", b"n", b"ne"}


def test_a_sync_after_a_failed_sync_covers_only_later_writes() -> None:
    def make() -> SimulatedDisk:
        disk = with_file("f", b"....")
        file = disk.open("f")
        file.write_at(0, b"1")
        fail(disk, "sync")
        with pytest.raises(OSError, match="Input/output error"):
            file.sync()
        disk.fails = lambda operation: False
        file.write_at(1, b"2")
        file.sync()
        return disk

    assert after_crashes(make, "f") == {b".2..", b"12.."}


def test_a_directory_sync_after_a_failed_one_covers_all_names() -> None:
    def make(*, syncs_again: bool) -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.open("f", create=True).close()
        fail(disk, "sync_directory")
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync_directory("")
        disk.fails = lambda operation: False
        if syncs_again:
            disk.sync_directory("")
        return disk

    assert after_crashes(lambda: make(syncs_again=False), "f") == {None, b""}
    assert after_crashes(lambda: make(syncs_again=True), "f") == {b""}


@pytest.mark.parametrize("kind", ["create", "make", "truncate", "preallocate", "rename", "remove"])
def test_any_other_failed_operation_changes_nothing(kind: str) -> None:
    disk = with_file("f", b"old")
    file = disk.open("f")
    seen: list[Operation] = []
    disk.fails = lambda operation: not seen.append(operation)  # type: ignore[func-returns-value]  # not None: fails
    attempts: dict[str, Callable[[], object]] = {
        "create": lambda: disk.open("g", create=True),
        "make": lambda: disk.make_directory("d"),
        "truncate": lambda: file.truncate(0),
        "preallocate": lambda: file.preallocate(9),
        "rename": lambda: disk.rename("f", "g"),
        "remove": lambda: disk.remove("f"),
    }
    with pytest.raises(OSError, match="Input/output error"):
        attempts[kind]()
    assert [operation.kind for operation in seen] == [kind]
    assert (disk.names(""), read_all(disk, "f")) == (["f"], b"old")


def test_a_disk_fills_up_within_a_write_and_has_space_again() -> None:
    disk = with_file("f", b"12345", capacity_bytes=8)
    file = disk.open("f")
    with pytest.raises(OSError, match="No space") as raised:
        file.write_at(5, b"67890")
    assert raised.value.errno == errno.ENOSPC
    assert file.read_at(0, 99) == b"12345678"
    file.write_at(0, b"abc")
    other = disk.open("g", create=True)
    with pytest.raises(OSError, match="No space"):
        other.preallocate(1)
    file.truncate(4)
    other.preallocate(4)
    with pytest.raises(OSError, match="No space"):
        other.write_at(4, b"x")
    disk.remove("f")
    other.write_at(4, b"wxyz")
    assert disk.used_bytes == 8


@pytest.mark.parametrize("count", range(6))
def test_the_power_fails_in_the_middle_of_an_operation(count: int) -> None:
    """This operation can be done or not; earlier ones are done, and later ones raise."""
    found = set()
    for seed in SEEDS:
        disk = with_file("f", b"old")
        disk.operations_left = count
        with pytest.raises(PowerLost):
            replace_file(disk, "f", b"new")
        with pytest.raises(PowerLost):
            disk.names("")
        after = disk.crash(random.Random(seed))  # noqa: S311 - reproducible
        found.add(read_all(after, "f"))
    renamed = {b"old"} if count < 4 else {b"old", b"new"}
    assert found == renamed


def test_a_seed_always_has_the_same_result() -> None:
    def result(seed: int) -> bytes:
        disk = with_file("f", b"")
        disk.open("f").write_at(0, bytes(range(250)) * 10)
        return read_all(disk.crash(random.Random(seed)), "f")  # noqa: S311 - reproducible

    assert [result(seed) for seed in range(20)] == [result(seed) for seed in range(20)]
    assert len({result(seed) for seed in range(20)}) > 5
