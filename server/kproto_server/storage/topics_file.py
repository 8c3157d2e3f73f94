"""The topics that a data directory knows: from a file of our own, or where real Kafka wrote it, by its directories."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto_server.storage.disk import read_all, replace_file
from kproto_server.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.disk import Disk

NAME = "topics.json"
VERSION = 1
PARTITION_METADATA = "partition.metadata"
PARTITION_DIRECTORY = re.compile(r"(.{1,249})-(0|[1-9][0-9]{0,9})")
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


def read_topics(disk: Disk) -> list[StoredTopic]:
    """Return the topics.

    Raises:
        StorageError: the file is not of its form.
        OSError: it can't be read.
    """
    if not disk.exists(NAME):
        return _of_directories(disk)
    try:
        read = json.loads(read_all(disk, NAME))
        return [_topic(one) for one in read["topics"]]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{NAME} is damaged ({error}); remove it to have the topics of the directories") from None


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


def _of_directories(disk: Disk) -> list[StoredTopic]:
    counts: dict[str, int] = {}
    ids: dict[str, bytes | None] = {}
    for name in disk.names(""):
        found = PARTITION_DIRECTORY.fullmatch(name)
        if found is None or name.endswith((".tmp",)) or not any(n.endswith(".log") for n in disk.names(name)):
            continue
        topic, partition = found[1], int(found[2])
        counts[topic] = max(counts.get(topic, 0), partition + 1)
        ids.setdefault(topic, None)
        if ids[topic] is None and disk.exists(f"{name}/{PARTITION_METADATA}"):
            told = TOPIC_ID.search(read_all(disk, f"{name}/{PARTITION_METADATA}").decode("utf-8", "replace"))
            ids[topic] = topic_id_of(told[1]) if told else None
    return [
        StoredTopic(name, ids[name], (), {}, count)
        for name, count in sorted(counts.items())
        if name[:18] != "__cluster_metadata"
    ]


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
