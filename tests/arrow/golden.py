"""The recorded logs as rows of kproto's tables, made from the output of Kafka's dump tool alone."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tests.fixture_files import golden_log
from tests.records.dumps import Line, lines_of

Row = dict[str, Any]

RELEASES = ("2.0.1", "2.1.1", "4.4.0")
DUMPS = {"2.0.1": "dump-by-2.8.2.txt", "2.1.1": "dump-by-2.8.2.txt", "4.4.0": "dump.txt"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT_KEY = re.compile(r"offset_commit::group=(?P<group>.*),partition=(?P<topic>.*)-(?P<partition>\d+)")
TEXT_VALUE = re.compile(r"offset=(?P<offset>\d+)(,metadata=(?P<metadata>.*))?")


def directory(release: str) -> Path:
    return golden_log(release) / "__consumer_offsets-0"


def moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds in (None, -1) else EPOCH + timedelta(milliseconds=milliseconds or 0)


class Printed(NamedTuple):
    """A record in a dump, with the fields of its batch and the outcome of its transaction."""

    batch: dict[str, str]
    line: Line
    outcome: str


def printed(release: str) -> Iterator[Printed]:
    """Yield the records of a dump, with end markers."""
    lines = list(lines_of((directory(release) / DUMPS[release]).read_text()))
    batch: dict[str, str] = {}
    for index, line in enumerate(lines):
        if line.is_batch:
            batch = line.fields
            continue
        ends = (later.fields["endtxnmarker"] for later in lines[index:] if "endtxnmarker" in later.fields)
        outcome = (
            {"commit": "committed", "abort": "aborted"}[next(ends)] if batch["istransactional"] == "true" else "none"
        )
        yield Printed(batch, line, outcome)


def commits(release: str) -> list[Row]:
    """Return the rows of commits, with the columns that the dump of this release prints."""
    rows = []
    for batch, line, outcome in printed(release):
        columns = _commit_of_4(line) if release == "4.4.0" else _commit_of_2(line)
        if columns is not None:
            identity: Row = {"log_offset": int(line.fields["offset"]), "log_ts": moment(int(line.fields["createtime"]))}
            producer_id = int(batch["producerid"]) if outcome != "none" else None
            rows.append(identity | columns | {"txn_state": outcome, "producer_id": producer_id})
    return rows


def _commit_of_4(line: Line) -> Row | None:
    key = json.loads(line.key or '{"type":""}')
    if key["type"] not in ("0", "1"):
        return None
    row = {"group_id": key["data"]["group"], "topic": key["data"]["topic"], "partition": key["data"]["partition"]}
    if line.payload == "<DELETE>":
        return row | _tombstone()
    value = json.loads(line.payload or "")
    data = value["data"]
    topic_id = data.get("topicId")
    epoch = data.get("leaderEpoch", -1)
    return row | {
        "tombstone": False,
        "value_version": int(value["version"]),
        "committed_offset": data["offset"],
        "leader_epoch": None if epoch == -1 else epoch,
        "topic_id": None if topic_id is None else base64.urlsafe_b64decode(topic_id + "=="),
        "metadata": data["metadata"],
        "commit_ts": moment(data["commitTimestamp"]),
        "expire_ts": moment(data.get("expireTimestamp")),
    }


def _tombstone() -> Row:
    names = ("value_version", "committed_offset", "leader_epoch", "topic_id", "metadata", "commit_ts", "expire_ts")
    return {"tombstone": True, **dict.fromkeys(names)}


def _commit_of_2(line: Line) -> Row | None:
    key = TEXT_KEY.fullmatch(line.key or "")
    if key is None:
        return None
    row = {"group_id": key["group"], "topic": key["topic"], "partition": int(key["partition"])}
    if line.payload == "<DELETE>":
        return row | _tombstone()
    value = TEXT_VALUE.fullmatch(line.payload or "")
    assert value is not None
    return row | {"tombstone": False, "committed_offset": int(value["offset"]), "metadata": value["metadata"] or ""}


def groups(release: str) -> list[Row]:
    """Return the rows of group_metadata, with the columns that the dump of this release prints."""
    rows = []
    for _, line, _ in printed(release):
        columns = _group_of_4(line) if release == "4.4.0" else _group_of_2(line)
        if columns is not None:
            identity: Row = {"log_offset": int(line.fields["offset"]), "log_ts": moment(int(line.fields["createtime"]))}
            rows.append(identity | columns)
    return rows


def _group_of_4(line: Line) -> Row | None:
    key = json.loads(line.key or '{"type":""}')
    if key["type"] not in ("2", "3", "5"):
        return None
    is_classic = key["type"] == "2"
    row = {
        "group_id": key["data"]["group" if is_classic else "groupId"],
        "kind": "classic" if is_classic else "consumer",
        "member_id": key["data"].get("memberId"),
        "tombstone": line.payload == "<DELETE>",
    }
    if line.payload == "<DELETE>":
        return row
    data = json.loads(line.payload or "")["data"]
    if not is_classic:
        topics = sorted(data["subscribedTopicNames"]) if key["type"] == "5" else None
        return row | {"protocol_type": "consumer", "generation": data.get("epoch"), "subscribed_topics": topics}
    members = data["members"]
    topics = sorted({topic for member in members for topic in member["subscription"]["topics"]})
    return row | {
        "protocol_type": data["protocolType"],
        "generation": data["generation"],
        "protocol": data["protocol"],
        "leader": data["leader"],
        "state_ts": moment(data["currentStateTimestamp"]),
        "member_count": len(members),
        "subscribed_topics": topics if data["protocolType"] == "consumer" else None,
    }


def _group_of_2(line: Line) -> Row | None:
    found = re.fullmatch("group_metadata::group=(.*)", line.key or "")
    if found is None:
        return None
    row = {"group_id": found[1], "kind": "classic", "member_id": None, "tombstone": line.payload == "<DELETE>"}
    if line.payload == "<DELETE>":
        return row
    data = json.loads(line.payload or "")
    return row | {
        "protocol_type": data["protocolType"],
        "generation": data["generationId"],
        "protocol": data["protocol"],
        "member_count": 0 if data["assignment"] == "{}" else data["assignment"].count("=["),
    }
