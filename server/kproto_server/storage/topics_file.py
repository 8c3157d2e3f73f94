"""The topics that a data directory knows: from a file of our own, or where real Kafka wrote it, by its directories."""

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
PARTITION_METADATA = "partition.metadata"
PARTITION_DIRECTORY = re.compile(r"(.{1,249})-(0|[1-9][0-9]{0,9})")
CLUSTER_METADATA = "__cluster_metadata"
TOPIC_ID = re.compile(r"topic_id: ([A-Za-z0-9_-]{22})")


class StoredTopic(NamedTuple):
    """A topic as it is remembered."""

    name: str
    topic_id: bytes | None
    """None: Kafka's directories tell none, as before 2.8."""
    replicas: tuple[tuple[int, ...], ...]
    """Of each partition; empty where nobody knows."""
    configs: dict[str, str]
    partition_count: int


def read_topics(disk: Disk, *, of_directories: bool = False) -> list[StoredTopic]:
    """Return the topics: of the file, if there is one, or else of the directories.

    Args:
        of_directories: directories tell of topics, and of partitions, that the file does not know.

    Raises:
        LogError: the file is not of its form.
        OSError: it can't be read.
    """
    if not disk.exists(NAME):
        return _of_directories(disk)
    try:
        read = json.loads(read_all(disk, NAME))
        known = [_topic(one) for one in read["topics"]]
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(f"{NAME} is damaged ({error}); remove it to have the topics of the directories") from None
    return _with_directories(known, _of_directories(disk)) if of_directories else known


def _topic(read: dict[str, Any]) -> StoredTopic:
    replicas = tuple(tuple(int(node) for node in partition) for partition in read["replicas"])
    configs = {str(name): str(value) for name, value in read["configs"].items()}
    return StoredTopic(str(read["name"]), topic_id_of(read["id"]), replicas, configs, len(replicas))


def write_topics(disk: Disk, topics: Iterable[StoredTopic]) -> None:
    """Remember these topics, all of them or none.

    Raises:
        OSError: what was remembered before still is.
    """
    content = {
        "version": VERSION,
        "topics": [
            {
                "name": topic.name,
                "id": text_of(topic.topic_id or bytes(16)),
                "replicas": [list(partition) for partition in topic.replicas],
                "configs": topic.configs,
            }
            for topic in topics
        ],
    }
    replace_file(disk, NAME, json.dumps(content, indent=1).encode())


def partition_directories(disk: Disk) -> Iterator[tuple[str, int, str]]:
    """Yield ``(topic, partition, directory)`` of all that are logs, but for that of Kafka's own metadata."""
    for name in disk.names(""):
        found = PARTITION_DIRECTORY.fullmatch(name)
        if found is None or found[1] == CLUSTER_METADATA:
            continue
        if any(file == LEADER_EPOCHS or file.endswith(LOG_SUFFIX) for file in disk.names(name)):
            yield found[1], int(found[2]), name


def _of_directories(disk: Disk) -> list[StoredTopic]:
    counts: dict[str, int] = {}
    ids: dict[str, bytes | None] = {}
    for topic, partition, directory in partition_directories(disk):
        counts[topic] = max(counts.get(topic, 0), partition + 1)
        ids.setdefault(topic, None)
        if ids[topic] is None and disk.exists(f"{directory}/{PARTITION_METADATA}"):
            told = TOPIC_ID.search(read_all(disk, f"{directory}/{PARTITION_METADATA}").decode("utf-8", "replace"))
            ids[topic] = topic_id_of(told[1]) if told else None
    return [StoredTopic(name, ids[name], (), {}, count) for name, count in sorted(counts.items())]


def _with_directories(known: list[StoredTopic], found: list[StoredTopic]) -> list[StoredTopic]:
    by_name = {topic.name: topic for topic in known}
    for topic in found:
        before = by_name.setdefault(topic.name, topic)
        by_name[topic.name] = before._replace(
            topic_id=topic.topic_id or before.topic_id,
            partition_count=max(before.partition_count, topic.partition_count),
        )
    return list(by_name.values())


def text_of(topic_id: bytes) -> str:
    """Return the 22 characters by which Kafka names an id."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def topic_id_of(text: str) -> bytes:
    """Return the id that 22 characters name.

    Raises:
        ValueError: they name none.
    """
    try:
        return base64.urlsafe_b64decode(text + "==")
    except binascii.Error as error:
        raise ValueError(f"no topic id {text!r}") from error
