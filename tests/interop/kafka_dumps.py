"""Kafka's DumpLogSegments on a log.dir: the tool of each release must print the records that kproto decodes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from kproto.records.coordinator import CoordinatorRecord
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto.records.offsets_topic import read_offsets_record
from tests.oracle.java import JVM_FLAGS
from tests.oracle.releases import classpath, fetch_tools, find_class, number
from tests.records.dumps import (
    as_json,
    as_text_of_2_0,
    as_text_of_2_8,
    batch_fields,
    decoded,
    lines_of,
    payload_json,
    record_fields,
)
from tests.requirements import need_java, need_maven

LIMIT_S = 120.0
COMPLAINTS = ("Found ", "Exception", "isvalid: false", "Corrupt")
HEADING = "Dumping "


def offsets_segments(log_dir: Path) -> list[Path]:
    """Return the segments of the offsets topic that are not empty."""
    return sorted(path for path in log_dir.glob("__consumer_offsets-*/*.log") if path.stat().st_size)


def written_records(log_dir: Path) -> int:
    """Return the number of records that all partitions had before compaction."""
    ends: dict[str, int] = {}
    for segment in offsets_segments(log_dir):  # sorted, so the last one of a partition decides
        for _, batch, _ in decoded(segment.read_bytes()):
            ends[segment.parent.name] = batch.last_offset + 1
    return sum(ends.values())


def has_lost_records(log_dir: Path) -> bool:
    """Whether compaction has removed records; it may be running in this log.dir."""
    try:
        records = (p for path in offsets_segments(log_dir) for *_, p in decoded(path.read_bytes()))
        return sum(map(len, records)) < written_records(log_dir)
    except FileNotFoundError:  # its placed is being taken
        return False


def check_dump(release: str, log_dir: Path) -> int:
    """Check that the tool prints all records and no complaint; return the number of records."""
    segments = offsets_segments(log_dir)
    sections = dump(release, segments)
    assert len(sections) == len(segments)
    return sum(_check_section(release, text, segment) for text, segment in zip(sections, segments, strict=True))


def dump(release: str, segments: list[Path]) -> list[str]:
    """Return the output of the release's tool for each segment."""
    java = need_java()
    need_maven()
    tools = fetch_tools(release)
    files = ",".join(map(str, segments))
    command = [
        java,
        *JVM_FLAGS,
        "-Dstdout.encoding=UTF-8",
        "-cp",
        classpath(tools),
        find_class(tools, "DumpLogSegments"),
    ]
    options = ["--offsets-decoder", "--deep-iteration", "--files", files]
    done = subprocess.run([*command, *options], capture_output=True, encoding="utf-8", check=False, timeout=LIMIT_S)
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if any(word in line for word in COMPLAINTS)]
    assert (done.returncode, complaints) == (0, [])
    return done.stdout.split(HEADING)[1:]


def _check_section(release: str, text: str, segment: Path) -> int:
    lines = lines_of(text)
    count = 0
    for position, batch, records in decoded(segment.read_bytes()):
        if number(release) >= (2, 4):
            line = next(lines)
            assert line.fields.items() <= batch_fields(position, batch).items()
            assert "crc" in line.fields
        for placed in records:
            line = next(lines)
            assert line.fields.items() <= record_fields(placed).items()
            if batch.is_control:
                assert "endtxnmarker" in line.fields
                continue
            found = read_offsets_record(placed.record.key, placed.record.value)
            assert isinstance(found, CoordinatorRecord)
            assert _printed(release, line.key, line.payload) == _expected(release, found)
            count += 1
    assert next(lines, None) is None
    return count


def _printed(release: str, key: str | None, payload: str | None) -> tuple[Any, Any]:
    if key is None or payload is None:
        return None, None
    if number(release) >= (3, 7):
        return json.loads(key), payload_json(payload)
    if number(release) < (2, 4) and key.startswith("{"):
        group = json.loads(payload)
        return json.loads(key), {name: group[name] for name in ("protocolType", "protocol", "generationId")}
    return key, payload


def _expected(release: str, found: CoordinatorRecord) -> tuple[Any, Any]:
    if number(release) >= (3, 7):
        return as_json(found)
    if number(release) >= (2, 4):
        return as_text_of_2_8(found)
    match found.key, found.value:
        case _, None:  # these tools do not print the keys of tombstones
            return None, None
        case GroupMetadataKey() as key, GroupMetadataValue() as value:
            group = {"protocolType": value.protocol_type, "protocol": value.protocol, "generationId": value.generation}
            return {"metadata": key.group}, group
    return as_text_of_2_0(found)
