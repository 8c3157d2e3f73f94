"""What quotas are for: users, client ids, both together, and addresses; and the keys that quotas have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (CLIENT_ID, IP, USER)
"""In the order in which a Java HashMap has them."""

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Entity = tuple[tuple[str, str | None], ...]
"""Types and names, in the order of `ENTITY_TYPES`; the name None is that of the default quota."""
Quotas = Mapping[Entity, Mapping[str, float]]
"""The values by entity and key. Each entity has at least one value. A change of quotas makes a new mapping."""


def entity_of(names: Mapping[str, str | None]) -> Entity:
    """Return the entity of these names by type; other types are left out."""
    return tuple((kind, names[kind]) for kind in ENTITY_TYPES if kind in names)


def _as_given(had: list[str], new: list[str]) -> list[str]:
    return had + new


def alter(
    quotas: dict[Entity, Mapping[str, float]],
    entity: Entity,
    changes: Mapping[str, float | None],
    ordered: Callable[[list[str], list[str]], list[str]] = _as_given,
) -> None:
    """Change the values of an entity in quotas, whose last one it is then; None removes a value.

    ``ordered`` returns the keys of an entity in their order, from those that it had and those that are new.
    """
    had = quotas.pop(entity, {})
    found = {key: value for key, value in {**had, **changes}.items() if value is not None}
    keys = ordered([key for key in had if key in found], [key for key in found if key not in had])
    if keys:
        quotas[entity] = {key: found[key] for key in keys}


def altered(quotas: Quotas, entity: Entity, changes: Mapping[str, float | None]) -> Quotas:
    """Return quotas with the changed values of an entity; None removes a value."""
    changed = dict(quotas)
    alter(changed, entity, changes)
    return changed
