"""`python -m tests.kproto_client.hung_brokers [--count N | --seconds N] [--seed N] [--release kproto|4.4.0|2.8.2]`.

Run random histories of topics, groups and members (`histories`) in processes of their own, while their broker hangs
(SIGSTOP), is slow (stopped most of the time) and, with --restarts, ends and starts again. Nothing of these may happen:

- a process of members ends by a signal;
- a call takes longer than its timeout, or `close` longer than the hang and librdkafka's limit for LeaveGroup;
- a record is not delivered that the reset strategy must not skip;
- a member loses its partitions, unless brokers hang for longer than half a session or restart.

A machine that has no time for the members proves nothing: a call that is late, and a loss of partitions, count only as
far as the lag that the process measures meanwhile does not explain them. The report has the number of the others.

With --count 1000 (the default), all groups use safe_latest. Progress goes to standard error, the report to standard
output. The exit code is 1 if there is a finding. The seed decides what the histories do; the rest is up to the machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.kproto_client.histories import STRATEGIES, Work
from tests.kproto_client.history_members import SESSION_S
from tests.oracle.cluster import Cluster, real_kafka
from tests.oracle.ports import free_port
from tests.oracle.processes import alive
from tests.robustness.broker_process import MAIN as KPROTO

CONSUMER_PROTOCOL_SETTINGS = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": str(int(SESSION_S * 1000)),
    "group.consumer.min.heartbeat.interval.ms": "4000",
    "group.consumer.heartbeat.interval.ms": "4000",
}
"""Short sessions of KIP-848 too: until its session ends, a member whose last request was lost keeps its partitions. But
librdkafka gives a heartbeat up after one interval: in a longer hang any member that misses its new epoch is fenced, and
loses its partitions."""
KAFKA_SETTINGS = {"group.initial.rebalance.delay.ms": "0", **CONSUMER_PROTOCOL_SETTINGS}
KPROTO_SETTINGS = {**KAFKA_SETTINGS, "offsets.topic.num.partitions": "8"}
HISTORIES_A_PROCESS = 40
PAUSE_S = (0.2, 2.0)
SLOW_S, SLOW_STOPPED_S, SLOW_RUNNING_S = 2.0, 0.08, 0.04
UNDISTURBED_S = 1.0
"""Shortest time between two disturbances."""
UNDISTURBED_AFTER_RESTART_S = SESSION_S + 10.0
"""The same after a restart: the coordinator of 4.4.0 responds after 5 s more, on a busy machine, and then a rebalance
waits for the members that could not leave, until their sessions end."""
RESTART_S = 20.0
"""Longest time of a restart."""
READ_LIMIT_S, READ_LIMIT_WITH_RESTARTS_S = 60.0, 240.0
RESTARTS, SLOW_PHASES = 0.3, 0.2
"""Shares of the disturbances."""
WORKER = "import sys\nfrom tests.kproto_client.histories import main\nmain(sys.argv[1])\n"


@dataclass
class DisturbedBroker:
    """A broker that hangs, is slow and restarts.

    Args:
        pid: returns the id of the broker's process.
        restart: ends and starts the broker.
    """

    bootstrap: str
    pid: Callable[[], int]
    restart: Callable[[], object]
    counts: Counter[str] = field(default_factory=Counter)
    times: list[tuple[str, float, float]] = field(default_factory=list)
    """The disturbances: name, start and end on the monotonic clock, as in the lines of librdkafka's log."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _disturbed_until: float = 0.0
    _undisturbed_s: float = UNDISTURBED_S

    def hang(self, seconds: float) -> None:
        self._disturb("hangs", lambda: self._stop(seconds))

    def wait_until_rested(self) -> None:
        """Wait until the broker may be disturbed again."""
        while (left_s := self._disturbed_until + self._undisturbed_s - time.monotonic()) >= 0:
            time.sleep(left_s + 0.01)

    def be_slow(self) -> None:
        def stop_and_continue() -> None:
            ends_at = time.monotonic() + SLOW_S
            while time.monotonic() < ends_at:
                self._stop(SLOW_STOPPED_S)
                time.sleep(SLOW_RUNNING_S)

        self._disturb("slow phases", stop_and_continue)

    def start_again(self) -> None:
        self._disturb("restarts", self.restart, waits=True, undisturbed_s=UNDISTURBED_AFTER_RESTART_S)

    def _disturb(
        self, name: str, disturbance: Callable[[], object], *, waits: bool = False, undisturbed_s: float = UNDISTURBED_S
    ) -> None:
        """Disturb the broker; without `waits`, not if it is disturbed or has just been, as hangs must not add up."""
        is_rested = time.monotonic() > self._disturbed_until + self._undisturbed_s
        if (waits or is_rested) and self._lock.acquire(blocking=waits):
            try:
                self.counts[name] += 1
                started = time.monotonic()
                disturbance()
                self._disturbed_until, self._undisturbed_s = time.monotonic(), undisturbed_s
                self.times.append((name, started, self._disturbed_until))
            finally:
                self._lock.release()

    def _stop(self, seconds: float) -> None:
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def kproto_broker() -> Iterator[DisturbedBroker]:
    with tempfile.TemporaryDirectory(prefix="hung-") as folder:
        address, processes = f"127.0.0.1:{free_port()}", list[subprocess.Popen[str]]()

        def start() -> None:
            settings = [word for name, value in KPROTO_SETTINGS.items() for word in ("--set", f"{name}={value}")]
            port = address.rpartition(":")[2]
            flags = ("--data-dir", folder, "--durability", "os", "--exit-with-parent")
            process = subprocess.Popen(
                [sys.executable, "-c", KPROTO, "serve", "--port", port, *flags, *settings],
                stdout=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
            assert process.stdout is not None
            assert process.stdout.readline(), "kproto has ended"
            threading.Thread(target=process.stdout.read, daemon=True).start()

        def restart() -> None:
            processes[-1].terminate()
            processes[-1].wait()
            start()

        start()
        try:
            yield DisturbedBroker(address, lambda: processes[-1].pid, restart)
        finally:
            processes[-1].kill()
            processes[-1].wait()


@contextmanager
def real_broker(release: str) -> Iterator[DisturbedBroker]:
    with real_kafka(release, props=KAFKA_SETTINGS) as cluster:

        def restart() -> None:
            cluster.stop(1)
            cluster.start(1)

        yield DisturbedBroker(cluster.bootstrap, lambda: _pid(cluster), restart)


def _pid(cluster: Cluster) -> int:
    pid = alive(cluster.folder / "node-1")
    assert pid is not None, "the broker has ended"
    return pid


@dataclass
class Report:
    """What the processes of members have reported."""

    counts: Counter[str] = field(default_factory=Counter)
    longest_s: dict[str, float] = field(default_factory=dict)
    disturbed_s: dict[str, float] = field(default_factory=dict)
    """The longest disturbance of each name."""
    findings: list[str] = field(default_factory=list)

    def add(self, report: dict[str, Any]) -> None:
        self.counts.update(report["counts"])
        for name, seconds in report["longest_s"].items():
            self.longest_s[name] = max(self.longest_s.get(name, 0.0), seconds)
        self.findings += report["findings"]

    def lines(self) -> list[str]:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
        lines = [counts, f"longest over the timeout: {_durations(self.longest_s)}", f"{len(self.findings)} findings"]
        disturbed = [f"longest of the {_durations(self.disturbed_s)}"] if self.disturbed_s else []
        return [*lines, *disturbed, *self.findings]


def _durations(seconds_by_name: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in sorted(seconds_by_name.items()))


def run_process(work: Work, broker: DisturbedBroker, report: Report, planted: str = "") -> None:
    """Run histories in a process of their own, and add what they report."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", planted + WORKER, json.dumps(asdict(work))],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        running: list[int] = []
        try:
            assert process.stdout is not None
            for text in process.stdout:
                line = json.loads(text)
                running = line.get("running", running)
                if "hang_s" in line:
                    threading.Thread(target=broker.hang, args=(line["hang_s"],)).start()
                if "report" in line:
                    report.add(line["report"])
            if process.wait():
                errors.seek(0)
                report.findings.append(f"exit code {process.returncode}, running {running}: {errors.read()[-4000:]}")
        finally:
            process.kill()
            process.wait()


def disturb_once(broker: DisturbedBroker, rng: random.Random, longest_hang_s: float, *, restarts: bool) -> None:
    broker.wait_until_rested()  # otherwise the long rest after a restart leaves restarts only
    choice = rng.random()
    if choice < SLOW_PHASES:
        broker.be_slow()
    elif restarts and choice < SLOW_PHASES + RESTARTS:
        broker.start_again()
    else:
        broker.hang(rng.uniform(0.2, longest_hang_s))


@contextmanager
def disturbances(broker: DisturbedBroker, seed: int, longest_hang_s: float, *, restarts: bool) -> Iterator[None]:
    """Disturb the broker within the block."""
    ended, rng = threading.Event(), random.Random(seed)  # noqa: S311 - reproducible

    def disturb() -> None:
        while not ended.wait(rng.uniform(*PAUSE_S)):
            disturb_once(broker, rng, longest_hang_s, restarts=restarts)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def hung_brokers(
    broker: DisturbedBroker, seed: int, work: Work, *, count: int, seconds: float, restarts: bool, planted: str = ""
) -> Report:
    """Run `count` histories, or, if that is 0, histories for so many seconds."""
    report, deadline = Report(), time.monotonic() + seconds
    with disturbances(broker, seed, work.longest_hang_s, restarts=restarts):
        for start in itertools.count(0, HISTORIES_A_PROCESS):
            if (start >= count) if count else (time.monotonic() > deadline):
                break
            end = min(start + HISTORIES_A_PROCESS, count or sys.maxsize)
            some = Work(**{**asdict(work), "seeds": tuple(range(seed + start, seed + end))})
            run_process(some, broker, report, planted)
            print(f"{time.strftime('%X')}: {'; '.join(report.lines()[:3])}", file=sys.stderr, flush=True)
    report.counts.update(broker.counts)
    for name, started, ended in broker.times:
        report.disturbed_s[name] = max(report.disturbed_s.get(name, 0.0), ended - started)
    return report


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kproto_client.hung_brokers", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0.0, help="instead of --count, with each strategy")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--release", default="kproto", help="kproto, or a Kafka release")
    parser.add_argument("--side-by-side", type=int, default=10)
    parser.add_argument("--longest-hang", type=float, default=3.0, help="seconds")
    parser.add_argument("--restarts", action="store_true")
    parser.add_argument("--buffer-bytes", type=int, default=0, help="parallel.rebalance.buffer.bytes")
    parser.add_argument("--logs", action="store_true", help="of librdkafka, of each member that loses its partitions")
    options = parser.parse_args(words)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed  # noqa: S311 - no secret
    print(f"seed {seed}", file=sys.stderr, flush=True)
    with kproto_broker() if options.release == "kproto" else real_broker(options.release) as broker:
        work = Work(
            bootstrap=broker.bootstrap,
            seeds=(),
            side_by_side=options.side_by_side,
            strategies=tuple(STRATEGIES) if options.seconds else ("safe_latest",),
            consumer_protocol=options.release.startswith(("4", "kproto")),
            longest_hang_s=options.longest_hang,
            logs=options.logs,
            buffer_bytes=options.buffer_bytes,
            longest_outage_s=RESTART_S if options.restarts else options.longest_hang,
            read_limit_s=READ_LIMIT_WITH_RESTARTS_S if options.restarts else READ_LIMIT_S,
            finds_losses=options.longest_hang < SESSION_S / 2 and not options.restarts,
        )
        count = 0 if options.seconds else options.count
        report = hung_brokers(broker, seed, work, count=count, seconds=options.seconds, restarts=options.restarts)
    print("\n".join(report.lines()))
    if options.logs and report.findings:
        print("\n".join(f"{start:.2f} to {end:.2f}: {name}" for name, start, end in broker.times))
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
