"""The families of random requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from tests.cli.commands import kproto_started, line_of
from tests.differential import groups, records, topics
from tests.differential.history import Found, History, campaign, versions_of
from tests.differential.pair import Side
from tests.interop.ours import LISTENING
from tests.oracle.releases import number


class Family(NamedTuple):
    """One kind of history, and the settings that both brokers need for it."""

    kind: type[History]
    settings: Mapping[str, str]


FAMILIES = {
    "groups": Family(groups.GroupHistory, groups.SETTINGS),
    "records": Family(records.RecordHistory, records.SETTINGS),
    "topics": Family(topics.TopicHistory, topics.SETTINGS),
}


@contextmanager
def kproto_as(release: str, family: str) -> Iterator[str]:
    """Yield the address of a broker in the Kafka version of a release, with the settings of a family."""
    flags = [word for name, value in FAMILIES[family].settings.items() for word in ("--set", f"{name}={value}")]
    with kproto_started("serve", "--port", "0", "--kafka-version", release, *flags) as process:
        yield line_of(process).removeprefix(LISTENING).split()[0]


def compare(
    family: str, tested: str, real: str, release: str, seeds: Iterable[int], steps: int
) -> tuple[int, list[Found]]:
    """Put histories to the brokers at two addresses; return how much was said, and what differs."""
    versions = versions_of(tested, real)
    sides = Side(tested), Side(real)
    return campaign(lambda seed: FAMILIES[family].kind(*sides, versions, number(release)[:2], seed), seeds, steps)
