"""Damage to the files of a data directory after a clean shutdown, by kind.

A broker that starts on it refuses in one line, or says what it found, or has lost nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from kproto.records.batch_header import LOG_OVERHEAD

Damage = Callable[[Path, Random], None]
GARBAGE = bytes(range(256)) * 3


class NotHere(Exception):
    """The directory has no such file to damage."""


def segments(data: Path, at_least: int = 1, pattern: str = "*") -> list[Path]:
    """Return the segments with content of the log that has most of them, oldest first."""
    logs = [sorted(p for p in d.glob("*.log") if p.is_file() and p.stat().st_size) for d in data.glob(f"{pattern}-*")]
    found = max(logs, key=len, default=[])
    if len(found) < at_least:
        raise NotHere
    return found


def _topics(change: Callable[[dict[str, Any]], object]) -> Damage:
    """Return the damage of a change to the content of ``topics.json``."""

    def apply(data: Path, chance: Random) -> None:
        path = data / "topics.json"
        content = json.loads(path.read_text())
        if not content["topics"]:
            raise NotHere
        change(content)
        path.write_text(json.dumps(content))

    return apply


def _named(name: Any) -> Damage:
    return _topics(lambda content: content["topics"][0].update(name=name))


def _field(name: str, value: Any) -> Damage:
    return _topics(lambda content: content["topics"][0].update({name: value}))


def _content(name: str, content: bytes) -> Damage:
    def apply(data: Path, chance: Random) -> None:
        _write(data / name, content)

    return apply


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _beside(suffix: str, content: bytes) -> Damage:
    """Return the damage of a new file with the name of a segment and a suffix."""

    def apply(data: Path, chance: Random) -> None:
        path = chance.choice(segments(data))
        _write(path.with_name(path.name + suffix), content)

    return apply


def _on_segment(change: Callable[[Path, Random], object], at_least: int = 1, index: int | None = None) -> Damage:
    def apply(data: Path, chance: Random) -> None:
        found = segments(data, at_least)
        change(chance.choice(found) if index is None else found[index], chance)

    return apply


def _remove(path: Path, chance: Random) -> None:
    path.unlink()


def _index_instead(path: Path, chance: Random) -> None:
    """Remove a segment, and leave an index that is not empty, like those of a real broker."""
    path.unlink()
    _write(path.with_suffix(".index"), GARBAGE)


def _cut(path: Path, chance: Random) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(chance.randrange(size))


def _cut_last_batch(path: Path, chance: Random) -> None:
    data, ends = path.read_bytes(), [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + LOG_OVERHEAD + int.from_bytes(data[ends[-1] + 8 : ends[-1] + LOG_OVERHEAD], "big"))
    path.write_bytes(data[: ends[-2]])


def _append(content: bytes) -> Callable[[Path, Random], None]:
    def apply(path: Path, chance: Random) -> None:
        with path.open("ab") as file:
            file.write(content)

    return apply


def _rename(path: Path, chance: Random) -> None:
    path.rename(path.with_name(f"{int(path.name[:20]) + 1:020}.log"))


def _link(path: Path, chance: Random) -> None:
    """Move a file or directory out of the data directory, and leave a symbolic link to it."""
    data = path.parent if path.is_dir() else path.parent.parent
    outside = data.with_name(f"{data.name}-outside-{chance.randrange(1 << 40)}")
    path.rename(outside)
    path.symlink_to(outside)


def _on_directory(change: Callable[[Path, Random], object]) -> Damage:
    def apply(data: Path, chance: Random) -> None:
        change(segments(data)[0].parent, chance)

    return apply


def _remove_segments(path: Path, chance: Random) -> None:
    for segment in path.glob("*.log"):
        segment.unlink()


def _remove_v0_log(data: Path, chance: Random) -> None:
    path = data / "__zookeeper_offsets-0"
    if not path.exists():
        raise NotHere
    shutil.rmtree(path)


def _to_file(path: Path, chance: Random) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"")


def _flip(path: Path, chance: Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _start_offset(offset: int) -> Damage:
    def apply(data: Path, chance: Random) -> None:
        topic, _, partition = segments(data, pattern="[!_]*")[0].parent.name.rpartition("-")
        (data / "log-start-offset-checkpoint").write_text(f"0\n1\n{topic} {partition} {offset}\n")

    return apply


def _removed(name: str) -> Damage:
    def apply(data: Path, chance: Random) -> None:
        if not (data / name).exists():
            raise NotHere
        (data / name).unlink()

    return apply


def _directory_instead(path: Path) -> None:
    """Make a directory where a file may stand: a kill leaves files that are about to be renamed."""
    path.unlink(missing_ok=True)
    path.mkdir()


def _link_instead(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _replaced_by_directory(name: str) -> Damage:
    return lambda data, chance: _directory_instead(data / name)


def _offsets_flip(data: Path, chance: Random) -> None:
    _flip(chance.choice(segments(data, pattern="__consumer_offsets")), chance)


def _large_partition(data: Path, chance: Random) -> None:
    (data / "topics.json").unlink()
    shutil.copytree(segments(data)[0].parent, data / "large-9999999999")


KINDS: dict[str, Damage] = {
    "last segment deleted": _on_segment(_remove, 2, -1),
    "only segments of a log deleted": _on_directory(_remove_segments),
    "middle segment deleted": _on_segment(_remove, 3, 1),
    "first segment deleted": _on_segment(_remove, 2, 0),
    "segment truncated": _on_segment(_cut),
    "segment emptied": _on_segment(lambda path, chance: _write(path, b""), 2),
    "segment without its last batch": _on_segment(_cut_last_batch),
    "log without its last batch": _on_segment(_cut_last_batch, 1, -1),
    "garbage after the log": _on_segment(_append(GARBAGE), 1, -1),
    "zeros after the log": _on_segment(_append(bytes(100)), 1, -1),
    "garbage after a closed segment": _on_segment(_append(GARBAGE), 2, 0),
    "segment renamed": _on_segment(_rename),
    "segment is a directory": _on_segment(lambda path, chance: _directory_instead(path)),
    "segment is a symbolic link": _on_segment(_link, 1, -1),
    "segment beyond int64": lambda data, chance: _write(segments(data)[0].with_name("9" * 20 + ".log"), GARBAGE),
    "offsets batch flipped": _offsets_flip,
    "log deleted": _on_directory(lambda path, chance: shutil.rmtree(path)),
    "log of OffsetCommit v0 deleted": _remove_v0_log,
    "log renamed": _on_directory(lambda path, chance: path.rename(path.with_name("renamed-0"))),
    "log is a file": _on_directory(_to_file),
    "log is a symbolic link": _on_directory(_link),
    "swap of garbage": _beside(".swap", GARBAGE),
    "swap is empty": _beside(".swap", b""),
    "swap is a directory": lambda data, chance: _directory_instead(segments(data)[0].with_suffix(".log.swap")),
    "cleaned of garbage": _beside(".cleaned", GARBAGE),
    "deleted of garbage": _beside(".deleted", GARBAGE),
    "deleted is a full directory": lambda data, chance: (segments(data)[0].parent / "x.deleted" / "y").mkdir(
        parents=True
    ),
    "index of garbage": lambda data, chance: _write(segments(data)[0].with_suffix(".index"), GARBAGE),
    "index of garbage, last segment deleted": _on_segment(_index_instead, 2, -1),
    "time index of garbage": lambda data, chance: _write(segments(data)[0].with_suffix(".timeindex"), GARBAGE),
    "leader epochs of garbage": lambda data, chance: _write(
        segments(data)[0].parent / "leader-epoch-checkpoint", GARBAGE
    ),
    "leader epoch beyond int32": lambda data, chance: _write(
        segments(data)[0].parent / "leader-epoch-checkpoint", b"0\n1\n99999999999 0\n"
    ),
    "leader epoch with 5000 digits": lambda data, chance: _write(
        segments(data)[0].parent / "leader-epoch-checkpoint", b"0\n1\n" + b"9" * 5000 + b" 0\n"
    ),
    "log start offset beyond the end": _start_offset(10**9),
    "log start offset beyond int64": _start_offset(10**30),
    "log start offsets of garbage": _content("log-start-offset-checkpoint", GARBAGE),
    "log start offsets are empty": _content("log-start-offset-checkpoint", b""),
    "log start offsets are missing": _removed("log-start-offset-checkpoint"),
    "log start offset before the end": _start_offset(1),
    "log start offsets is a directory": _replaced_by_directory("log-start-offset-checkpoint"),
    "cleaner offsets of garbage": _content("cleaner-offset-checkpoint", GARBAGE),
    "recovery points of garbage": _content("kproto.recovery", GARBAGE),
    "recovery points with 5000 digits": _content("kproto.recovery", b"0\n1\nt 0 " + b"9" * 5000 + b" 0 0\n"),
    "recovery points is a directory": _replaced_by_directory("kproto.recovery"),
    "clean shutdown marker of garbage": _content("kproto.clean", GARBAGE),
    "clean shutdown marker is a directory": _replaced_by_directory("kproto.clean"),
    "write-ahead log of garbage": _content("kproto.journal.0", GARBAGE),
    "write-ahead log is a directory": _replaced_by_directory("kproto.journal.1"),
    "temporary file is a symbolic link": lambda data, chance: _link_instead(
        data / "topics.json.tmp", data.with_name("outside")
    ),
    "lock is a symbolic link": lambda data, chance: _link_instead(data / ".lock", data.with_name("outside")),
    "lock is a directory": _replaced_by_directory(".lock"),
    "topics of 200,000 brackets": _content("topics.json", b"[" * 200_000),
    "topics of garbage": _content("topics.json", GARBAGE),
    "topics are empty": _content("topics.json", b""),
    "topics are a list": _content("topics.json", b"[]"),
    "topics are missing": lambda data, chance: (data / "topics.json").unlink(),
    "topics is a directory": _replaced_by_directory("topics.json"),
    "topics without topics": _topics(lambda content: content["topics"].clear()),
    "topic with fewer partitions": _topics(
        lambda content: [topic.update(replicas=topic["replicas"][:1]) for topic in content["topics"]]
    ),
    "topic twice": _topics(lambda content: content["topics"].append(content["topics"][0])),
    "topic named ../../evil": _named("../../evil"),
    "topic with an absolute name": _named("/kproto-evil"),
    "topic named with NUL": _named("evil\0"),
    "topic named ..": _named(".."),
    "topic with a long name": _named("x" * 250),
    "topic without a name": _named(""),
    "topic with a number for a name": _named(7),
    "topic without partitions": _field("replicas", []),
    "topic without replicas": _field("replicas", [[]]),
    "topic with replicas of text": _field("replicas", "abc"),
    "topic with a large replica": _field("replicas", [[1 << 40]]),
    "topic with configs in a list": _field("configs", ["retention.ms"]),
    "topic with a wrong config": _field("configs", {"retention.ms": "soon"}),
    "topic with a short id": _field("id", "AAAA"),
    "topic with a number for an id": _field("id", 5),
    "brokers in a list": _topics(lambda content: content.update(brokers=["x"])),
    "broker without a number": _topics(lambda content: content.update(brokers={"x": {}})),
    "broker with a wrong config": _topics(lambda content: content.update(brokers={"1": {"message.max.bytes": "much"}})),
    "partition beyond int32": _large_partition,
}  # fmt: skip
"""The kinds of damage; each raises `NotHere` where the directory has nothing for it."""
