"""Random requests to two brokers: the newest Kafka and ours, ours twice, and ours as two releases, which differ."""

from __future__ import annotations

import pytest

from tests.differential.families import FAMILIES, compare, kproto_as
from tests.oracle.cluster import AS_DELIVERED, NEWEST, real_kafka

STEPS = 30
BOTH_FAMILIES = pytest.mark.parametrize("family", FAMILIES)


def seen(family: str, one: str, other: str, release: str, histories: int) -> tuple[int, list[str]]:
    """How much was said, and what differs, for people."""
    lines, found = compare(family, one, other, release, range(1, histories + 1), STEPS)
    return lines, ["\n".join([f"seed {each.seed}", *each.talk[-12:], str(each.difference)]) for each in found]


@pytest.mark.oracle
@BOTH_FAMILIES
def test_nothing_differs_from_real_kafka(family: str) -> None:
    with (
        real_kafka(NEWEST, props={**FAMILIES[family].settings, **AS_DELIVERED}) as real,
        kproto_as(NEWEST, family) as tested,
    ):
        lines, differences = seen(family, tested, real.bootstrap, NEWEST, histories=15)
    assert differences == []
    assert lines > 15 * STEPS


@BOTH_FAMILIES
def test_nothing_differs_from_itself(family: str) -> None:
    with kproto_as("2.8.2", family) as one, kproto_as("2.8.2", family) as other:
        lines, differences = seen(family, one, other, "2.8.2", histories=8)
    assert differences == []
    assert lines > 8 * STEPS


@BOTH_FAMILIES
def test_releases_differ(family: str) -> None:
    with kproto_as("2.0.1", family) as one, kproto_as("2.8.2", family) as other:
        assert seen(family, one, other, "2.0.1", histories=8)[1] != []
