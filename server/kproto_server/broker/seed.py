"""What a broker has from its start on: topics, records, offsets, ACLs, from a YAML file or as a value of Python.

Theory of operation. `checked_seed` reads and checks everything without a broker, and reports all mistakes at once, each
with its path in the file. `Seed.apply` then has the broker do what a test could have it do (`BrokerTopics`,
`BrokerGroups`), before the first request of a client and after each reset.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import KprotoError, UsageError
from kproto_server.broker.acls import AclDescription, creation_of
from kproto_server.broker.controls import BrokerControls
from kproto_server.broker.producing import NewRecord
from kproto_server.cluster.cluster import Cluster
from kproto_server.cluster.topics import INTERNAL_TOPICS, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.configuration.settings import Settings
    from kproto_server.network.server import Server
    from kproto_server.releases.kafka_version import KafkaVersion

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
NO_USERS = "users are no part of a seed: give them by --user NAME:PASSWORD, or Broker(users=...)"
SEED = ("topics", "groups", "acls")
TOPIC = ("partitions", "replication_factor", "configs", "records")
RECORD = ("value", "key", "headers", "timestamp_ms", "partition")
GROUP = ("offsets",)
OFFSET = ("offset", "metadata")
ACL_NEEDS = ("principal", "operation", "resource_type")


class SeedTopic(NamedTuple):
    """A topic with its records."""

    name: str
    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, str]
    records: tuple[NewRecord, ...]


class SeedOffset(NamedTuple):
    """An offset of a group."""

    group_id: str
    topic: str
    partition: int
    offset: int
    metadata: str


class Seed(NamedTuple):
    """What a broker has from its start on."""

    topics: tuple[SeedTopic, ...]
    offsets: tuple[SeedOffset, ...]
    acls: tuple[AclDescription, ...] = ()
    source: str = ""
    """Begins each line about a mistake: the path of the file."""

    def begin(self, server: Server) -> None:
        """Have a broker make all of it when it is ready, and after each reset, unless its data directory has topics."""
        broker = BrokerControls(lambda action: action(server))

        def fill() -> None:
            if all(topic.internal for topic in server.state.cluster.topics.values()):
                server.finish_loading()  # no coordinator may respond that it loads: the broker's thread can't wait
                self.apply(broker)

        server.fill = fill

    def apply(self, broker: BrokerControls) -> None:
        """Have a broker without topics make all of it.

        Raises:
            UsageError: the broker refuses something; the text has a line for each.
        """
        problems = _Problems(self.source)
        for topic in self.topics:
            path = f"topics.{topic.name}"
            with problems.of(path):
                broker.topics.create(
                    topic.name,
                    partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    configs=topic.configs,
                )
                if topic.records:
                    broker.topics.produce(topic.name, records=topic.records)
        groups: dict[tuple[str, str], dict[tuple[str, int], int]] = {}
        for one in self.offsets:
            groups.setdefault((one.group_id, one.metadata), {})[one.topic, one.partition] = one.offset
        for (group_id, metadata), offsets in groups.items():
            with problems.of(f"groups.{group_id}"):
                broker.groups.commit(group_id, offsets, metadata=metadata)
        for number, acl in enumerate(self.acls):
            with problems.of(f"acls[{number}]"):
                broker.acls.add(
                    acl.principal,
                    acl.operation,
                    acl.resource_type,
                    acl.name,
                    permission=acl.permission,
                    host=acl.host,
                    pattern_type=acl.pattern_type,
                )
        problems.check()


class _Problems:
    """Mistakes, each with its path."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines: list[str] = []
        self._path = ""

    def add(self, path: str, text: str) -> None:
        self._lines.append(f"{self._source}{path}: {text}")

    def of(self, path: str) -> _Problems:
        """Return a context manager that takes an error of the broker for a mistake at this path."""
        self._path = path
        return self

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, KprotoError):
            self.add(self._path, str(error))
            return True
        return False

    def check(self) -> None:
        """Raise all mistakes.

        Raises:
            UsageError: there are some; the text has a line for each.
        """
        if self._lines:
            raise UsageError("\n".join(self._lines))


def checked_seed(
    given: str | Mapping[str, Any] | Seed, kafka_version: KafkaVersion, settings: Settings, node_count: int
) -> Seed:
    """Return a seed that a broker of this Kafka version with so many nodes can have; a string is the path of a file.

    Raises:
        UsageError: the file can't be read, or something is wrong; the text has a line for each mistake.
    """
    from kproto_server.broker.yaml_file import read_yaml

    if isinstance(given, Seed):
        return given
    source, content = (f"{given}: ", read_yaml(given)) if isinstance(given, str) else ("", given)
    problems = _Problems(source)
    cluster = Cluster.of(
        [("", 0)] * node_count, kafka_version=kafka_version, settings=settings, random_bytes=_no_random_bytes
    )
    reader = _Reader(problems, cluster, has_authorizer=bool(settings.str("authorizer.class.name")))
    seed = reader.seed({} if content is None else content)
    problems.check()
    return seed._replace(source=source)


def _no_random_bytes(size: int) -> bytes:
    return bytes(size)


class _Reader:
    """Reads the parts of a seed, and notes each mistake."""

    def __init__(self, problems: _Problems, cluster: Cluster, *, has_authorizer: bool) -> None:
        self._problems = problems
        self._cluster = cluster
        """Has the topics of the seed that a broker would create."""
        self._has_authorizer = has_authorizer
        self._topics: set[str] = set()
        """The names of all topics of the seed."""

    def seed(self, content: object) -> Seed:
        if isinstance(content, dict) and "users" in content:
            self._problems.add("users", NO_USERS)
            content = {name: value for name, value in content.items() if name != "users"}
        parts = self._mapping("seed", content, SEED)
        named = self._names("topics", parts.get("topics"))
        self._topics = {name for name, _ in named}
        topics = [self._topic(name, one) for name, one in named]
        offsets = [
            offset
            for group_id, one in self._names("groups", parts.get("groups"))
            for offset in self._group(group_id, one)
        ]
        acls = [self._acl(f"acls[{number}]", one) for number, one in self._list("acls", parts.get("acls"))]
        if acls and not self._has_authorizer:
            self._problems.add("acls", "the broker has no authorizer: set authorizer.class.name")
        return Seed(tuple(topics), tuple(offsets), tuple(acls))

    def _acl(self, path: str, content: object) -> AclDescription:
        parts = self._mapping(path, content, AclDescription._fields)
        for name, value in parts.items():
            if not isinstance(value, str):
                self._problems.add(f"{path}.{name}", f"a text, not {value!r:.100}")
            self._is_text(f"{path}.{name}", value)
        given = {name: str(value) for name, value in parts.items() if name in AclDescription._fields}
        missing = [name for name in ACL_NEEDS if name not in given]
        if missing:
            self._problems.add(path, f"{missing[0]} is missing")
        described = AclDescription(*[given.pop(name, "") for name in ACL_NEEDS], **given)
        if not missing:
            with self._problems.of(path):
                creation_of(described)
        return described

    def _topic(self, name: str, content: object) -> SeedTopic:
        path = f"topics.{name}"
        parts = self._mapping(path, content, TOPIC)
        partitions = self._number(path, parts, "partitions", 1, INT32_MAX)
        factor = self._number(path, parts, "replication_factor", 1, 2**15 - 1)
        configs = {
            one: self._config(f"{path}.configs.{one}", value)
            for one, value in self._names(f"{path}.configs", parts.get("configs"))
        }
        if name in INTERNAL_TOPICS:
            self._problems.add(path, "the broker creates this topic itself")
        else:
            defaults = self._cluster.defaults
            made = self._cluster.create_topic(
                name,
                partition_count=defaults.num_partitions if partitions is None else partitions,
                replication_factor=defaults.replication_factor if factor is None else factor,
                configs=configs,
            )
            if isinstance(made, Refusal):
                self._problems.add(path, f"{made.error.name}: {made.message or made.error.message}")
        records = self._list(f"{path}.records", parts.get("records"))
        return SeedTopic(
            name,
            partitions,
            factor,
            configs,
            tuple(self._record(f"{path}.records[{i}]", name, one) for i, one in records),
        )

    def _record(self, path: str, topic: str, content: object) -> NewRecord:
        if not isinstance(content, dict):
            return NewRecord(self._text(path, content))
        parts = self._mapping(path, content, RECORD)
        if not parts:
            self._problems.add(path, f"a record has {', '.join(RECORD)}")
        partition = self._number(path, parts, "partition", 0, INT32_MAX)
        if partition is not None:
            self._check_partition(f"{path}.partition", topic, partition)
        headers = {
            name: self._text(f"{path}.headers.{name}", value)
            for name, value in self._names(f"{path}.headers", parts.get("headers"))
        }
        return NewRecord(
            self._text(f"{path}.value", parts.get("value")),
            self._text(f"{path}.key", parts.get("key")),
            headers,
            self._time(path, parts),
            partition,
        )

    def _group(self, group_id: str, content: object) -> list[SeedOffset]:
        path = f"groups.{group_id}"
        parts = self._mapping(path, content, GROUP)
        found = []
        for topic, of_topic in self._names(f"{path}.offsets", parts.get("offsets")):
            here = f"{path}.offsets.{topic}"
            if topic not in self._topics:
                self._problems.add(here, "the seed has no such topic")
            if not isinstance(of_topic, dict) or not of_topic:
                self._problems.add(here, f"an offset for each of some partitions, not {of_topic!r:.100}")
                continue
            for name, one in of_topic.items():
                is_text = isinstance(name, str) and name.isascii() and name.isdecimal() and len(name) <= 10
                partition = int(name) if is_text else name  # names are text in JSON
                found.append(self._offset(f"{here}.{partition}", group_id, topic, partition, one))
        if not found:
            self._problems.add(path, "a group has offsets")
        return found

    def _offset(self, path: str, group_id: str, topic: str, partition: object, content: object) -> SeedOffset:
        parts = self._mapping(path, content, OFFSET) if isinstance(content, dict) else {"offset": content}
        self._check_partition(path, topic, partition)
        offset = self._number(path, parts, "offset", 0, INT64_MAX)
        metadata = parts.get("metadata", "")
        if offset is None and "offset" not in parts:
            self._problems.add(path, "an offset is missing")
        if not isinstance(metadata, str):
            self._problems.add(f"{path}.metadata", f"a text, not {metadata!r:.100}")
        self._is_text(f"{path}.metadata", metadata)
        return SeedOffset(group_id, topic, partition if type(partition) is int else 0, offset or 0, str(metadata))

    def _check_partition(self, path: str, topic: str, partition: object) -> None:
        known = self._cluster.topic(topic)
        if type(partition) is not int or (known is not None and known.partition(partition) is None):
            last = INT32_MAX if known is None else len(known.partitions) - 1
            self._problems.add(path, f"topic {topic} has partitions 0 to {last}, not {partition!r:.100}")

    # Values.

    def _mapping(self, path: str, content: object, names: tuple[str, ...]) -> dict[str, Any]:
        found = dict(self._names(path, content))
        for name in found:
            if name not in names:
                self._problems.add(path, f"there is no {name!r}: use {', '.join(names)}")
        return found

    def _names(self, path: str, content: object) -> list[tuple[str, Any]]:
        if content is None:
            return []
        if not isinstance(content, dict):
            self._problems.add(path, f"it has lines NAME: VALUE, not {content!r:.100}")
            return []
        for name in content:
            if not isinstance(name, str):
                self._problems.add(path, f'names are texts: write "{name}", not {name!r:.100}')
        return [(name, value) for name, value in content.items() if isinstance(name, str) and self._is_text(path, name)]

    def _list(self, path: str, content: object) -> list[tuple[int, Any]]:
        if content is not None and not isinstance(content, list):
            self._problems.add(path, f"a list, whose items begin with '- ', not {content!r:.100}")
        return list(enumerate(content)) if isinstance(content, list) else []

    def _number(self, path: str, parts: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
        value = parts.get(name)
        if value is None and name not in parts:
            return None
        if type(value) is not int or not low <= value <= high:
            self._problems.add(f"{path}.{name}", f"a number from {low} to {high}, not {value!r:.100}")
            return None
        return value

    def _config(self, path: str, value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if not isinstance(value, (str, int, float)):
            self._problems.add(path, f"a text or a number, not {value!r:.100}")
        self._is_text(path, value)
        return str(value)

    def _time(self, path: str, parts: Mapping[str, Any]) -> int | None:
        value = parts.get("timestamp_ms")
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return int(aware.timestamp() * 1000)
        return self._number(path, parts, "timestamp_ms", 0, INT64_MAX)

    def _is_text(self, path: str, value: object) -> bool:
        """Return False for a string that UTF-8 can't have, and note it."""
        try:
            if isinstance(value, str):
                value.encode()
        except UnicodeEncodeError:
            self._problems.add(path, f"a text without half a surrogate pair, not {value!r:.100}")
            return False
        return True

    def _text(self, path: str, value: object) -> str | bytes | None:
        """Return a text, bytes or None; mappings and lists are JSON."""
        if value is None or isinstance(value, (str, bytes)):
            return value if self._is_text(path, value) else None
        if isinstance(value, (dict, list)):
            try:
                text = json.dumps(value, ensure_ascii=False)
                return text if self._is_text(path, text) else None
            except TypeError as error:
                self._problems.add(path, f"no JSON: {error}")
                return None
        self._problems.add(path, f'a text: write "{value}", not {value!r:.100}')
        return None
