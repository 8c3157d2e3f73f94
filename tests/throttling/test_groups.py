"""Which quota is a client's (KIP-55): Kafka's order of precedence, and who shares it."""

from __future__ import annotations

import pytest

from kproto_server.quotas.entities import Quotas, entity_of
from kproto_server.quotas.groups import group_of

KEY = "producer_byte_rate"
ORDER: tuple[tuple[dict[str, str | None], tuple[str | None, str | None]], ...] = (
    ({"user": "alice", "client-id": "app"}, ("alice", "app")),
    ({"user": "alice", "client-id": None}, ("alice", "app")),
    ({"user": "alice"}, ("alice", None)),
    ({"user": None, "client-id": "app"}, ("alice", "app")),
    ({"user": None, "client-id": None}, ("alice", "app")),
    ({"user": None}, ("alice", None)),
    ({"client-id": "app"}, (None, "app")),
    ({"client-id": None}, (None, "app")),
)
"""Entities with the group of alice's client "app", the first one that has a quota counts."""
QUOTAS: list[Quotas] = [{entity_of(names): {KEY: float(rank)}} for rank, (names, _) in enumerate(ORDER, 1)]


@pytest.mark.parametrize("rank", range(len(ORDER)))
def test_the_first_entity_with_a_quota_counts(rank: int) -> None:
    quotas = {entity: values for one in reversed(QUOTAS[rank:]) for entity, values in one.items()}
    assert group_of(quotas, KEY, "alice", "app") == (*ORDER[rank][1], float(rank + 1))


def test_quotas_of_others_and_of_other_keys_do_not_count() -> None:
    quotas: Quotas = {
        (("user", "alice"),): {"consumer_byte_rate": 1.0},
        (("client-id", "app"), ("user", "bob")): {KEY: 2.0},
        (("client-id", "other"),): {KEY: 3.0},
        (("ip", None),): {"connection_creation_rate": 4.0},
    }
    assert group_of(quotas, KEY, "alice", "app") is None
    assert group_of({}, KEY, "alice", "app") is None
