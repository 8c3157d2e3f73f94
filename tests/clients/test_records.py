"""Real clients write compressed records that other real clients read: each writes, kafka-python reads, or itself."""

import pytest

from tests.clients.admin import create_topic
from tests.clients.conftest import TestedBroker
from tests.clients.records_programs import CLIENTS, RecordsClient, run

COUNT = 200
READER = CLIENTS[0]
WRITER = CLIENTS[0]
EXPECTED = sorted([f"{n % 2}:{n // 2}", str(n), f"value {n}"] for n in range(COUNT))


def every(client: RecordsClient, *values: str) -> object:
    marks = [pytest.mark.oracle] if client.needs_java else []
    return pytest.param(client, *values, id="-".join((client.name, *values)), marks=marks)


@pytest.mark.parametrize(
    ("client", "compression"),
    [every(client, compression) for client in CLIENTS for compression in client.compressions],
)
def test_what_a_client_writes_is_read(client: RecordsClient, compression: str, broker: TestedBroker) -> None:
    """BA-60, BA-65, BA-77: idempotent where the client can, in the versions that it speaks."""
    topic = f"written-by-{client.name}-{compression}"
    create_topic(broker.bootstrap, topic, partitions=2)
    assert run(client, "produce", broker.bootstrap, topic, compression, COUNT) == {"last": COUNT // 2 - 1}
    reader = READER if compression == "gzip" else client  # what kafka-python needs packages for
    assert run(reader, "consume", broker.bootstrap, topic, compression, COUNT) == EXPECTED


@pytest.fixture(scope="module")
def written(broker: TestedBroker) -> str:
    create_topic(broker.bootstrap, "read-by-all", partitions=2)
    run(WRITER, "produce", broker.bootstrap, "read-by-all", "gzip", COUNT)
    return "read-by-all"


@pytest.mark.parametrize("client", [every(client) for client in CLIENTS])
def test_every_client_reads_what_is_there(client: RecordsClient, written: str, broker: TestedBroker) -> None:
    """BA-70 to BA-77: fetch sessions of new clients, message sets for old ones."""
    assert run(client, "consume", broker.bootstrap, written, "none", COUNT) == EXPECTED
