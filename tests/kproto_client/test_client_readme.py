"""The recipes of the client's page, each of which is run, and its table of failure scenarios."""

from __future__ import annotations

import asyncio
import re
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kproto_server import Broker
from kproto_server.scenarios.failure_scenarios import SCENARIOS
from tests.kproto_client.failure_table import PAGE, RECOMMENDED, cells, documented
from tests.kproto_client.kafka_fixture import KafkaFixture, read
from tests.oracle.cluster import NEWEST, real_kafka
from tests.waiting import LIMIT_S

RECIPE = re.compile(r"<!-- recipe: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
RECIPES: dict[str, str] = dict(RECIPE.findall(PAGE.read_text()))
SERVERS = "127.0.0.1:9092"
"""The broker's address in the recipes."""
ORDERS = ("order 1041", "order 1042", "order 1043")
PRINTED = {"deserializing": ORDERS[:1], "pause": ORDERS, "trio": tuple(str(each.encode()) for each in ORDERS)}
FIRST_STEPS = ("first_steps", "first_steps_aio")
"""Recipes with a broker of their own."""
ABORTING_PRODUCER = """
import confluent_kafka

class AbortingProducer(confluent_kafka.Producer):
    aborts = True

    def commit_transaction(self):
        if AbortingProducer.aborts:
            AbortingProducer.aborts = False
            error = confluent_kafka.KafkaError(confluent_kafka.KafkaError._STATE, txn_requires_abort=True)
            raise confluent_kafka.KafkaException(error)
        super().commit_transaction()

confluent_kafka.Producer = AbortingProducer
"""
"""Its first transaction has to be aborted."""


@pytest.fixture
def kafka(broker: Broker) -> KafkaFixture:
    """A new group "billing" that has read nothing of "orders" yet."""
    broker.reset()
    return with_orders(KafkaFixture(broker.bootstrap_servers))


def with_orders(kafka: KafkaFixture) -> KafkaFixture:
    kafka.create("orders")
    kafka.commit("billing", "orders", 0)
    for order in ORDERS:
        kafka.producer.produce("orders", order)
    kafka.producer.flush(LIMIT_S)
    return kafka


def program(name: str, kafka: KafkaFixture, folder: Path, before: str = "") -> Path:
    """Write the program of a recipe, with other code before it."""
    path = folder / f"recipe_{name}.py"
    path.write_text(before + RECIPES[name].replace(SERVERS, kafka.bootstrap))
    return path


def output(path: Path) -> list[str]:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_example_is_a_recipe() -> None:
    assert set(RECIPES) == {*PRINTED, *FIRST_STEPS, "events", "web", "transactions"}
    assert PAGE.read_text().count("```python") == len(RECIPES)


@pytest.mark.parametrize("name", FIRST_STEPS)
def test_the_first_steps_work(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text(RECIPES[name])
    assert output(path) == []


@pytest.mark.parametrize("name", PRINTED)
def test_a_recipe_prints_the_orders(name: str, kafka: KafkaFixture, tmp_path: Path) -> None:
    assert output(program(name, kafka, tmp_path)) == list(PRINTED[name])
    if name == "pause":
        assert kafka.committed("billing", "orders") == 3
    if name == "trio":  # the last record is finished or not
        assert kafka.committed("billing", "orders") in (2, 3)


def test_the_web_server_responds_while_records_are_consumed(kafka: KafkaFixture, tmp_path: Path) -> None:
    main = runpy.run_path(str(program("web", kafka, tmp_path)))["main"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]

    async def get() -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        return text.rpartition("\r\n")[2]

    async def run() -> None:
        server = asyncio.create_task(main(port))
        async with asyncio.timeout(LIMIT_S):
            while True:
                await asyncio.sleep(0.01)
                assert not server.done(), server
                try:
                    if await get() == "3 orders\n":
                        break
                except ConnectionRefusedError:
                    continue
        server.cancel()
        await asyncio.wait([server])

    asyncio.run(run())


@pytest.mark.oracle
def test_the_transactions_of_real_kafka(tmp_path: Path) -> None:
    with real_kafka(NEWEST) as cluster:
        kafka = with_orders(KafkaFixture(cluster.bootstrap))
        kafka.create("invoices")
        output(program("transactions", kafka, tmp_path, before=ABORTING_PRODUCER))
        assert kafka.committed("billing", "orders") == 3
        with kafka.consumer("reader", isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["invoices"])
            first, *others = read(consumer, 3)
            # Not each of the 3 aborted records was sent when the producer aborted; their marker was.
            assert first in range(1, 5)
            assert others == [first + 1, first + 2]


def test_the_table_of_failure_scenarios_is_what_happens() -> None:
    measured = cells(SCENARIOS, [RECOMMENDED])
    written = documented()
    assert {each: written[each] for each in measured} == measured
