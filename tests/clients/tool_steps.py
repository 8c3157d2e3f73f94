"""A table of tool runs: each step runs against the broker under test and a real one, and has to print the same.

    CHAPTER = (
        topic("t", 2),
        run(TOPICS, "--create --topic t", "already exists"),
        look(TOPICS, "--describe --topic t", "PartitionCount: 2"),
    )

In the arguments ADDRESS stands for the broker's address, and FOLDER for a folder of the chapter's own.
"""

import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer

from tests.clients import admin
from tests.clients.tools import Pair, Printed
from tests.waiting import wait_until

SEEN_LIMIT_S = 5.0
"""A real broker learns of a change some milliseconds after its controller."""
FIRST_TIMESTAMP = 1_700_000_000_000


class Chapter:
    """Where the steps of a chapter run."""

    def __init__(self, pair: Pair, folder: Path, stack: ExitStack) -> None:
        self.pair, self.folder, self.stack = pair, folder, stack
        self.members: dict[tuple[str, str], KafkaConsumer] = {}
        """By address and group."""
        self.problems: list[str] = []


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a tool."""

    tool: str
    arguments: str
    told: tuple[str, ...]
    """What the real broker's output has in it; none: it has nothing."""
    stdin: str
    is_look: bool
    """Nothing changes by it: while the outputs differ it may be asked again, for a moment."""
    unordered: bool
    figures: bool
    """Its numbers are measurements."""

    def __call__(self, chapter: Chapter) -> None:
        args = shlex.split(self.arguments.replace("FOLDER", str(chapter.folder)))
        limit = time.monotonic() + SEEN_LIMIT_S
        tested, real = self._both(chapter.pair, args)
        while self.is_look and self._compared(tested) != self._compared(real) and time.monotonic() < limit:
            tested, real = self._both(chapter.pair, args)
        chapter.problems.extend(self._problems(tested, real))

    def _both(self, pair: Pair, args: list[str]) -> tuple[Printed, Printed]:
        tested, real = (pair.run(address, self.tool, *args, stdin=self.stdin) for address in pair.addresses)
        return tested, real

    def _compared(self, printed: Printed) -> Printed:
        printed = printed.without_figures() if self.figures else printed
        return printed.unordered() if self.unordered else printed

    def _problems(self, tested: Printed, real: Printed) -> Iterator[str]:
        command = f"{self.tool.rpartition('.')[2]} {self.arguments}"
        text = f"{real.out}\n{real.err}"
        absent = [told for told in self.told if told not in text]
        if absent or (text.strip() and not self.told):
            yield f"{command}\n-- told by a real broker: {absent or 'nothing'} was expected\n{real}"
        tested, real = self._compared(tested), self._compared(real)
        if tested != real:
            yield f"{command}\n-- under test\n{tested}\n-- real\n{real}"


Action = Callable[[Chapter], None]


def run(tool: str, arguments: str, *told: str, stdin: str = "", unordered: bool = False, figures: bool = False) -> Step:
    """A run that changes something, or that is refused."""
    return Step(tool, arguments, told, stdin, False, unordered, figures)


def look(tool: str, arguments: str, *told: str, unordered: bool = False, figures: bool = False) -> Step:
    """A run that changes nothing."""
    return Step(tool, arguments, told, "", True, unordered, figures)


def topic(name: str, partitions: int) -> Action:
    """Make a topic whose records never expire, however old."""
    return _on_both(lambda address: admin.create_topic(address, name, partitions, {"retention.ms": "-1"}))


def wait(name: str, partitions: int) -> Action:
    """Wait until both brokers know it with so many partitions; 0: until they have forgotten it."""
    return _on_both(lambda address: admin.wait_topic(address, name, partitions))


def records(name: str, partition: int, count: int) -> Action:
    """Write records in one batch, a second between their timestamps."""

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

    def write(chapter: Chapter) -> None:
        (chapter.folder / name).write_text(text)

    return write


def joined(group: str, names: Iterable[str]) -> Action:
    """Have a consumer join, alone; it stays, with what it has read committed, until it `left`."""
    names = list(names)

    def join(chapter: Chapter) -> None:
        for address in chapter.pair.addresses:
            consumer = KafkaConsumer(
                *names,
                bootstrap_servers=address,
                group_id=group,
                client_id="the-client",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            chapter.stack.callback(consumer.close, autocommit=False)
            for name in names:
                consumer.partitions_for_topic(name)  # else its first assignment may be made without the topic
            wait_until(partial(_has_partitions, consumer), f"an assignment for {group} by {address}")
            consumer.poll(1000)
            consumer.commit()
            chapter.members[address, group] = consumer

    return join


def _has_partitions(consumer: KafkaConsumer) -> bool:
    consumer.poll(100)
    return bool(consumer.assignment())


def left(group: str) -> Action:
    """Have it leave."""

    def leave(chapter: Chapter) -> None:
        for address in chapter.pair.addresses:
            chapter.members.pop((address, group)).close(autocommit=False)

    return leave


def _on_both(action: Callable[[str], None]) -> Action:
    def act(chapter: Chapter) -> None:
        for address in chapter.pair.addresses:
            action(address)

    return act


@contextmanager
def _groups_forgotten(address: str) -> Iterator[None]:
    """Some tools make groups with names of their own, or static members, who do not leave when they end."""
    before = admin.group_names(address)
    try:
        yield
    finally:
        admin.forget_groups(address, admin.group_names(address) - before)


def run_chapter(steps: Iterable[Action], pair: Pair, folder: Path) -> None:
    """Run a chapter, in its order; in the end its groups are gone, so that lists of all groups have none of them."""
    with ExitStack() as stack:
        for address in pair.addresses:
            stack.enter_context(_groups_forgotten(address))
        chapter = Chapter(pair, folder, stack)
        for step in steps:
            step(chapter)
        assert not chapter.problems, "\n\n".join(chapter.problems)
