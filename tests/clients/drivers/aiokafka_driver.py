"""The scenarios with aiokafka.

Its consumer does not return the metadata of a commit, its admin client does. Its consumer also repeats a commit for an
unknown topic and creates the topics that it is assigned, so the scenario `unknown-topic` uses the admin client.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import BrokerResponseError, ProducerFenced
from aiokafka.helpers import create_ssl_context

from tests.clients.drivers import contract
from tests.clients.drivers.contract import (
    LIMIT_S,
    METADATA_MAX_BYTES,
    NOTES,
    SECURITY,
    Run,
    format_record,
    key_of,
    main,
    unsupported,
    value_of,
)

INVALID_PRODUCER_EPOCH = 47
NAMES = {
    "SECURITY_PROTOCOL": "security_protocol",
    "SASL_MECHANISM": "sasl_mechanism",
    "SASL_USERNAME": "sasl_plain_username",
    "SASL_PASSWORD": "sasl_plain_password",
}
SECURED: dict[str, Any] = {NAMES[name]: value for name, value in SECURITY.items() if name in NAMES}
if "SSL_CA_LOCATION" in SECURITY:
    SECURED["ssl_context"] = create_ssl_context(cafile=SECURITY["SSL_CA_LOCATION"])


def scenario(function: Callable[[Run], Awaitable[None]]) -> None:
    @functools.wraps(function)
    def blocking(run: Run) -> None:
        asyncio.run(function(run))  # type: ignore[arg-type]  # an async function returns a coroutine

    contract.scenario(blocking)


def consumer(run: Run, group: bool = True, **settings: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=run.bootstrap,
        **SECURED,
        group_id=run.name if group else None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
        heartbeat_interval_ms=100,
        session_timeout_ms=6000,
        metadata_max_age_ms=500,
        partition_assignment_strategy=[RangePartitionAssignor],
        **settings,
    )


@asynccontextmanager
async def admin(run: Run) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=run.bootstrap, **SECURED)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def send(run: Run, count: int, partitions: int = 1, idempotent: bool = False) -> list[Any]:
    """Return the acknowledgment of each record."""
    producer = AIOKafkaProducer(bootstrap_servers=run.bootstrap, **SECURED, acks="all", enable_idempotence=idempotent)
    async with producer:
        sent = [
            await producer.send(run.name, key=key_of(n), value=value_of(n), partition=n % partitions)
            for n in range(count)
        ]
        return [await future for future in sent]


async def take(reader: AIOKafkaConsumer, count: int) -> list[Any]:
    return [await asyncio.wait_for(reader.getone(), LIMIT_S) for _ in range(count)]


def format_records(records: list[Any]) -> list[str]:
    return [format_record(record.key, record.value) for record in records]


@asynccontextmanager
async def assigned(run: Run, partitions: int, group: bool = True) -> AsyncIterator[AIOKafkaConsumer]:
    async with consumer(run, group) as reader:
        reader.assign([TopicPartition(run.name, p) for p in range(partitions)])
        yield reader


@asynccontextmanager
async def subscribed(run: Run) -> AsyncIterator[AIOKafkaConsumer]:
    reader = consumer(run)
    reader.subscribe([run.name])
    async with reader:
        yield reader


async def commit(run: Run, *offsets: int) -> None:
    async with assigned(run, len(offsets)) as reader:
        await reader.commit({TopicPartition(run.name, p): offset for p, offset in enumerate(offsets)})


class Member(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    def __init__(self, run: Run, **settings: Any) -> None:
        self.rebalances = 0
        self._partitions: list[int] = []
        self._changed = asyncio.Condition()
        self._consumer = consumer(run, **settings)
        self._consumer.subscribe([run.name], listener=self)

    async def start(self) -> "Member":
        await self._consumer.start()
        return self

    async def on_partitions_revoked(self, revoked: object) -> None:
        pass

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        async with self._changed:
            self.rebalances += 1
            self._partitions = sorted(p.partition for p in assigned)
            self._changed.notify_all()

    async def wait(self, count: int) -> list[int]:
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: len(self._partitions) == count), LIMIT_S)
            return self._partitions

    async def close(self) -> None:
        await self._consumer.stop()


async def wait_until(is_done: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not await is_done():
            await asyncio.sleep(0.01)


@scenario
async def create_topic(run: Run) -> None:
    async with admin(run) as client:

        async def is_listed() -> bool:
            return run.name in await client.list_topics()

        await client.create_topics([NewTopic(run.name, 3, 1)])
        await wait_until(is_listed)
        (topic,) = await client.describe_topics([run.name])
        run.report("partitions", len(topic["partitions"]))
        response = await client.create_topics([NewTopic(run.name, 3, 1)])
        run.report("again", response.topic_errors[0][1])


@scenario
async def produce_100(run: Run) -> None:
    acks = await send(run, 100, partitions=2)
    run.report("acknowledged", len(acks))
    run.report("last", [max(ack.offset for ack in acks if ack.partition == p) for p in range(2)])
    async with assigned(run, 2, group=False) as reader:
        records = await take(reader, 100)
    run.report("read", [format_records([r for r in records if r.partition == p]) for p in range(2)])


@scenario
async def idempotent_produce(run: Run) -> None:
    acks = await send(run, 100, idempotent=True)
    run.report("acknowledged", len(acks))
    run.report("last", max(ack.offset for ack in acks))
    async with assigned(run, 1, group=False) as reader:
        run.report("read", format_records(await take(reader, 100)))


@scenario
async def consume_and_commit(run: Run) -> None:
    await send(run, 10)
    partition = TopicPartition(run.name, 0)
    read, committed = [], []
    async with subscribed(run) as reader:
        for _ in range(2):
            read += await take(reader, 5)
            await reader.commit({partition: read[-1].offset + 1})
            committed.append(await reader.committed(partition))
    run.report("read", format_records(read))
    run.report("committed", committed)


@scenario
async def restart_and_continue(run: Run) -> None:
    await send(run, 10)
    async with subscribed(run) as reader:
        run.report("first", format_records(await take(reader, 4)))
        await reader.commit({TopicPartition(run.name, 0): 4})
    async with subscribed(run) as reader:
        run.report("second", format_records(await take(reader, 6)))


@scenario
async def two_members(run: Run) -> None:
    first, second = await asyncio.gather(Member(run).start(), Member(run).start())
    run.report("both", [await first.wait(2), await second.wait(2)])
    await first.close()
    run.report("alone", await second.wait(4))
    await second.close()


@scenario
async def static_member(run: Run) -> None:
    members = (Member(run, group_instance_id=instance).start() for instance in ("one", "two"))
    first, second = await asyncio.gather(*members)
    run.report("both", [await first.wait(2), await second.wait(2)])
    before = second.rebalances
    await first.close()
    again = await Member(run, group_instance_id="one").start()
    run.report("again", await again.wait(2))
    run.report("rebalances", second.rebalances - before)
    await again.close()
    await second.close()


unsupported("cooperative", "no cooperative assignor")


@scenario
async def rewind(run: Run) -> None:
    await send(run, 10)
    partition = TopicPartition(run.name, 0)
    async with assigned(run, 1) as reader:
        await take(reader, 10)
        await reader.commit({partition: 10})
        reader.seek(partition, 3)
        run.report("after_seek", format_records(await take(reader, 1))[0])
        await reader.commit({partition: 2})
        run.report("committed", await reader.committed(partition))
    async with subscribed(run) as reader:
        run.report("after_commit", format_records(await take(reader, 1))[0])


@scenario
async def commit_with_metadata(run: Run) -> None:
    async with assigned(run, 2) as reader:
        run.report("before", await noted(run))
        await reader.commit({TopicPartition(run.name, p): note for p, note in NOTES.items()})
        run.report("committed", await noted(run))
        await reader.commit({TopicPartition(run.name, 0): (2, "new")})
        run.report("replaced", await noted(run))


async def noted(run: Run) -> dict[str, list[object]]:
    async with admin(run) as client:
        found = await client.list_consumer_group_offsets(run.name)
    return {str(p.partition): [c.offset, c.metadata] for p, c in found.items()}


@scenario
async def metadata_too_large(run: Run) -> None:
    partition = TopicPartition(run.name, 0)
    async with assigned(run, 1) as reader:
        await reader.commit({partition: (1, "x" * METADATA_MAX_BYTES)})
        try:
            await reader.commit({partition: (2, "x" * (METADATA_MAX_BYTES + 1))})
        except BrokerResponseError as error:
            run.report("error", error.errno)
    offset, metadata = (await noted(run))["0"]
    run.report("committed", offset)
    run.report("length", len(str(metadata)))


@scenario
async def unknown_topic(run: Run) -> None:
    async with admin(run) as client:
        response = await client.delete_topics([run.name])
        run.report("error", response.topic_error_codes[0][1])


@scenario
async def lag(run: Run) -> None:
    await send(run, 10)
    partition = TopicPartition(run.name, 0)
    async with assigned(run, 1) as reader:
        await reader.commit({partition: 4})
        end, committed = (await reader.end_offsets([partition]))[partition], await reader.committed(partition)
        run.report("beginning", (await reader.beginning_offsets([partition]))[partition])
    run.report("end", end)
    run.report("committed", committed)
    run.report("lag", end - committed)


@asynccontextmanager
async def transactional(run: Run, timeout_ms: int = 60_000) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=run.bootstrap, **SECURED, transactional_id=run.name, transaction_timeout_ms=timeout_ms
    )
    async with producer:
        yield producer


async def begin(producer: AIOKafkaProducer, run: Run, number: int) -> None:
    await producer.begin_transaction()
    await producer.send_and_wait(run.name, key=key_of(number), value=value_of(number), partition=0)


async def error_of(call: Callable[[], Awaitable[object]]) -> int:
    try:
        await call()
    except ProducerFenced:
        return INVALID_PRODUCER_EPOCH
    except BrokerResponseError as error:
        return int(error.errno)
    return 0


@asynccontextmanager
async def committed_reader(run: Run, partition: int, group: bool = False) -> AsyncIterator[AIOKafkaConsumer]:
    async with consumer(run, group, isolation_level="read_committed") as reader:
        reader.assign([TopicPartition(run.name, partition)])
        yield reader


@scenario
async def exactly_once(run: Run) -> None:
    await send(run, 6)
    source = TopicPartition(run.name, 0)
    async with transactional(run) as producer, committed_reader(run, 0, group=True) as reader:
        for number in range(6):
            for commits in (False, True) if number % 2 else (True,):
                (record,) = await take(reader, 1)
                await producer.begin_transaction()
                await producer.send_and_wait(run.name, key=record.key, value=record.value, partition=1)
                await producer.send_offsets_to_transaction({source: record.offset + 1}, run.name)
                await (producer.commit_transaction if commits else producer.abort_transaction)()
                if not commits:
                    reader.seek(source, record.offset)
        run.report("committed", await reader.committed(source))
    async with committed_reader(run, 1) as reader:
        run.report("copied", format_records(await take(reader, 6)))


@scenario
async def fenced_producer(run: Run) -> None:
    async with transactional(run) as first:
        await begin(first, run, 0)
        async with transactional(run) as second:
            await begin(second, run, 1)
            run.report("error", await error_of(first.commit_transaction))
            await second.commit_transaction()
        async with committed_reader(run, 0) as reader:
            run.report("read", format_records(await take(reader, 1)))


@scenario
async def transaction_timeout(run: Run) -> None:
    async with transactional(run, timeout_ms=1000) as producer:
        await begin(producer, run, 0)
        async with AIOKafkaProducer(bootstrap_servers=run.bootstrap, **SECURED) as plain:
            await plain.send_and_wait(run.name, key=key_of(1), value=value_of(1), partition=0)
        async with committed_reader(run, 0) as reader:
            run.report("read", format_records(await take(reader, 1)))
        run.report("error", await error_of(producer.commit_transaction))


@scenario
async def list_groups(run: Run) -> None:
    await commit(run, 1)
    async with admin(run) as client:
        run.report("listed", run.name in [group[0] for group in await client.list_consumer_groups()])


@scenario
async def describe_group(run: Run) -> None:
    member = await Member(run).start()
    await member.wait(2)
    async with admin(run) as client:

        async def described() -> dict[str, Any]:
            (response,) = await client.describe_consumer_groups([run.name])
            group: dict[str, Any] = response.to_object()["groups"][0]
            return group

        async def is_empty() -> bool:
            return not (await described())["members"]

        group = await described()
        run.report("state", group["state"])
        run.report("members", len(group["members"]))
        assignment = ConsumerProtocolMemberAssignment.decode(group["members"][0]["member_assignment"])
        run.report("assigned", sorted(p.partition for p in assignment.partitions()))
        await member.close()
        await wait_until(is_empty)
        run.report("then", (await described())["state"])


unsupported("delete-group", "its admin client does not delete groups")


@scenario
async def list_group_offsets(run: Run) -> None:
    await commit(run, 3, 7)
    run.report("offsets", {partition: offset for partition, (offset, _) in (await noted(run)).items()})


unsupported("delete-offsets", "its admin client does not delete offsets")
main()
