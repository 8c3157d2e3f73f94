"""The families of random requests: groups, records, topics, transactions, and producers, also beside administrators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from tests.commandline.commands import kproto_started, line_of
from tests.differential import administered_producers, groups, producers, records, topics, transactions
from tests.differential.broker_pair import ComparedBroker
from tests.differential.history import FoundDifference, History, common_versions, run_histories
from tests.interop.kproto_process import LISTENING
from tests.oracle.releases import number


class Family(NamedTuple):
    """A class of histories, and the broker settings that it needs."""

    history: type[History]
    settings: Mapping[str, str]
    newer_settings: Mapping[str, str] = {}
    """Settings that releases from 3.6 on have."""

    def settings_of(self, release: str) -> dict[str, str]:
        return {**self.settings, **(self.newer_settings if number(release) >= (3, 6) else {})}


FAMILIES = {
    "groups": Family(groups.GroupHistory, groups.SETTINGS),
    "records": Family(records.RecordHistory, records.SETTINGS),
    "topics": Family(topics.TopicHistory, topics.SETTINGS),
    "producers": Family(producers.ProducerHistory, producers.SETTINGS),
    "administered": Family(administered_producers.AdministeredHistory, administered_producers.ADMINISTERED_SETTINGS),
    "transactions": Family(transactions.TransactionHistory, records.SETTINGS, transactions.NEWER_SETTINGS),
}


@contextmanager
def kproto_as(release: str, family: str) -> Iterator[str]:
    """Yield the address of a kproto broker with the Kafka version of a release and the settings of a family."""
    settings = FAMILIES[family].settings_of(release)
    flags = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    with kproto_started("serve", "--port", "0", "--kafka-version", release, *flags) as process:
        yield line_of(process).removeprefix(LISTENING).split()[0]


def compare(
    family: str, tested: str, real: str, release: str, seeds: Iterable[int], steps: int
) -> tuple[int, list[FoundDifference]]:
    """Run histories against two brokers; return the number of requests and responses, and the differences."""
    versions = common_versions(tested, real)
    brokers = ComparedBroker(tested), ComparedBroker(real)
    return run_histories(
        lambda seed: FAMILIES[family].history(*brokers, versions, number(release)[:2], seed), seeds, steps
    )
