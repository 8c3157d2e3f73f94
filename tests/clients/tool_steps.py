"""Scripts of tool runs: each step runs against the broker under test and a real one, and has to print the same.

    SCRIPT = (
        topic("t", 2),
        run(TOPICS, "--create --topic t", "already exists"),
        query(TOPICS, "--describe --topic t", "PartitionCount: 2"),
    )

In the arguments, ADDRESS stands for the broker's address, FOLDER for a folder of the script, and PRODUCER for the
producer id of the last `transaction`.
"""

import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from kafka import KafkaConsumer, KafkaProducer

from tests.clients import admin
from tests.clients.tools import Pair, ToolOutput
from tests.waiting import wait_until

PROPAGATION_LIMIT_S = 5.0
"""A real broker knows a change some milliseconds after its controller."""
FIRST_TIMESTAMP = 1_700_000_000_000


class ScriptRun:
    """The state of a running script."""

    def __init__(self, pair: Pair, folder: Path, stack: ExitStack) -> None:
        self.pair, self.folder, self.stack = pair, folder, stack
        self.members: dict[tuple[str, str], KafkaConsumer] = {}
        """Members by address and group."""
        self.producer_ids: dict[str, str] = {}
        """The id of the newest transactional producer by address."""
        self.problems: list[str] = []


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a tool."""

    tool: str
    arguments: str
    expected: tuple[str, ...]
    """Texts in the output for the real broker; none: the output is empty."""
    stdin: str
    is_query: bool
    """Whether the tool changes nothing; a query is repeated while the outputs differ, up to PROPAGATION_LIMIT_S."""
    unordered: bool
    measured: bool
    """Whether the numbers in the output are measurements, which are not compared."""
    ignored: tuple[str, ...] = ()
    """The columns of a table that are not compared."""

    def __call__(self, script: ScriptRun) -> None:
        limit = time.monotonic() + PROPAGATION_LIMIT_S
        tested, real = self._both(script)
        while self.is_query and self._compared(tested) != self._compared(real) and time.monotonic() < limit:
            tested, real = self._both(script)
        script.problems.extend(self._problems(tested, real))

    def _both(self, script: ScriptRun) -> tuple[ToolOutput, ToolOutput]:
        tested, real = (self._run(script, address) for address in script.pair.addresses)
        return tested, real

    def _run(self, script: ScriptRun, address: str) -> ToolOutput:
        arguments = self.arguments.replace("FOLDER", str(script.folder))
        arguments = arguments.replace("PRODUCER", script.producer_ids.get(address, "PRODUCER"))
        return script.pair.run(address, self.tool, *shlex.split(arguments), stdin=self.stdin)

    def _compared(self, printed: ToolOutput) -> ToolOutput:
        printed = printed.without_numbers() if self.measured else printed
        printed = printed.without_columns(self.ignored) if self.ignored else printed
        return printed.unordered() if self.unordered else printed

    def _problems(self, tested: ToolOutput, real: ToolOutput) -> Iterator[str]:
        command = f"{self.tool.rpartition('.')[2]} {self.arguments}"
        text = f"{real.out}\n{real.err}"
        absent = [expected for expected in self.expected if expected not in text]
        if absent or (text.strip() and not self.expected):
            yield f"{command}\n-- real: expected {absent or 'no output'}\n{real}"
        tested, real = self._compared(tested), self._compared(real)
        if tested != real:
            yield f"{command}\n-- under test\n{tested}\n-- real\n{real}"


Action = Callable[[ScriptRun], None]


def run(
    tool: str, arguments: str, *expected: str, stdin: str = "", unordered: bool = False, measured: bool = False
) -> Step:
    """Return a step that changes something, or that fails."""
    return Step(tool, arguments, expected, stdin, False, unordered, measured)


def query(
    tool: str,
    arguments: str,
    *expected: str,
    unordered: bool = False,
    measured: bool = False,
    ignored: tuple[str, ...] = (),
) -> Step:
    """Return a step that changes nothing."""
    return Step(tool, arguments, expected, "", True, unordered, measured, ignored)


def topic(name: str, partitions: int) -> Action:
    """Create a topic with unlimited retention."""
    return _on_both(lambda address: admin.create_topic(address, name, partitions, {"retention.ms": "-1"}))


def wait(name: str, partitions: int) -> Action:
    """Wait until both brokers have the topic with this many partitions, or no topic for 0."""
    return _on_both(lambda address: admin.wait_topic(address, name, partitions))


def records(name: str, partition: int, count: int) -> Action:
    """Write records in one batch, with timestamps one second apart."""

    def fill(address: str) -> None:
        producer = KafkaProducer(bootstrap_servers=address, linger_ms=10_000)
        for n in range(count):
            timestamp_ms = FIRST_TIMESTAMP + 1000 * n
            producer.send(name, b"value %d" % n, b"key %d" % n, partition=partition, timestamp_ms=timestamp_ms)
        producer.flush()
        producer.close()

    return _on_both(fill)


def committed(group: str, name: str, offsets: dict[int, int]) -> Action:
    """Commit offsets by partition."""
    return _on_both(lambda address: admin.commit(address, group, name, offsets))


def file(name: str, text: str) -> Action:
    """Write a file for a tool to read."""

    def write(script: ScriptRun) -> None:
        (script.folder / name).write_text(text.replace("FOLDER", str(script.folder)))

    return write


def joined(group: str, names: Iterable[str]) -> Action:
    """Join a group with one consumer, which reads and commits, and stays until `left`."""
    names = list(names)

    def join(script: ScriptRun) -> None:
        for address in script.pair.addresses:
            consumer = KafkaConsumer(
                *names,
                bootstrap_servers=address,
                group_id=group,
                client_id="the-client",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            script.stack.callback(consumer.close, autocommit=False)
            for name in names:
                consumer.partitions_for_topic(name)  # otherwise the first assignment may lack the topic
            wait_until(partial(_has_partitions, consumer), f"an assignment for {group} by {address}")
            consumer.poll(1000)
            consumer.commit()
            script.members[address, group] = consumer

    return join


def _has_partitions(consumer: KafkaConsumer) -> bool:
    consumer.poll(100)
    return bool(consumer.assignment())


def left(group: str) -> Action:
    """Close the consumer of `joined`."""

    def leave(script: ScriptRun) -> None:
        for address in script.pair.addresses:
            script.members.pop((address, group)).close(autocommit=False)

    return leave


def transaction(
    transactional_id: str,
    name: str,
    *,
    keys: Iterable[str] = ("k",),
    ends: Literal["committed", "aborted"] | None = None,
    timestamp_ms: int = FIRST_TIMESTAMP,
) -> Action:
    """Write records to partition 0 in a transaction of a new producer; None: it stays open until the script ends."""
    keys = list(keys)

    def begin(script: ScriptRun) -> None:
        for address in script.pair.addresses:
            producer = KafkaProducer(bootstrap_servers=address, transactional_id=transactional_id)
            script.stack.callback(producer.close, 0)
            producer.init_transactions()
            producer.begin_transaction()
            for key in keys:
                producer.send(name, b"v", key.encode(), partition=0, timestamp_ms=timestamp_ms).get(PROPAGATION_LIMIT_S)
            if ends is not None:
                (producer.commit_transaction if ends == "committed" else producer.abort_transaction)()
            script.producer_ids[address] = str(producer._transaction_manager.producer_id_and_epoch.producer_id)

    return begin


def _on_both(action: Callable[[str], None]) -> Action:
    def act(script: ScriptRun) -> None:
        for address in script.pair.addresses:
            action(address)

    return act


@contextmanager
def _no_other_groups(address: str) -> Iterator[None]:
    """Delete all groups before and after: other tests leave groups, and some tools create groups with other names."""
    admin.delete_groups(address, admin.group_names(address))
    try:
        yield
    finally:
        admin.delete_groups(address, admin.group_names(address))


def run_script(steps: Iterable[Action], pair: Pair, folder: Path) -> None:
    """Run the steps in order on brokers without groups, which lists of groups would have."""
    with ExitStack() as stack:
        for address in pair.addresses:
            stack.enter_context(_no_other_groups(address))
        script = ScriptRun(pair, folder, stack)
        for step in steps:
            step(script)
        assert not script.problems, "\n\n".join(script.problems)
