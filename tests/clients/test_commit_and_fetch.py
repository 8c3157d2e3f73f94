"""Real clients commit, fetch in a new process, and see the unknown topic, without a change to any of them.

Method: each client is a small program (programs.py); what it prints is compared with what it was given. Between them
they use what BA-130 to BA-133 list: downgrades of ApiVersions, probing, addresses out of Metadata.
"""

import pytest

from tests.clients.admin import create_topic, topic_names
from tests.clients.conftest import TestedBroker
from tests.clients.programs import CLIENTS, UNKNOWN_TOPIC, Client, run

every_client = pytest.mark.parametrize(
    "client",
    [pytest.param(c, id=c.name, marks=[pytest.mark.oracle] if c.needs_java else []) for c in CLIENTS],
)


@pytest.fixture
def bootstrap(broker: TestedBroker) -> str:
    return broker.bootstrap


@pytest.fixture(scope="module")
def topic(broker: TestedBroker) -> str:
    create_topic(broker.bootstrap, "orders", partitions=2)
    return "orders"


@every_client
def test_offsets_and_metadata_come_back_in_a_new_process(client: Client, bootstrap: str, topic: str) -> None:
    group = f"group-of-{client.name}"

    run(client, "commit", bootstrap, group, topic, "0:42:first: note", '1:7:"zweite" Notiz - ü')

    assert run(client, "fetch", bootstrap, group, topic) == {
        "0": [42, "first: note"],
        "1": [7, '"zweite" Notiz - ü'],
    }


@every_client
def test_a_later_commit_replaces_the_earlier_one(client: Client, bootstrap: str, topic: str) -> None:
    group = f"second-group-of-{client.name}"

    run(client, "commit", bootstrap, group, topic, "0:1:old", "1:1:kept")
    run(client, "commit", bootstrap, group, topic, "0:2:new")

    assert run(client, "fetch", bootstrap, group, topic) == {"0": [2, "new"], "1": [1, "kept"]}


@every_client
def test_nothing_committed_is_nothing_fetched(client: Client, bootstrap: str, topic: str) -> None:
    """OF-10 as clients show it: null in Java (OF-50), an invalid offset in librdkafka, None in Python (OF-51)."""
    assert run(client, "fetch", bootstrap, f"empty-group-of-{client.name}", topic) == {}


@every_client
def test_an_empty_topic_is_polled_from_its_beginning(client: Client, broker: TestedBroker, topic: str) -> None:
    if broker.release and client.last_fetch and broker.release[:2] > client.last_fetch:
        pytest.skip(f"Kafka {broker.release} does not answer the Fetch of {client.name}")

    assert run(client, "poll", broker.bootstrap, f"polling-{client.name}", topic) == {"0": 0, "1": 0}


@every_client
def test_an_unknown_topic_is_told_in_the_clients_own_words(client: Client, bootstrap: str) -> None:
    told = run(client, "unknown", bootstrap, f"group-of-{client.name}", UNKNOWN_TOPIC, "0:0:")

    assert told == client.unknown_topic
    assert UNKNOWN_TOPIC not in topic_names(bootstrap)
