"""Random requests to two brokers: kproto and the newest Kafka, kproto twice, and kproto as two different releases."""

from __future__ import annotations

import pytest

from tests.differential.families import FAMILIES, compare, kproto_as
from tests.oracle.cluster import AS_DELIVERED, NEWEST, real_kafka

STEPS = 30
EACH_FAMILY = pytest.mark.parametrize("family", [name for name in FAMILIES if name != "administered"])
"""Those that end in seconds: the topics of `administered` are deleted and created many times."""


def run(family: str, one: str, other: str, release: str, histories: int) -> tuple[int, list[str]]:
    """Return the number of requests and responses, and the text of each difference."""
    line_count, found = compare(family, one, other, release, range(1, histories + 1), STEPS)
    texts = ["\n".join([f"seed {each.seed}", *each.transcript[-12:], str(each.difference)]) for each in found]
    return line_count, texts


@pytest.mark.oracle
@EACH_FAMILY
def test_kproto_equals_real_kafka(family: str) -> None:
    with (
        real_kafka(NEWEST, props={**FAMILIES[family].settings_of(NEWEST), **AS_DELIVERED}) as real,
        kproto_as(NEWEST, family) as tested,
    ):
        line_count, differences = run(family, tested, real.bootstrap, NEWEST, histories=15)
    assert differences == []
    assert line_count > 15 * STEPS


@EACH_FAMILY
def test_kproto_equals_itself(family: str) -> None:
    with kproto_as("2.8.2", family) as one, kproto_as("2.8.2", family) as other:
        line_count, differences = run(family, one, other, "2.8.2", histories=8)
    assert differences == []
    assert line_count > 8 * STEPS


@EACH_FAMILY
def test_releases_differ(family: str) -> None:
    with kproto_as("2.0.1", family) as one, kproto_as("2.8.2", family) as other:
        assert run(family, one, other, "2.0.1", histories=8)[1] != []
