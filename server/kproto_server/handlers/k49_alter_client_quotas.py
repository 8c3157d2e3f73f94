"""AlterClientQuotas (API key 49): set and remove the quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k49_alter_client_quotas import (
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
)
from kproto_server.handlers._client_quotas import ClientQuotasBehavior, QuotaError, in_map_order, invalid
from kproto_server.quotas.entities import IP, alter, entity_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto.messages.k49_alter_client_quotas import AlterClientQuotasRequest, OpData
    from kproto_server.quotas.entities import Entity
    from kproto_server.requests.context import RequestContext

ENTITIES_MAX = 10_000
NAMES_MAX = 10_000
"""Characters of the names of an entity."""

Names = dict[str, str | None]
"""An entity of a request, which may have any types."""

TOO_MANY = QuotaError(
    ErrorCode.POLICY_VIOLATION,
    f"kproto has quotas of at most {ENTITIES_MAX} entities, with {NAMES_MAX} characters of their names",
)


def handle(request: AlterClientQuotasRequest, context: RequestContext) -> AlterClientQuotasResponse:
    behavior, quotas = context.behavior(ClientQuotasBehavior), dict(context.cluster.client_quotas)
    results: dict[tuple[tuple[str, str | None], ...], QuotaError | None] = {}
    for entry in request.entries:
        given = {one.entity_type: one.entity_name for one in entry.entity}  # of a type that is repeated, the last one
        names: Names = {kind: given[kind] for kind in in_map_order(given)}
        key = tuple(names.items())
        keys = [op.key for op in entry.ops]
        if behavior.refuses_duplicates and (key in results or len(set(keys)) < len(keys)):
            text = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in names.items())
            results[key] = invalid(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{text}}})")
            continue
        fault = _fault_of_entity(names, behavior) or _fault_of_ops(names, entry.ops, behavior)
        if fault is None:
            fault = _alter(quotas, names, entry.ops, behavior)
        results[key] = fault
    if quotas != context.cluster.client_quotas and not request.validate_only:
        context.cluster.alter_client_quotas(quotas)
    return AlterClientQuotasResponse(
        throttle_time_ms=0,
        entries=tuple(
            AlterClientQuotasResponseEntryData(
                error_code=ErrorCode.NONE if fault is None else fault.error,
                error_message=None if fault is None else fault.message,
                entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in key),
            )
            for key, fault in results.items()
        ),
    )


def _alter(
    quotas: dict[Entity, Mapping[str, float]], names: Names, ops: Sequence[OpData], behavior: ClientQuotasBehavior
) -> QuotaError | None:
    """Change the quotas, or return why not."""
    count, entity = len(quotas), entity_of(names)
    alter(
        quotas,
        entity,
        {op.key: None if op.remove else behavior.kept_value(op.key, op.value) for op in ops},
        behavior.ordered,
    )
    if len(quotas) <= max(ENTITIES_MAX, count):
        return None
    del quotas[entity]
    return TOO_MANY


def _fault_of_entity(names: Mapping[str, str | None], behavior: ClientQuotasBehavior) -> QuotaError | None:
    if not names:
        return invalid("Invalid empty client quota entity")
    for kind, name in names.items():
        if kind not in behavior.entity_types:
            return invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            return invalid(f"Empty {kind} not supported")
    if sum(len(name or "") for name in names.values()) > NAMES_MAX:
        return TOO_MANY
    if IP not in names:
        return None
    if len(names) > 1:
        return invalid(behavior.combination_message)
    address = names[IP]
    return None if address is None else behavior.address_fault(address)


def _fault_of_ops(names: Names, ops: Sequence[OpData], behavior: ClientQuotasBehavior) -> QuotaError | None:
    values = {op.key: op.value for op in ops if not op.remove}
    keys = in_map_order({op.key: op for op in ops}) if behavior.checks_order_by_hash else values
    faults = (behavior.value_fault(names, key, values[key]) for key in keys if key in values)
    return next((fault for fault in faults if fault is not None), None)
