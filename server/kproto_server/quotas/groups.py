"""Which quota is a client's, and which clients share it: Kafka's order of precedence (KIP-55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.quotas.entities import CLIENT_ID, USER

if TYPE_CHECKING:
    from kproto_server.quotas.entities import Entity, Quotas


class QuotaGroup(NamedTuple):
    """The clients that share a quota."""

    user: str | None
    """None: all users."""
    client_id: str | None
    """None: all client ids."""
    quota: float


def group_of(quotas: Quotas, key: str, user: str, client_id: str) -> QuotaGroup | None:
    """Return the group of a client for one key; None: it has no quota.

    The default of users with one client id is one quota for each user: clients of two users do not share it.
    """
    of_user, of_client = ((USER, user),), ((CLIENT_ID, client_id),)
    any_user, any_client = ((USER, None),), ((CLIENT_ID, None),)
    shared: tuple[tuple[Entity, bool, bool], ...] = (
        (of_client + of_user, True, True),
        (any_client + of_user, True, True),
        (of_user, True, False),
        (of_client + any_user, True, True),
        (any_client + any_user, True, True),
        (any_user, True, False),
        (of_client, False, True),
        (any_client, False, True),
    )
    for entity, is_of_user, is_of_client in shared:
        quota = quotas.get(entity, {}).get(key)
        if quota is not None:
            return QuotaGroup(user if is_of_user else None, client_id if is_of_client else None, quota)
    return None
