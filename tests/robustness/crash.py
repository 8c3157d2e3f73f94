"""The crash driver: `python -m tests.robustness.crash --seconds 60 [--seed N]`.

It starts `kproto serve` on a data directory (durability ``os`` and ``fsync`` in turn), lets clients of several kinds
change everything that a broker stores (`crash_clients`), kills it with SIGKILL at random moments, also during starts,
and compares what the next process shows with what was acknowledged. Now and then it shuts the broker down cleanly,
damages copies of the directory (`damage`), and starts the broker on those: it has to refuse in one line with exit code
2, or to report, or to have lost nothing.

Progress goes to standard error, the counts to standard output. The exit code is 1 if there is a finding; its directory
is kept. The seed decides what clients send, and when the process is killed; how far it is by then is up to the machine.

Other tests of crashes: `tests.storage.test_crashes` kills storage alone on a simulated disk that loses power at any
operation; `tests.persistence.test_acknowledged` does so with single changes of all kinds; `bench torture` compares the
offsets of kproto and of other servers under a load of many thousand commits a second.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from threading import Thread

import kproto.generate  # noqa: F401 - pytest parses modules at their first import, which must not happen in two threads
from tests.network.raw_client import RawClient
from tests.network.requests import find_coordinator
from tests.robustness.broker_process import LISTENING, MAIN
from tests.robustness.crash_clients import CrashClient, clients
from tests.robustness.damage import KINDS, NotHere
from tests.waiting import LIMIT_S

SETTINGS = {
    "offsets.topic.num.partitions": "5",
    "offsets.topic.segment.bytes": "20000",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.session.timeout.ms": "1800000",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.1",
}
KAFKA_VERSION = "2.8"
"""With OffsetCommit v0, and with segments of any size."""
ROUNDS_A_DIRECTORY = 12
LOAD_SECONDS_MAX = 1.0
STARTS_KILLED = 0.25
START_SECONDS_MAX = 0.5
CLEAN_SHUTDOWNS, SHUTDOWNS_UNDER_LOAD = 0.2, 0.1
DAMAGES_MAX = 4
INFORMATION = re.compile(r"kproto: (compacted |loaded |loading offsets|offsets\.topic\.replication\.factor is )")
"""Lines that a start prints without a reason to worry."""
KILLED, REFUSED = -signal.SIGKILL, 2


class Finding(Exception):
    """The broker has done what it must not do."""


class Broker:
    """One process on a data directory, with its standard error in a file."""

    def __init__(self, data: Path, durability: str, *flags: str, planted: str = "") -> None:
        """``planted``: Python source that the process runs first, for example to plant a defect."""
        self._log = data.with_name(f"{data.name}.stderr")
        where = ("--data-dir", str(data), "--durability", durability, "--kafka-version", KAFKA_VERSION)
        settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", planted + MAIN, "serve", "--port", "0", *where, *settings, *flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().removeprefix(LISTENING).strip()
        """Empty if the process has ended before it listened."""

    @property
    def lines(self) -> list[str]:
        """What the process has printed on standard error, without information.

        Raises:
            Finding: it has printed a traceback.
        """
        text = self._log.read_text()
        if "Traceback" in text:
            raise Finding(f"a traceback:\n{text}")
        return [line for line in text.splitlines() if not INFORMATION.match(line)]

    def connect(self) -> RawClient | None:
        """Return a connection when the broker serves; None if it has ended.

        Raises:
            Finding: it does neither.
        """
        deadline = time.monotonic() + LIMIT_S
        while self.address and time.monotonic() < deadline:
            try:
                client = RawClient(self.address)
                while find_coordinator(client, "") not in (0, 24):
                    time.sleep(0.002)
            except ConnectionError:
                break
            return client
        self.wait()
        return None

    def end(self, how: signal.Signals) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.wait()

    def wait(self) -> int:
        try:
            return self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Finding("the process does not end") from None
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()


class Crashes:
    """All rounds of one seed, in one temporary directory."""

    def __init__(self, seed: int, root: Path, planted: str = "") -> None:
        self._seed = seed
        self._root = root
        self._planted = planted
        self.counts: Counter[str] = Counter()
        self._clients: list[CrashClient] = []
        self._data = root
        self._durability = ""

    def round(self, number: int) -> None:
        """Start the broker, compare, let the clients work, and end it in some way.

        Raises:
            Finding: something was lost or invented, or the broker behaved as it must not.
        """
        chance = random.Random(f"{self._seed} {number}")  # noqa: S311 - reproducible
        if number % ROUNDS_A_DIRECTORY == 0:
            self._data = self._root / f"{number}"
            self._durability = ("os", "fsync")[number // ROUNDS_A_DIRECTORY % 2]
            self._clients = list(clients(number))
        self.counts["rounds"] += 1
        if chance.random() < STARTS_KILLED:
            self._kill_a_start(chance)
        broker = self._start()
        try:
            self._compare(broker)
            if chance.random() < CLEAN_SHUTDOWNS:
                self._shut_down(broker)
                for kind in chance.sample(list(KINDS), chance.randint(1, DAMAGES_MAX)):
                    self._damage(kind, chance)
            else:
                self._work(broker, chance)
        finally:
            broker.process.kill()

    def _start(self, *flags: str) -> Broker:
        return Broker(self._data, self._durability, *flags, planted=self._planted)

    def _kill_a_start(self, chance: random.Random) -> None:
        broker = self._start()
        time.sleep(chance.uniform(0, START_SECONDS_MAX))
        broker.end(signal.SIGKILL)
        self.counts["kills of starts"] += 1

    def _compare(self, broker: Broker) -> None:
        """Compare what the broker shows with what was acknowledged before."""
        connection = broker.connect()
        if connection is None:
            raise Finding(f"the start fails: {broker.lines}")
        with connection:
            before = sum(client.compared_count for client in self._clients)
            problems = [client.compare(client.view(connection)) for client in self._clients]
            self.counts["values compared"] += sum(client.compared_count for client in self._clients) - before
        if any(problems):
            raise Finding("\n".join(filter(None, problems)))

    def _shut_down(self, broker: Broker) -> None:
        self.counts["clean shutdowns"] += 1
        if broker.end(signal.SIGTERM):
            raise Finding(f"the clean shutdown fails: {broker.lines}")

    def _work(self, broker: Broker, chance: random.Random) -> None:
        """Let the clients work until the broker is killed."""
        problems: list[str] = []
        threads = [
            Thread(target=_run, args=(client, broker.address, random.Random(chance.random()), problems))  # noqa: S311
            for client in self._clients
        ]
        before = sum(client.acknowledged_count for client in self._clients)
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0, LOAD_SECONDS_MAX))
        if chance.random() < SHUTDOWNS_UNDER_LOAD:
            for client in self._clients:
                client.is_shutting_down = True
            self._shut_down(broker)
        else:
            self.counts["kills"] += 1
            if broker.end(signal.SIGKILL) != KILLED:
                raise Finding(f"the process has ended by itself: {broker.lines}")
        for thread in threads:
            thread.join()
        for client in self._clients:
            client.is_shutting_down = False
        self.counts["changes acknowledged"] += sum(client.acknowledged_count for client in self._clients) - before
        if problems:
            raise Finding("\n".join(problems))

    def _damage(self, kind: str, chance: random.Random) -> None:
        """Damage a copy of the directory, and start on it, with ``--repair`` too if that is advised."""
        copy = self._root / "damaged" / "data"
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(self._data, copy)
        try:
            KINDS[kind](copy, chance)
        except NotHere:
            return
        self.counts["damaged directories"] += 1
        refusal = self._start_damaged(copy, kind)
        if refusal is None or "--repair" not in refusal:
            return
        self.counts["repaired"] += 1
        if self._start_damaged(copy, kind, "--repair") is not None:
            raise Finding(f"{kind}: --repair is advised, and does not help: {refusal}")

    def _start_damaged(self, data: Path, kind: str, *flags: str) -> str | None:
        """Return the line with which the broker refuses; None if it serves."""
        broker = Broker(data, self._durability, *flags, planted=self._planted)
        try:
            connection = broker.connect()
            if connection is None:
                if broker.wait() != REFUSED or len(broker.lines) != 1:
                    raise Finding(f"{kind}: exit code {broker.wait()}, {broker.lines}")
                self.counts["refused"] += 1
                return broker.lines[0]
            with connection:
                is_lost = any(client.view(connection) != client.state for client in self._clients)
            lines = broker.lines
            if is_lost and not lines:
                raise Finding(f"{kind}: something was lost in silence")
            self.counts["started with a report" if lines else "started without a loss"] += 1
            if broker.end(signal.SIGTERM):
                raise Finding(f"{kind}: the clean shutdown fails: {broker.lines}")
        except (AssertionError, ConnectionError) as error:
            raise Finding(f"{kind}: {error!r}; {broker.lines}") from error
        finally:
            broker.process.kill()
            broker.wait()
        return None


def _run(client: CrashClient, address: str, chance: random.Random, problems: list[str]) -> None:
    try:
        client.run(address, chance)
    except Exception as error:  # noqa: BLE001 - a finding, whatever it is
        problems.append(f"{client.name}: {type(error).__name__}: {error}")


def crash(
    seed: int, *, seconds: float = float("inf"), rounds: int = sys.maxsize, planted: str = ""
) -> tuple[Counter[str], str | None]:
    """Run rounds until the time or their number is over, or there is a finding; return the counts and the finding."""
    root = Path(tempfile.mkdtemp(prefix="kproto-crash-"))
    crashes = Crashes(seed, root, planted)
    end = time.monotonic() + seconds
    number = 0
    while number < rounds and time.monotonic() < end:
        try:
            crashes.round(number)
        except Finding as finding:
            return crashes.counts, f"round {number} of seed {seed}, {root}: {finding}"
        number += 1
        if number % ROUNDS_A_DIRECTORY == 0:
            print(f"crash: {summary(crashes.counts)}", file=sys.stderr, flush=True)
            shutil.rmtree(root / f"{number - ROUNDS_A_DIRECTORY}")
    shutil.rmtree(root)
    return crashes.counts, None


def summary(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def main(words: list[str]) -> int:
    """Run the driver; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.robustness.crash", description=(__doc__ or "").split("\n")[2]
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(words)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed  # noqa: S311 - no secret
    print(f"crash: --seed {seed}", file=sys.stderr, flush=True)
    counts, finding = crash(seed, seconds=options.seconds)
    print(f"crash: seed {seed}, {summary(counts)}, {0 if finding is None else 1} findings")
    if finding is not None:
        print(finding)
    return 0 if finding is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
