"""What clients get that exceed their quota for changes of topics (KIP-599), by scenario.

`python -m tests.throttling.topic_quota_scripts RELEASE=HOST:PORT ...` records them from brokers with default settings.
The default quota is one partition per second. Each scenario has a client id, and so tokens of its own; throttle times
are whole seconds, rounded up.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kproto.declaration import ZERO_UUID
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.network.raw_client import RawClient
from tests.security.quota_scripts import MUTATIONS, change

FILE = Path(__file__).parents[2] / "fixtures" / "client-quotas" / "topic-changes.json"
FREE = "free"
"""A client id without a limit."""
PROPAGATION_S = 0.3
"""A broker knows a change of quotas or topics some milliseconds after its controller."""
TIMEOUT_MS = 5000
Send = Callable[[RawClient], Any]


def new_topics(*topics: tuple[str, int]) -> tuple[CreatableTopic, ...]:
    """Return topics with these partition counts, as CreateTopics has them."""
    return tuple(
        CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=())
        for name, count in topics
    )


def created(*topics: tuple[str, int], version: int = 6, validate_only: bool = False) -> Send:
    """Return what creates topics."""
    request = CreateTopicsRequest(topics=new_topics(*topics), timeout_ms=TIMEOUT_MS, validate_only=validate_only)

    def send(client: RawClient) -> Any:
        found = client.ask(request, version)
        return [_s(found), [[one.name, one.error_code, one.error_message] for one in found.topics]]

    return send


def deleted(*names: str, version: int = 5) -> Send:
    """Return what deletes topics."""
    if version > 5:
        topics = tuple(DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names)
        request = DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
    else:
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=TIMEOUT_MS)

    def send(client: RawClient) -> Any:
        found = client.ask(request, version)
        # A broker of KRaft returns them in the order of a hash map.
        return [_s(found), sorted([one.name, one.error_code, one.error_message] for one in found.responses)]

    return send


def grown(*topics: tuple[str, int], version: int = 3, validate_only: bool = False) -> Send:
    """Return what gives topics these partition counts."""
    asked = tuple(CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in topics)
    request = CreatePartitionsRequest(topics=asked, timeout_ms=TIMEOUT_MS, validate_only=validate_only)

    def send(client: RawClient) -> Any:
        found = client.ask(request, version)
        return [_s(found), [[one.name, one.error_code, one.error_message] for one in found.results]]

    return send


def described(name: str, *, creates: bool = False) -> Send:
    """Return what asks for a topic's error and its number of partitions, and perhaps creates it."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=creates)

    def send(client: RawClient) -> Any:
        found = client.ask(request, 8)
        (topic,) = found.topics
        return [_s(found), topic.error_code, len(topic.partitions)]

    return send


def _s(response: Any) -> int:
    return -(-int(response.throttle_time_ms) // 1000)


SCENARIOS: dict[str, tuple[tuple[str, Send] | Send, ...]] = {
    "strict": (
        created(("a", 30)), created(("b", 1)), deleted("a"), deleted("a", version=6), grown(("a", 31)),
        created(("b", 1), validate_only=True), (FREE, described("b")), (FREE, described("a")), described("a"),
    ),
    "burst": (created(("a", 11)), created(("b", 1)), created(("c", 1)), created(("d", 1)), created(("e", 1))),
    "permissive": (
        created(("a", 30), version=5), created(("b", 1), version=5), grown(("a", 40), version=2),
        deleted("b", version=4), created(("c", 1)),
    ),
    "validated": (created(("a", 30), validate_only=True), created(("b", 1)), created(("c", 1))),
    "validated-permissive": (created(("a", 30), version=5, validate_only=True), created(("b", 1), version=5)),
    "grown-validated": (
        (FREE, created(("a", 1))), grown(("a", 31), validate_only=True), grown(("a", 2)), grown(("a", 3)),
    ),
    "several": (created(("a", 30), ("b", 1), ("c", 1)),),
    "several-grown": ((FREE, created(("a", 1), ("b", 1))), grown(("a", 31), ("b", 2))),
    "several-deleted": ((FREE, created(("a", 30), ("b", 1))), deleted("a", "b"), (FREE, deleted("b"))),
    "deleted": ((FREE, created(("a", 30), ("b", 2))), deleted("a"), deleted("b"), deleted("b", version=4)),
    "errors": (
        created(("a", 30)), created(("a", 1)), created(("b", 0)), created(("not valid", 1)),
        created(("c", 1), ("c", 1)), deleted("missing"), grown(("missing", 4)), grown(("a", 4)), grown(("a", 30)),
    ),
    "errors-cost-nothing": (created(("a", 0)), created(("a", 30), ("a", 30)), deleted("missing"), created(("a", 1))),
    "auto-creation": (
        created(("a", 30)), described("b", creates=True), (FREE, described("b")), described("b"),
    ),
}  # fmt: skip
"""What the client of each scenario sends, or the one without a limit. Topics are deleted at the end of each."""


def transcripts(address: str, pause_s: float = 0.0) -> dict[str, Any]:
    """Return the results of all scenarios."""
    with RawClient(address) as client:
        assert change({"client-id": None}, (MUTATIONS, 1.0))(client, 1)[0][0] == 0
        assert change({"client-id": FREE}, (MUTATIONS, 1e9))(client, 1)[0][0] == 0
    time.sleep(pause_s)
    found: dict[str, Any] = {}
    for name, steps in SCENARIOS.items():
        found[name] = results = []
        for step in steps:
            client_id, send = step if isinstance(step, tuple) else (name, step)
            with RawClient(address, client_id) as client:  # a throttled connection is not read
                results.append(send(client))
            time.sleep(pause_s if client_id == FREE or name == "auto-creation" else 0.0)
        for topic in "abcdefghijklmn":
            with RawClient(address, FREE) as client:
                deleted(topic)(client)
        time.sleep(pause_s)
    return found


def main() -> None:
    """Add the results of releases to the file."""
    recorded = json.loads(FILE.read_text()) if FILE.exists() else {}
    for argument in sys.argv[1:]:
        release, address = argument.split("=")
        recorded[release] = transcripts(address, PROPAGATION_S)
    lines = [
        f'"{release}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(found)}' for name, found in of_one.items()) + "\n}"
        for release, of_one in sorted(recorded.items())
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
