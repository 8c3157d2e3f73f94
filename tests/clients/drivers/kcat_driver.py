"""The scenarios with kcat; each consumer and producer is a process."""

import re
import subprocess
import threading
from typing import IO

from tests.clients.drivers.contract import (
    LIBRDKAFKA_SECURITY,
    LIMIT_S,
    Run,
    main,
    member_scenarios,
    scenario,
    unsupported,
)

DELIVERED = re.compile(r"% Message delivered to partition (\d+) \(offset (\d+)\)")
REBALANCED = re.compile(r"% Group \S+ rebalanced.*(assign|revoke)[^:]*: (.*)")
"""`... rebalanced (memberid ID): assigned: TOPIC [0], ...`, or with the cooperative protocol
`... rebalanced: incremental revoke of 2 partition(s) (memberid ID, ...): TOPIC [0], ...`."""
UNKNOWN_TOPIC = "Broker: Unknown topic or partition"
GROUP = ("auto.offset.reset=earliest", "session.timeout.ms=6000", "heartbeat.interval.ms=100", "fetch.wait.max.ms=50")


def kcat(run: Run, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = ["kcat", "-b", run.bootstrap, *SECURED, *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def settings(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("-X", pair)]


SECURED = settings(*(f"{name}={value}" for name, value in LIBRDKAFKA_SECURITY.items()))


def send(run: Run, numbers: range, partition: int = 0, *extra: str) -> list[int]:
    """Send records; return the offset in the acknowledgment of each."""
    text = "".join(f"{n}=value {n}\n" for n in numbers)
    words = ["-P", "-t", run.name, "-p", str(partition), "-K", "=", "-vvv", *settings("acks=all", *extra)]
    done = kcat(run, *words, text=text)
    return [int(offset) for _, offset in DELIVERED.findall(done.stderr)]


def read(run: Run, partition: int = 0) -> list[str]:
    words = ["-C", "-t", run.name, "-p", str(partition), "-o", "beginning", "-e", "-q", "-K", "="]
    return kcat(run, *words).stdout.splitlines()


def take(run: Run, count: int) -> list[str]:
    """Return the next records of the group; kcat commits the records that it printed when it ends."""
    return kcat(run, *settings(*GROUP), "-G", run.name, "-c", str(count), "-K", "=", run.name).stdout.splitlines()


class Member:
    def __init__(self, run: Run, *extra: str) -> None:
        self.rebalances = 0
        self.revoked: list[int] = []
        self._partitions: set[int] = set()
        self._changed = threading.Condition()
        words = ["kcat", "-b", run.bootstrap, *SECURED, *settings(*GROUP, *extra), "-G", run.name, run.name]
        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._follow, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    def _follow(self, lines: IO[str]) -> None:
        for line in lines:
            rebalanced = REBALANCED.match(line)
            if rebalanced:
                with self._changed:
                    self._note(rebalanced[1], {int(p) for p in re.findall(r"\[(\d+)\]", rebalanced[2])})
                    self._changed.notify_all()

    def _note(self, change: str, partitions: set[int]) -> None:
        if change == "assign":
            self.rebalances += 1
            self._partitions |= partitions
        else:
            self.revoked = sorted(partitions)
            self._partitions -= partitions

    def wait(self, count: int) -> list[int]:
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._partitions) == count, LIMIT_S):
                raise TimeoutError(f"{self._partitions} assigned, not {count} partitions")
            return sorted(self._partitions)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT_S)
        self._reader.join()


def new_member(run: Run, *, instance_id: str | None = None, is_cooperative: bool = False) -> Member:
    instance = [] if instance_id is None else [f"group.instance.id={instance_id}"]
    assignor = ["partition.assignment.strategy=cooperative-sticky"] if is_cooperative else []
    return Member(run, *instance, *assignor)


member_scenarios(new_member)


@scenario
def produce_100(run: Run) -> None:
    offsets = [send(run, range(p, 100, 2), p) for p in range(2)]
    run.report("acknowledged", sum(len(found) for found in offsets))
    run.report("last", [max(found) for found in offsets])
    run.report("read", [read(run, p) for p in range(2)])


@scenario
def idempotent_produce(run: Run) -> None:
    offsets = send(run, range(100), 0, "enable.idempotence=true")
    run.report("acknowledged", len(offsets))
    run.report("last", max(offsets))
    run.report("read", read(run))


@scenario
def restart_and_continue(run: Run) -> None:
    send(run, range(10))
    run.report("first", take(run, 4))
    run.report("second", take(run, 6))


@scenario
def unknown_topic(run: Run) -> None:
    words = ["-C", "-t", run.name, "-p", "0", "-e", "-q"]
    done = kcat(run, *settings("allow.auto.create.topics=false"), *words)
    run.report("error", 3 if UNKNOWN_TOPIC in done.stderr else done.stderr)


for name, reason in {
    "create-topic": "creates no topics",
    "consume-and-commit": "commits only when it ends",
    "rewind": "commits only when it ends",
    "commit-with-metadata": "commits no metadata",
    "metadata-too-large": "commits no metadata",
    "lag": "does not report committed offsets",
    "list-groups": "has no group requests",
    "describe-group": "has no group requests",
    "delete-group": "has no group requests",
    "list-group-offsets": "has no group requests",
    "delete-offsets": "has no group requests",
    **dict.fromkeys(("exactly-once", "fenced-producer", "transaction-timeout"), "has no transactions"),
}.items():
    unsupported(name, reason)
main()
