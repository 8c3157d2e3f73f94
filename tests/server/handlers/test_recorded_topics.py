"""Brokers of 40 release lines and modes create, describe and delete topics, and four of them do so in depth.

The same requests in the same order are put to our broker with the release of that release. Every difference is named
here with its reason; those that are a choice of ours are in server/DEVIATIONS.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fixture_files import golden_releases, golden_topics
from tests.server.handlers.recorded_topics import differences, fresh_state, response_of, take_topic_ids

if TYPE_CHECKING:
    from kproto_server.state import BrokerState
    from tests.fixture_files import GoldenPair

APIS = ("Metadata", "FindCoordinator", "CreateTopics", "CreatePartitions", "DeleteTopics", "DescribeCluster")

BROKERS = sorted({broker for pair in golden_releases("Metadata") for broker in pair.brokers})

SECOND_BROKER = "(auto-create off, offsets factor 3, deletion off)"

ONE_REPLICA = {"offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1"}
SETTINGS = {**ONE_REPLICA, "transaction.state.log.num.partitions": "4", "delete.topic.enable": "true"}
SECOND_SETTINGS = {
    **SETTINGS,
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "3",
    "delete.topic.enable": "false",
}


def recorded(broker: str, *, second: bool) -> list[GoldenPair]:
    pairs = (pair for api in APIS for pair in golden_releases(api) if broker in pair.brokers)
    return sorted((p for p in pairs if p.note.endswith(SECOND_BROKER) == second), key=lambda p: p.brokers[broker])


def _make_what_was_left_out(state: BrokerState, pair: GoldenPair) -> None:
    """Successful CreateTopics of v5 and later, which were too long to keep, and topics of other recordings."""
    version = pair.api_version
    left_out = {
        ("CreateTopics", "exists"): f"c{version}",
        ("CreateTopics", "collides"): f"x.y{version}",
        ("CreatePartitions", "to 3"): f"cp{version}",
    }
    name = left_out.get((pair.api, pair.note))
    if name is not None and state.cluster.topic(name) is None:
        state.cluster.create_topic(name, partition_count=1, replication_factor=1)
    if pair.note.startswith("deletion disabled"):
        state.cluster.create_topic("auto-0", partition_count=1, replication_factor=1)


def _reason(broker: str, pair: GoldenPair) -> str | None:
    """Return why kproto may respond differently to this pair; None: it may not."""
    note = pair.note.removesuffix(SECOND_BROKER).strip()
    line = tuple(int(part) for part in broker.partition("-")[0].split("."))
    what = (pair.api, note)
    if pair.api == "FindCoordinator" and note in ("group, time 1", "group, time 2", "group, later", "key type 1"):
        return "a real broker was still making the internal topic, or had begun to for another question"
    if what == ("Metadata", "unknown topic, creation allowed, time 2"):
        return "a real broker had not elected the leader yet"
    if pair.api == "FindCoordinator" and note == "key type 2" and line[:2] == (3, 9):
        return "DEVIATION: no share coordinator; 3.9 promises one for ever"
    if line < (0, 11) and note.startswith(("offsets topic", "group, too few brokers")):
        return "before 0.11 our topic is there at the second question, theirs was not yet"
    if line[:2] in ((0, 10), (0, 11)) and pair.api == "CreateTopics":
        return "DEVIATION: the texts are those of 1.0; a config without value gets a response"
    if line[:2] == (0, 8) and pair.api == "Metadata":
        return "DEVIATION: 0.8 names no brokers before it has a topic, and has error -1 for a bad name"
    return None


@pytest.mark.parametrize("broker", BROKERS)
def test_topics_of_every_release_line(broker: str) -> None:
    """BA-30 to BA-33, BA-40 to BA-45, BA-90, BA-91, BA-94, for each release and mode."""
    state = fresh_state(broker, SETTINGS)
    found = differences(recorded(broker, second=False), state, _make_what_was_left_out)
    assert [str(difference) for difference in found if _reason(broker, difference.pair) is None] == []


@pytest.mark.parametrize("broker", BROKERS)
def test_too_few_brokers_for_the_offsets_topic_and_nothing_allowed(broker: str) -> None:
    """BA-50 (KIP-115), BA-32, BA-33 with auto-creation off, BA-91 with deletion off, for each release and mode."""
    state = fresh_state(broker, SECOND_SETTINGS)
    found = differences(recorded(broker, second=True), state, _make_what_was_left_out)
    assert [str(difference) for difference in found if _reason(broker, difference.pair) is None] == []


IN_DEPTH = ("2.1.1", "2.8.2", "3.9.2", "4.4.0")
IN_DEPTH_SETTINGS = {**SETTINGS, "offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}

REASONS = {
    ("Fetch", "session opened"): "session ids are random: see tests/partition_log/test_recorded_records.py",
    ("Fetch", "session used"): "session ids are random",
    ("Fetch", "session, wrong epoch"): "session ids are random",
    ("Fetch", "replica 5"): "there are no followers: who asks as one is a consumer that calls itself so",
    ("CreateTopics", "collides"): "DEVIATION: names that collide in one request: the first is made",
}


def _reason_in_depth(release: str, pair: GoldenPair) -> str | None:
    what = (pair.api, pair.note)
    by_release = {
        "2.1.1": {
            ("Metadata", "internal"): "DEVIATION: __share_group_state is internal in all Kafka versions",
            ("Metadata", "null: all"): "DEVIATION: a topic is listed before it has its first leader",
            ("DescribeConfigs", "others"): "DEVIATION: a text names another resource than it is about",
            ("DescribeConfigs", "types 8"): "DEVIATION: a text names another resource than it is about",
            ("DescribeConfigs", "types 16"): "DEVIATION: a text names another resource than it is about",
            ("DescribeConfigs", "types 32"): "DEVIATION: a text names another resource than it is about",
            ("DescribeConfigs", "broker"): "DEVIATION: log.retention.hours is read-only",
        },
        "2.8.2": {
            ("Metadata", "internal"): "DEVIATION: __share_group_state is internal in all Kafka versions",
            ("Metadata", "null: all"): "DEVIATION: a topic is listed before it has its first leader",
            ("CreateTopics", "assignments, bad"): "DEVIATION: a text shows the class of a Scala map",
        },
        "3.9.2": {("FindCoordinator", "share"): "DEVIATION: no share coordinator; 3.9 promises one for ever"},
        "4.4.0": {("DescribeConfigs", "types 32"): "DEVIATION: groups have no configs"},
    }
    return REASONS.get(what) or by_release[release].get(what)


@pytest.mark.parametrize("release", IN_DEPTH)
def test_topics_in_depth(release: str) -> None:
    """BA-30 to BA-45, BA-70, BA-71, BA-74, BA-80 to BA-83, BA-90 to BA-92, BA-94: every version of each API.

    BA-71 says too little: a partition that does not exist ends no wait beside one that does.
    """
    state = fresh_state(release, IN_DEPTH_SETTINGS)
    pairs = golden_topics(release)

    def prepare(state: BrokerState, pair: GoldenPair) -> None:
        previous = pairs[pair.brokers[release] - 1]
        if previous.response is not None:
            take_topic_ids(state, response_of(previous))
        if previous.note == "collides":
            _have(state, {topic.name for topic in response_of(previous).topics if not topic.error_code})

    found = differences(pairs, state, prepare)
    assert [str(difference) for difference in found if _reason_in_depth(release, difference.pair) is None] == []


def _have(state: BrokerState, names: set[str]) -> None:
    """Have those of the colliding topics that the real broker made."""
    for name in {"cx.y", "cx_y", "co_l_n", "co.l.n"} - names:
        state.cluster.delete_topic(name)
    for name in names - set(state.cluster.topics):
        state.cluster.restore_topic(name, None, 1, [[1]], {})
