"""Random histories of a topic and a group with real clients: one process of `tests.kproto_client.hung_brokers`.

`python -m tests.kproto_client.histories WORK`, where WORK is JSON: the fields of `Work`. The histories run side by side
in threads. Each creates a topic and a group, and then in random order: writes records, some with old timestamps, adds
partitions, starts and stops members, and rewrites the committed offsets by a plain client or by an admin tool. At the
end, each record has to be delivered that the strategy must not skip: those after the position at which the group
started, and all records of partitions that are added later.

Each line of the output is JSON: ``{"hang_s": 1.5}`` requests a hang of the broker, ``{"running": [3, 4]}`` names the
seeds of the histories that run, and the last line is the report.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.kproto_client.history_members import KINDS, SESSION_S, Member, Watch
from tests.kproto_client.kafka_fixture import KafkaFixture, unique_name
from tests.kproto_client.reset_cases import HOUR_MS, resets
from tests.network.raw_client import RawClient

T = TypeVar("T")

STRATEGIES: dict[str, dict[str, str]] = {
    "safe_latest": resets("safe_latest", "latest"),
    "latest_on_start": resets("latest_on_start", "earliest", "nearest"),
    "earliest_on_start": resets("earliest_on_start", "earliest", "nearest"),
    "earliest": resets("earliest", "latest", "nearest"),
    "nearest": resets("none", "earliest", "nearest"),
    "none": resets("none", "none", "nearest"),
    "without commits of resets": {**resets("latest_on_start", "earliest"), "commit_reset_position": "false"},
}
"""All but the last one read added partitions from their first record; with "none" the members seek there."""
SKIPPING = "without commits of resets"
SETTINGS: dict[str, Any] = {
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": int(SESSION_S * 1000),
    "topic_metadata_refresh_interval_ms": 500,
    "auto_commit_interval_ms": 300,
    "fetch_wait_max_ms": 200,
    "enable_partition_eof": False,
    "socket_connection_setup_timeout_ms": 3_000,
    "reconnect_backoff_max_ms": 500,
}
RETRIED = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.NON_EMPTY_GROUP,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.GROUP_ID_NOT_FOUND,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._WAIT_COORD,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN,  # of 2.8.2, to an admin tool
        KafkaError.INVALID_REPLICATION_FACTOR,  # of 4.4.0, before the restarted broker is unfenced
    }
)
"""While the broker hangs or restarts, or while a member that was stopped is still in the group."""
RETRY_LIMIT_S = 60.0
MEMBERS_MAX = 3
PARTITIONS_MAX = 6
STEPS = (5, 12)
ADMIN_COMMIT_VERSION = 7
"""Of OffsetCommit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The histories of one process."""

    bootstrap: str
    seeds: tuple[int, ...]
    side_by_side: int
    strategies: tuple[str, ...] = ("safe_latest",)
    consumer_protocol: bool = False
    """Whether some groups use KIP-848's protocol."""
    longest_hang_s: float = 3.0
    longest_outage_s: float = 3.0
    """Of a hang or a restart."""
    finds_losses: bool = True
    logs: bool = False
    """Whether every member keeps the last lines of librdkafka's log."""
    buffer_bytes: int = 0
    """``parallel.rebalance.buffer.bytes`` of the members, 0: the default."""
    read_limit_s: float = 60.0
    """For the first commits, for records that are not delivered when the steps have ended, and for repeated calls of
    other clients."""


class History:
    """One topic, one group and its members."""

    def __init__(self, kafka: KafkaFixture, seed: int, work: Work, watch: Watch) -> None:
        self._kafka = kafka
        self._random = rng = random.Random(seed)  # noqa: S311 - reproducible
        self._watch = watch
        self._work = work
        self._strategy = rng.choice(work.strategies)
        self._settings: dict[str, Any] = {**SETTINGS, **STRATEGIES[self._strategy]}
        self._settings["partition_assignment_strategy"] = rng.choice(("range,roundrobin", "cooperative-sticky"))
        if work.consumer_protocol and rng.random() < 0.4:
            self._settings["group_protocol"] = "consumer"
        self._topic, self._group = unique_name(f"history-{seed}"), unique_name(f"history-{seed}")
        self._partitions = 0
        self._ends: list[int] = []
        """The log end of each partition."""
        self._required_from: list[int] = []
        """By partition, the first offset that has to be delivered."""
        self._delivered: list[set[int]] = []
        self._members: list[Member] = []
        self.log: list[str] = []

    def run(self) -> None:
        """Run the history; raise an `AssertionError` for a skipped record."""
        try:
            self._start_group()
            steps = (self._write, self._write, self._add_partition, self._start, self._stop, self._rewrite, self._wait)
            for _ in range(self._random.randint(*STEPS)):
                self._random.choice(steps)()
            self._read_all()
        finally:
            for member in self._members:
                member.stop()
            for member in self._members:
                member.join()

    @property
    def records(self) -> int:
        return sum(self._ends)

    # -- the start

    def _start_group(self) -> None:
        partitions = self._partitions = self._random.randint(1, 3)
        self._retried(lambda: self._kafka.create(self._topic, partitions), KafkaError.TOPIC_ALREADY_EXISTS)
        for partition in range(partitions):
            self._add(0)
            if self._random.random() < 0.6:
                self._write(partition, old=True)
        with_records = [each for each in range(partitions) if self._ends[each]]
        if self._strategy == "safe_latest" and self._random.random() < 0.2:
            self._note("the group is older than kproto.client")
            self._commit(TopicPartition(self._topic, 0, self._ends[0]))
            self._required_from[0] = self._ends[0]
            self._start()
            return
        self._start(first=True)
        if self._strategy in ("earliest", "nearest", "none", SKIPPING):
            return  # nothing is skipped, or nothing is committed before it is read
        deadline = time.monotonic() + self._work.read_limit_s
        while not all(each >= 0 for each in self._committed(partitions)):
            assert time.monotonic() < deadline, f"not all partitions are committed\n{self._states()}"
            time.sleep(0.05)
        if self._strategy != "earliest_on_start":
            for partition in with_records:  # older than the group
                self._required_from[partition] = self._ends[partition]

    def _add(self, required_from: int) -> None:
        self._ends.append(0)
        self._required_from.append(sys.maxsize if self._strategy == SKIPPING else required_from)
        self._delivered.append(set())

    # -- the steps

    def _write(self, partition: int | None = None, *, old: bool = False) -> None:
        partition = self._random.randrange(len(self._ends)) if partition is None else partition
        count = self._random.randint(1, 20)
        timestamp = int(time.time() * 1000) - 24 * HOUR_MS if old or self._random.random() < 0.5 else None
        self._note(f"write {count} to {partition}{'' if timestamp is None else ', old'}")
        # After a restart, the producer may not know the partition any more.
        self._retried(lambda: self._kafka.wait_for_partitions(self._topic, self._partitions))
        self._kafka.write(self._topic, count, partition, timestamp)
        self._ends[partition] += count

    def _add_partition(self) -> None:
        if len(self._ends) < PARTITIONS_MAX:
            self._note(f"add partition {len(self._ends)}")
            count = len(self._ends) + 1
            self._retried(lambda: self._kafka.expand(self._topic, count), KafkaError.INVALID_PARTITIONS)
            self._partitions = count
            self._add(0)
            if self._random.random() < 0.7:
                self._write(count - 1)

    def _start(self, *, first: bool = False) -> None:
        alive = sum(each.is_alive for each in self._members)
        if alive >= MEMBERS_MAX:
            return
        kind = self._random.choice(("blocking", "blocking", "aio", "aio", "plain"))
        if kind == "plain" and (first or self._strategy in ("latest_on_start", SKIPPING)):
            kind = "blocking"
        config = self._config(kind)
        self._note(f"start {kind} {config}")
        seed = self._random.randrange(1 << 30)
        self._members.append(KINDS[kind](config, self._topic, seed, self._watch, self._deliver))

    def _config(self, kind: str) -> dict[str, Any]:
        rng, settings = self._random, dict(self._settings)
        if kind == "plain":
            settings = {name: each for name, each in settings.items() if not name.startswith("auto_offset_reset_")}
            settings["auto_offset_reset"] = "earliest"
        elif rng.random() < 0.4:
            settings["enable_parallel_rebalance"] = True
            settings["parallel_rebalance_merge"] = rng.random() < 0.5
            if self._work.buffer_bytes:
                settings["parallel_rebalance_buffer_bytes"] = self._work.buffer_bytes
            if kind == "blocking" and rng.random() < 0.4:
                settings["parallel_rebalance_order"] = "key"
        settings["enable_auto_commit"] = rng.random() < 0.8
        if rng.random() < 0.2 and "parallel_rebalance_order" not in settings:
            settings["enable_auto_offset_store"] = False
        config = self._kafka.config(self._group, **settings)
        config["error_cb"] = lambda *_: None
        if rng.random() < 0.5 or self._work.logs:
            config["debug"] = "cgrp"
        if rng.random() < 0.3:
            config.update({"stats_cb": lambda *_: None, "statistics.interval.ms": 100})
        for callback in ("on_commit", "throttle_cb", *(() if kind == "plain" else ("event_cb",))):
            if rng.random() < 0.3:
                config[callback] = lambda *_: None
        return config

    def _stop(self) -> None:
        alive = [each for each in self._members if each.is_alive]
        if alive:
            self._note("stop a member")
            self._random.choice(alive).stop()

    def _rewrite(self) -> None:
        """Stop all members, and rewrite a committed offset without moving it forward."""
        self._note("stop all members")
        for member in self._members:
            member.stop()
        for member in self._members:
            member.join()
        partition = self._random.randrange(len(self._ends))
        committed = self._committed(len(self._ends))[partition]
        if committed >= 0:
            at = TopicPartition(self._topic, partition, max(0, committed - self._random.randint(0, 2)))
            if self._random.random() < 0.5:
                at = TopicPartition(self._topic, partition, at.offset, "of another tool")
                self._note(f"rewrite {partition} at {at.offset} by a plain client")
                self._commit(at)
            else:
                self._note(f"rewrite {partition} at {at.offset} by an admin tool")
                self._retried(lambda: self._alter(at))
        self._start()

    def _wait(self) -> None:
        time.sleep(self._random.uniform(0.05, 0.8))

    # -- what was read

    def _deliver(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self._delivered[partition].add(offset)

    def _read_all(self) -> None:
        if not any(each.is_alive for each in self._members):
            self._start()
        deadline = time.monotonic() + self._work.read_limit_s
        while any(self._missing()) and time.monotonic() < deadline:
            if not any(each.is_alive for each in self._members):
                self._start()  # the others were stopping
            time.sleep(0.02)
        missing = {partition: each for partition, each in enumerate(self._missing()) if each}
        committed = self._committed(len(self._ends)) if missing else []
        assert not missing, f"{self._strategy}, not delivered: {missing}, committed {committed}\n{self._states()}"

    def _states(self) -> str:
        return "\n".join(each.state() for each in self._members if each.is_alive)

    def _missing(self) -> list[list[int]]:
        bounds = zip(self._required_from, self._ends, self._delivered, strict=True)
        return [sorted(set(range(start, end)) - delivered) for start, end, delivered in bounds]

    # -- other clients

    def _committed(self, partitions: int) -> list[int]:
        found = []
        for each in range(partitions):
            committed = self._retried(partial(self._kafka.committed_with_metadata, self._group, self._topic, each))
            assert committed is not None
            found.append(committed.offset)
        return found

    def _commit(self, at: TopicPartition) -> None:
        commit = self._kafka.commit
        self._retried(lambda: commit(self._group, at.topic, at.offset, at.partition, at.metadata or ""))

    def _alter(self, at: TopicPartition) -> None:
        """Commit as an admin tool does. librdkafka's own ends the process while brokers hang or restart."""
        partition = OffsetCommitRequestPartition(
            partition_index=at.partition, committed_offset=at.offset, committed_metadata=None
        )
        topic = OffsetCommitRequestTopic(name=at.topic, partitions=(partition,))
        request = OffsetCommitRequest(group_id=self._group, topics=(topic,))
        try:
            with RawClient(self._kafka.bootstrap) as client:
                response = client.ask(request, ADMIN_COMMIT_VERSION)
        except OSError as error:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, str(error))) from error
        code = response.topics[0].partitions[0].error_code
        if code:
            raise KafkaException(KafkaError(code))

    def _retried(self, call: Callable[[], T], done: int | None = None) -> T | None:
        """Repeat a call until the broker responds; the error code `done` shows that an earlier call has worked."""
        deadline = time.monotonic() + max(RETRY_LIMIT_S, self._work.read_limit_s)
        while True:
            try:
                return call()
            except KafkaException as error:
                if error.args[0].code() == done:
                    return None
                if error.args[0].code() not in RETRIED or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def _note(self, text: str) -> None:
        self.log.append(text)


def main(text: str) -> None:
    work = Work(**json.loads(text))
    output = threading.Lock()

    def put(line: dict[str, Any]) -> None:
        with output:
            print(json.dumps(line), flush=True)

    watch = Watch(
        lambda hang_s: put({"hang_s": hang_s}), work.longest_outage_s, finds_losses=work.finds_losses, logs=work.logs
    )
    kafka = KafkaFixture(work.bootstrap)
    running: set[int] = set()

    def run(seed: int) -> None:
        running.add(seed)
        put({"running": sorted(running)})
        history = History(kafka, seed, work, watch)
        try:
            history.run()
        except Exception as error:  # noqa: BLE001 - a finding
            watch.findings.append(f"history {seed}: {type(error).__name__}: {error}; {history.log}")
        running.discard(seed)
        watch.counts["histories"] += 1
        watch.counts["records"] += history.records
        watch.counts["members"] += len(history._members)

    with ThreadPoolExecutor(work.side_by_side) as threads:
        list(threads.map(run, work.seeds))
    put({"report": {"counts": watch.counts, "longest_s": watch.longest, "findings": watch.findings}})


if __name__ == "__main__":
    main(sys.argv[1])
