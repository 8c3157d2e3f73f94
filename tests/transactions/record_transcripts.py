"""Run the scripts against real brokers, and write the transcripts to `fixtures/transactions`.

    python -m tests.transactions.record_transcripts 0.11.0.3 4.4.0 [--only transactions_end,offsets_are_added]

Prints the differences to kproto.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing.in_memory import virtual_clock
from kproto_server.transactions.tasks import transaction_tasks
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Transport
from tests.membership.socket_transport import SocketTransport
from tests.oracle import launcher
from tests.transactions.producers import Producers, tiers_of
from tests.transactions.scripts import SCRIPTS
from tests.transactions.transcripts import RECORDED, SETTINGS
from tests.transcripts import Transcript
from tests.waiting import wait_until

AT_ONCE = 4
"""Scripts at the same time; much of their time is waiting."""
TRANSACTION = 1


def record(release: str, names: Sequence[str]) -> list[Transcript]:
    """Run scripts against a release."""
    todo = [(name, tier) for name in names for tier in tiers_of(release)]
    with tempfile.TemporaryDirectory(prefix="transactions-", ignore_cleanup_errors=True) as folder:
        broker = launcher.start(release, folder=Path(folder), props=SETTINGS)
        try:
            transport = SocketTransport(broker.bootstrap)
            wait_until(lambda: is_ready(transport), "the topic and the coordinators")
            transport.close()
            with ThreadPoolExecutor(AT_ONCE) as pool:
                runs = [pool.submit(_run_on_broker, broker.bootstrap, release, *what) for what in todo]
            return [one.result() for one in runs]
        finally:
            launcher.stop(Path(folder))


def run(transport: Transport, release: str, name: str, tier: int) -> Transcript:
    """Run a script over a transport."""
    producers = Producers(transport, KafkaVersion.named(release), f"{name}-{tier}", tier)
    SCRIPTS[name](producers)
    return Transcript(name, tier, release, tuple(producers.steps))


def _run_on_broker(address: str, release: str, name: str, tier: int) -> Transcript:
    transport = SocketTransport(address)
    try:
        return run(transport, release, name, tier)
    finally:
        transport.close()


def run_on_kproto(release: str, name: str, tier: int) -> Transcript:
    """Run a script against kproto, in the Kafka version of the release."""
    state = new_state(release, settings=SETTINGS, topics={"t": 2}, clock=virtual_clock())
    for task in transaction_tasks(lambda: state.used_transactions, state.settings, state.clock):
        task.start()
    transport = InMemoryTransport(state)
    while not is_ready(transport):
        pass
    return run(transport, release, name, tier)


def is_ready(transport: Transport) -> bool:
    """Create the topic and the topics of the coordinators; return whether all of them are ready."""
    found = []
    metadata = MetadataRequest(topics=(MetadataRequestTopic(name="t"),), allow_auto_topic_creation=True)
    for request, version in (
        (metadata, 4),
        (FindCoordinatorRequest(key="g"), 1),
        (FindCoordinatorRequest(key="g", key_type=TRANSACTION), 1),
    ):
        transport.send("ready", request, version)
        responses: list[tuple[str, object]] = []
        while not responses:
            responses = transport.responses()
        found += [response for _, response in responses]
    first, second, third = found
    return not (first.topics[0].error_code or second.error_code or third.error_code)  # type: ignore[attr-defined]


if __name__ == "__main__":
    RECORDED.record(__doc__, record, run_on_kproto)
