"""The broker of the client tests: kproto, or a real one to check the tests themselves.

KPROTO_TEST_BROKER=real:4.4.0 in the environment (any release) replaces kproto by a real broker.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.oracle.cluster import AS_DELIVERED, NEWEST, real_kafka

KPROTO = Path(sys.executable).with_name("kproto")
TIMEOUTS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
"""Settings of the brokers of the scenarios: by default they look for timed-out transactions every 10 s, and members of
the consumer protocol send a heartbeat every 5 s."""
LISTENING = "kproto: listening on "
START_LIMIT_S = 30.0
STOP_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class TestedBroker:
    bootstrap: str
    release: tuple[int, ...] | None
    """The release of a real broker; None for kproto."""

    __test__ = False


@contextmanager
def kproto_serve(log: Path, *flags: str) -> Iterator[str]:
    """Run `kproto serve` on a free port and yield its address; at the end, assert exit code 0 after SIGTERM."""
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(KPROTO), "serve", "--port", "0", "--port-file", str(log.with_suffix(".port")), *flags],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield wait_listening(process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def wait_listening(process: subprocess.Popen[bytes], log: Path) -> str:
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit:
        for line in log.read_text().splitlines(keepends=True):
            if line.startswith(LISTENING) and line.endswith("\n"):
                return line.removeprefix(LISTENING).split()[0]
        assert process.poll() is None, f"kproto exited with {process.returncode}:\n{log.read_text()}"
        time.sleep(0.01)
    pytest.fail(f"kproto does not listen after {START_LIMIT_S} s:\n{log.read_text()}")


def timeout_flags() -> list[str]:
    return [word for name, value in TIMEOUTS.items() for word in ("--set", f"{name}={value}")]


@contextmanager
def broker_under_test(
    folder: Path, *flags: str, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[TestedBroker]:
    """Run the broker that KPROTO_TEST_BROKER names, kproto by default; the flags are for kproto only."""
    kind, _, version = os.environ.get("KPROTO_TEST_BROKER", "kproto").partition(":")
    with ExitStack() as stack:
        if kind == "kproto":
            words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
            yield TestedBroker(stack.enter_context(kproto_serve(folder / "kproto.log", *flags, *words)), None)
        else:
            assert kind == "real", "KPROTO_TEST_BROKER is `kproto` or `real:VERSION`"
            cluster = stack.enter_context(real_kafka(version, props={**AS_DELIVERED, **TIMEOUTS, **settings}))
            release = tuple(int(part) for part in version.split("."))
            yield TestedBroker(cluster.bootstrap, release)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestedBroker]:
    with broker_under_test(tmp_path_factory.mktemp("broker"), *timeout_flags()) as started:
        yield started


SHARE_GROUPS_ON_ONE_BROKER = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Without them a real broker on its own cannot create `__share_group_state`."""


@contextmanager
def newest_brokers(
    folder: Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    only_real: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[str, str]]:
    """Run the broker under test and a real one, both of the newest release, and yield their addresses."""
    kafka_version = ".".join(NEWEST.split(".")[:2])
    with (
        real_kafka(NEWEST, props={**AS_DELIVERED, **only_real, **settings}) as real,
        broker_under_test(folder, "--kafka-version", kafka_version, settings=settings) as tested,
    ):
        yield tested.bootstrap, real.bootstrap


@pytest.fixture(scope="session")
def tested_and_real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the addresses of the broker under test and of a real one."""
    with newest_brokers(tmp_path_factory.mktemp("tested"), only_real=SHARE_GROUPS_ON_ONE_BROKER) as addresses:
        yield addresses
