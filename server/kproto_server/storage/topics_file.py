"""The topics of a data directory: from ``topics.json``, or from the partition directories of a real broker.

server/FORMAT.md has the format of the file.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kproto.errors import LogError
from kproto.records.segment_files import LEADER_EPOCHS, LOG_SUFFIX
from kproto_server.storage.disk import read_all, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kproto_server.storage.disk import Disk

T = TypeVar("T")

NAME = "topics.json"
VERSION = 1
"""Version of all files of kproto in the directory: an older kproto refuses a directory with a higher one."""
PARTITION_METADATA = "partition.metadata"
TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
PARTITION_DIRECTORY = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
PARTITIONS_MAX = 100_000
"""Partitions of a topic whose number comes from the names of its directories."""
CLUSTER_METADATA = "__cluster_metadata"
NO_CONFIGS: Mapping[str, Mapping[str, str]] = {}
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
    topics = _read(disk, lambda content: _distinct([_topic(fields) for fields in content["topics"]]))
    return _merged(topics, _read_directories(disk)) if include_directories else topics


def read_broker_configs(disk: Disk) -> dict[str, dict[str, str]]:
    """Return the dynamic configs of the file by node id; those of all nodes have an empty one.

    Raises:
        LogError: the file is damaged, or has another version.
        OSError: the file cannot be read.
    """
    if not disk.exists(NAME):
        return {}
    return _read(disk, lambda content: {_node(name): _configs(one) for name, one in content.get("brokers", {}).items()})


def _read(disk: Disk, parse: Callable[[dict[str, Any]], T]) -> T:
    """Return what ``parse`` makes of the content of the file; whatever it raises is damage."""
    try:
        content = json.loads(read_all(disk, NAME))
        version = content["version"]
        if version == VERSION:
            return parse(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}" if isinstance(error, KeyError | RecursionError) else error
        raise LogError(f"{NAME} is damaged ({reason}); remove it to take the topics from the directories") from None
    raise LogError(f"{NAME} has version {version!r}, this kproto reads version {VERSION}")


def _topic(fields: dict[str, Any]) -> StoredTopic:
    name = fields["name"]
    if not (isinstance(name, str) and TOPIC_NAME.fullmatch(name)) or name in (".", ".."):
        raise ValueError(f"topic name {name!r:.300}")
    replicas = tuple(tuple(map(_replica, partition)) for partition in fields["replicas"])
    if not replicas or not all(replicas):
        raise ValueError(f"topic {name} has no partitions, or one without replicas")
    return StoredTopic(name, parse_topic_id(fields["id"]), replicas, _configs(fields["configs"]), len(replicas))


def _replica(node: Any) -> int:
    if not isinstance(node, int) or not 0 <= node < 1 << 31:
        raise ValueError(f"replica {node!r:.50}")
    return int(node)


def _node(name: str) -> str:
    if name and not (name.isascii() and name.isdigit()):
        raise ValueError(f"broker {name!r:.50}")
    return name


def _configs(configs: dict[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in configs.items()}


def _distinct(topics: list[StoredTopic]) -> list[StoredTopic]:
    """Return the topics; no two have one name, or one id."""
    seen: set[str | bytes] = set()
    for topic in topics:
        ids = {topic.name, topic.topic_id} - {bytes(16), None}
        if ids & seen:
            raise ValueError(f"two topics {topic.name}, or with its id")
        seen |= {one for one in ids if one is not None}
    return topics


def write_topics(
    disk: Disk,
    topics: Iterable[StoredTopic],
    broker_configs: Mapping[str, Mapping[str, str]] = NO_CONFIGS,
    before_rename: Callable[[], object] | None = None,
) -> None:
    """Write the file with all of these topics, and the dynamic configs by node id; return when it is durable.

    ``before_rename``: as for `replace_file`.

    Raises:
        OSError: the file has its old content.
    """
    content: dict[str, Any] = {
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
    if broker_configs:
        content["brokers"] = {name: dict(configs) for name, configs in broker_configs.items()}
    replace_file(disk, NAME, json.dumps(content, indent=1).encode(), before_rename=before_rename)


def partition_directories(disk: Disk) -> Iterator[tuple[str, int, str]]:
    """Yield ``(topic, partition, directory)`` of each log, without Kafka's ``__cluster_metadata``."""
    for name in disk.names(""):
        match = PARTITION_DIRECTORY.fullmatch(name)
        if match is None or match[1] in (CLUSTER_METADATA, ".", ".."):
            continue
        if any(file == LEADER_EPOCHS or file.endswith(LOG_SUFFIX) for file in disk.names(name)):
            yield match[1], int(match[2]), name


def _read_directories(disk: Disk) -> list[StoredTopic]:
    counts: dict[str, int] = {}
    ids: dict[str, bytes | None] = {}
    for topic, partition, directory in partition_directories(disk):
        if partition >= PARTITIONS_MAX:
            raise LogError(f"{directory} is in the way: without {NAME}, partitions have numbers below {PARTITIONS_MAX}")
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
        topic_id = base64.urlsafe_b64decode(text + "==")
    except binascii.Error as error:
        raise ValueError(f"no topic id {text!r:.50}") from error
    if len(topic_id) != 16:
        raise ValueError(f"no topic id {text!r:.50}")
    return topic_id
