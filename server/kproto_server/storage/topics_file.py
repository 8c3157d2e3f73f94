"""The topics of a data directory: from ``topics.json``, or from the partition directories of a real broker.

server/FORMAT.md has the format of the file.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import LogError
from kproto.records.segment_files import LEADER_EPOCHS, LOG_SUFFIX
from kproto_server.storage.disk import read_all, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.storage.disk import Disk

NAME = "topics.json"
VERSION = 1
"""Version of all files of kproto in the directory: an older kproto refuses a directory with a higher one."""
PARTITION_METADATA = "partition.metadata"
PARTITION_DIRECTORY = re.compile(r"(.{1,249})-(0|[1-9][0-9]{0,9})")
CLUSTER_METADATA = "__cluster_metadata"
TOPIC_ID = re.compile(r"topic_id: ([A-Za-z0-9_-]{22})")


class StoredTopic(NamedTuple):
    """A topic of the data directory."""

    name: str
    topic_id: bytes | None
    """None: unknown, in a directory of a broker before 2.8."""
    replicas: tuple[tuple[int, ...], ...]
    """Node ids for each partition; empty if unknown."""
    configs: dict[str, str]
    partition_count: int


def read_topics(disk: Disk, *, include_directories: bool = False) -> list[StoredTopic]:
    """Return the topics of the file, or those of the directories if there is no file.

    Args:
        include_directories: add topics, partitions and topic ids of the directories to those of the file.

    Raises:
        LogError: the file is damaged, or has another version.
        OSError: the file cannot be read.
    """
    if not disk.exists(NAME):
        return _read_directories(disk)
    try:
        content = json.loads(read_all(disk, NAME))
        version = content["version"]
        topics = [_topic(fields) for fields in content["topics"]] if version == VERSION else []
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"{NAME} is damaged ({error}); remove it to take the topics from the directories") from None
    if version != VERSION:
        raise LogError(f"{NAME} has version {version}, this kproto reads version {VERSION}")
    return _merged(topics, _read_directories(disk)) if include_directories else topics


def _topic(fields: dict[str, Any]) -> StoredTopic:
    replicas = tuple(tuple(int(node) for node in partition) for partition in fields["replicas"])
    configs = {str(name): str(value) for name, value in fields["configs"].items()}
    return StoredTopic(str(fields["name"]), parse_topic_id(fields["id"]), replicas, configs, len(replicas))


def write_topics(disk: Disk, topics: Iterable[StoredTopic]) -> None:
    """Write the file with all of these topics; return when it is durable.

    Raises:
        OSError: the file has its old content.
    """
    content = {
        "version": VERSION,
        "topics": [
            {
                "name": topic.name,
                "id": format_topic_id(topic.topic_id or bytes(16)),
                "replicas": [list(partition) for partition in topic.replicas],
                "configs": topic.configs,
            }
            for topic in topics
        ],
    }
    replace_file(disk, NAME, json.dumps(content, indent=1).encode())


def partition_directories(disk: Disk) -> Iterator[tuple[str, int, str]]:
    """Yield ``(topic, partition, directory)`` of each log, without Kafka's ``__cluster_metadata``."""
    for name in disk.names(""):
        match = PARTITION_DIRECTORY.fullmatch(name)
        if match is None or match[1] == CLUSTER_METADATA:
            continue
        if any(file == LEADER_EPOCHS or file.endswith(LOG_SUFFIX) for file in disk.names(name)):
            yield match[1], int(match[2]), name


def _read_directories(disk: Disk) -> list[StoredTopic]:
    counts: dict[str, int] = {}
    ids: dict[str, bytes | None] = {}
    for topic, partition, directory in partition_directories(disk):
        counts[topic] = max(counts.get(topic, 0), partition + 1)
        ids.setdefault(topic, None)
        if ids[topic] is None and disk.exists(f"{directory}/{PARTITION_METADATA}"):
            metadata = read_all(disk, f"{directory}/{PARTITION_METADATA}").decode("utf-8", "replace")
            match = TOPIC_ID.search(metadata)
            ids[topic] = parse_topic_id(match[1]) if match else None
    return [StoredTopic(name, ids[name], (), {}, count) for name, count in sorted(counts.items())]


def _merged(from_file: list[StoredTopic], from_directories: list[StoredTopic]) -> list[StoredTopic]:
    by_name = {topic.name: topic for topic in from_file}
    for topic in from_directories:
        known = by_name.setdefault(topic.name, topic)
        by_name[topic.name] = known._replace(
            topic_id=topic.topic_id or known.topic_id, partition_count=max(known.partition_count, topic.partition_count)
        )
    return list(by_name.values())


def format_topic_id(topic_id: bytes) -> str:
    """Return the 22 characters of base64url that Kafka writes for a topic id."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def parse_topic_id(text: str) -> bytes:
    """Return the topic id of 22 characters of base64url.

    Raises:
        ValueError: the characters are not base64url.
    """
    try:
        return base64.urlsafe_b64decode(text + "==")
    except binascii.Error as error:
        raise ValueError(f"no topic id {text!r}") from error
