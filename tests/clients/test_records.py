"""Real clients write compressed records that real clients read: kafka-python, or the writing client itself."""

import pytest

from tests.clients.admin import create_topic
from tests.clients.conftest import TestedBroker
from tests.clients.records_programs import CLIENTS, RecordsClient, run

COUNT = 200
READER = CLIENTS[0]
WRITER = CLIENTS[0]
EXPECTED = sorted([f"{n % 2}:{n // 2}", str(n), f"value {n}"] for n in range(COUNT))


def parameters(client: RecordsClient, *values: str) -> object:
    marks = [pytest.mark.oracle] if client.needs_java else []
    return pytest.param(client, *values, id="-".join((client.name, *values)), marks=marks)


@pytest.mark.parametrize(
    ("client", "compression"),
    [parameters(client, compression) for client in CLIENTS for compression in client.compressions],
)
def test_compressed_records_are_read(client: RecordsClient, compression: str, broker: TestedBroker) -> None:
    """BA-60, BA-65, BA-77: idempotent if the client supports it, in the client's versions."""
    topic = f"written-by-{client.name}-{compression}"
    create_topic(broker.bootstrap, topic, partitions=2)
    assert run(client, "produce", broker.bootstrap, topic, compression, COUNT) == {"last": COUNT // 2 - 1}
    reader = READER if compression == "gzip" else client  # kafka-python needs packages for the other codecs
    assert run(reader, "consume", broker.bootstrap, topic, compression, COUNT) == EXPECTED


@pytest.fixture(scope="module")
def written(broker: TestedBroker) -> str:
    create_topic(broker.bootstrap, "read-by-all", partitions=2)
    run(WRITER, "produce", broker.bootstrap, "read-by-all", "gzip", COUNT)
    return "read-by-all"


@pytest.mark.parametrize("client", [parameters(client) for client in CLIENTS])
def test_each_client_reads_existing_records(client: RecordsClient, written: str, broker: TestedBroker) -> None:
    """BA-70 to BA-77: fetch sessions of new clients, message sets for old ones."""
    assert run(client, "consume", broker.bootstrap, written, "none", COUNT) == EXPECTED
