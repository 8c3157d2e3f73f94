"""What Kafka's tools printed about the logs of `tests.spark.record_tools`, as rows like those of the jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from tests.records.dumps import Line, lines_of
from tests.spark.record_tools import FOLDER, OFFSETS, TRANSACTIONS

GROUP_TYPES = {"2": "classic", "3": "consumer"}
Partition = tuple[str, str, int]
"""Group, topic and partition."""


class Described(NamedTuple):
    """A line of ``kafka-consumer-groups --describe``."""

    offset: int
    end: int
    lag: int
    member_id: str | None


class Commit(NamedTuple):
    """A record about an offset; None: a tombstone."""

    log_partition: int
    log_offset: int
    created_ms: int
    key: Partition
    offset: int | None
    counts: bool
    """Whether it is not of a transaction, or of one that was committed."""
    expire_ms: int | None
    """Printed by 4.x only."""
    commit_ms: int | None


class GroupRecord(NamedTuple):
    """A record about a group; members None: removed, or a group of KIP-848."""

    log_partition: int
    log_offset: int
    created_ms: int
    group_id: str
    kind: str
    generation: int | None
    members: int | None


class Printed:
    """The output of the tools of one release."""

    def __init__(self, release: str) -> None:
        self.release = release
        self.folder = FOLDER / release

    def _text(self, name: str) -> str:
        return (self.folder / f"{name}.txt").read_text(encoding="utf-8")

    @cached_property
    def described(self) -> dict[Partition, Described]:
        """What the group tool printed, by partition; up to 2.0 it names no group."""
        found = {}
        for path in sorted(self.folder.glob("describe-*.txt")):
            group = path.stem.removeprefix("describe-")
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                if words := line.split():
                    topic, partition, offset, end, lag, member = words[-8:-2]
                    key = (group, topic, int(partition))
                    found[key] = Described(int(offset), int(end), int(lag), None if member == "-" else member)
        return found

    @property
    def ends(self) -> dict[tuple[str, int], int]:
        lines = (line.split(":") for line in self._text("ends").split())
        return {(topic, int(partition)): int(end) for topic, partition, end in lines}

    def lines(self, partition: str) -> list[Line]:
        """Return what the dump tool printed about a partition."""
        return list(lines_of(self._text(f"dump-{partition}")))

    def offsets_lines(self) -> Iterator[tuple[int, Line]]:
        for path in sorted(self.folder.glob(f"dump-{OFFSETS}-*.txt")):
            number = int(path.stem.rpartition("-")[2])
            yield from ((number, line) for line in lines_of(path.read_text(encoding="utf-8")))

    @property
    def is_cut(self) -> bool:
        """Whether the dump tool failed at a tombstone: up to 2.0 it does."""
        tombstones = [line for _, line in self.offsets_lines() if line.fields.get("valuesize") == "-1"]
        return any(line.payload is None for line in tombstones)

    @cached_property
    def commits(self) -> list[Commit]:
        lines, committed = list(self.offsets_lines()), set()
        batch: dict[str, str] = {}
        for _, line in lines:
            batch = line.fields if line.is_batch else batch
            if line.fields.get("endtxnmarker") == "commit":
                committed.add((batch | line.fields)["producerid"])
        found = []
        for number, line in lines:
            batch = line.fields if line.is_batch else batch
            if line.key is None or line.payload is None or (key := _commit_key(line.key)) is None:
                continue
            fields = batch | line.fields
            counts = fields.get("istransactional") != "true" or fields["producerid"] in committed
            position = number, int(line.fields["offset"]), int(line.fields["createtime"])
            found.append(Commit(*position, key, _offset(line.payload), counts, *_times(line.payload)))
        return found

    @property
    def groups(self) -> list[GroupRecord]:
        found = []
        for number, line in self.offsets_lines():
            if line.key is not None and line.payload is not None and (named := _group_key(line.key)) is not None:
                position = number, int(line.fields["offset"]), int(line.fields["createtime"])
                found.append(GroupRecord(*position, *named, *_generation(line.payload)))
        return found

    @property
    def batches(self) -> list[dict[str, Any]]:
        """A dict for each batch, or record of a release whose tool prints no batches, with topic and partition."""
        found = []
        for path in sorted(self.folder.glob("dump-*.txt")):
            topic, _, number = path.stem.removeprefix("dump-").rpartition("-")
            lines = list(lines_of(path.read_text(encoding="utf-8")))
            batches = [line for line in lines if line.is_batch] or lines
            found += [{"topic": topic, "partition": int(number), **line.fields} for line in batches]
        return found

    @property
    def transactions(self) -> dict[str, tuple[str, int, int, int, int, tuple[str, ...]]]:
        """The last record of each transactional id: state, producer, epoch, timeout, time of the change, partitions."""
        found = {}
        if (self.folder / f"dump-{TRANSACTIONS}-0.txt").exists():
            for line in self.lines(f"{TRANSACTIONS}-0"):
                if line.key is not None and line.payload is not None:
                    found[_transactional_id(line.key)] = _transaction(line.payload)
        return found

    @property
    def listed_transactions(self) -> dict[str, tuple[str, int]]:
        """State and producer of each transactional id, as the transactions tool lists them; its output is of 4.x."""
        rows = [line.split() for line in self._text("transactions").splitlines()[1:] if line]
        return {name: (state, int(producer)) for name, _, producer, state in rows}


def _commit_key(key: str) -> Partition | None:
    if key.startswith("offset::"):
        group, topic, partition = key.removeprefix("offset::").split(":")
    elif match := re.fullmatch(r"offset_commit::group=(.*),partition=(.*)-(\d+)", key):
        group, topic, partition = match.groups()
    elif key.startswith('{"type":"1"'):
        group, topic, partition = json.loads(key)["data"].values()
    else:
        return None
    return group, topic, int(partition)


def _group_key(key: str) -> tuple[str, str] | None:
    if match := re.fullmatch(r'(?:metadata::|group_metadata::group=|\{"metadata":")(.*?)(?:"\})?', key):
        return match[1], "classic"
    if not key.startswith('{"type"'):
        return None
    found = json.loads(key)
    kind = GROUP_TYPES.get(found["type"])
    return None if kind is None else (next(iter(found["data"].values())), kind)


def _offset(payload: str) -> int | None:
    if payload == "<DELETE>":
        return None
    if payload.startswith("{"):
        return int(json.loads(payload)["data"]["offset"])
    return int(payload.removeprefix("offset=").partition(":")[0])


def _times(payload: str) -> tuple[int | None, int | None]:
    data = json.loads(payload)["data"] if payload.startswith("{") else {}
    return data.get("expireTimestamp"), data.get("commitTimestamp")


def _generation(payload: str) -> tuple[int | None, int | None]:
    if payload == "<DELETE>":
        return None, None
    if not payload.startswith("{"):
        return int(payload.split(":")[2]), payload.count("=[")
    found = json.loads(payload)
    if "data" not in found:
        return found["generationId"], found["assignment"].count("=[")
    data = found["data"]
    return (data["epoch"], None) if "epoch" in data else (data["generation"], len(data["members"]))


def _transactional_id(key: str) -> str:
    if key.startswith("{"):
        return str(json.loads(key)["data"]["transactionalId"])
    return re.sub("^(transaction_metadata::)?transactionalId=", "", key)


def _transaction(payload: str) -> tuple[str, int, int, int, int, tuple[str, ...]]:
    if payload.startswith("{"):
        data = json.loads(payload)["data"]
        topics = data["transactionPartitions"] or []
        partitions = tuple(f"{topic['topic']}-{one}" for topic in topics for one in topic["partitionIds"])
        numbers = ("producerId", "producerEpoch", "transactionTimeoutMs", "transactionLastUpdateTimestampMs")
        return data["transactionStatus"], *(data[name] for name in numbers), partitions
    fields = dict(re.findall(r"(\w+)[:=](?:\w*\()?([^,)]*)", payload))
    partitions = tuple(one for one in fields["partitions"].strip("[]").split(", ") if one)
    numbers = ("producerId", "producerEpoch", "txnTimeoutMs", "txnLastUpdateTimestamp")
    return fields["state"], *(int(fields[name]) for name in numbers), partitions
