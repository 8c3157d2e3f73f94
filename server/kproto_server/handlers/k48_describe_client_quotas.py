"""DescribeClientQuotas (API key 48): the quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.messages.k48_describe_client_quotas import DescribeClientQuotasResponse, EntityData, EntryData, ValueData
from kproto_server.deferred import LargeResponse, array_of
from kproto_server.handlers._client_quotas import ClientQuotasBehavior, QuotaError, invalid
from kproto_server.quotas.entities import CLIENT_ID, IP, USER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto.messages.k48_describe_client_quotas import ComponentData, DescribeClientQuotasRequest
    from kproto_server.quotas.entities import Entity
    from kproto_server.requests.context import RequestContext

EXACT, DEFAULT, ANY = range(3)
MATCH_TYPES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", ANY: "MATCH_TYPE_SPECIFIED"}
COMBINATION = "IP filter component should not be used with user or clientId filter component."


class Filter(NamedTuple):
    """Which entities are described."""

    exact: dict[str, str | None]
    """The names by type; None: the default."""
    any_name: set[str]
    """The types of which every name matches."""
    strict: bool
    """Whether an entity of further types does not match."""

    def matches(self, entity: Entity) -> bool:
        """Return whether an entity is described."""
        names = dict(entity)
        asked = {*self.exact, *self.any_name}
        if not asked <= names.keys() or (self.strict and len(asked) < len(names)):
            return False
        return all(names[kind] == name for kind, name in self.exact.items())


SMALL_ENTITIES = 1000
"""Entities that are described at once: about 10 ms. A response with more is made in slices."""


def handle(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse | LargeResponse:
    behavior = context.behavior(ClientQuotasBehavior)
    fault_of = _fault_in_quorum if behavior.is_kraft else _fault_with_zookeeper
    fault = fault_of(request.components, behavior)
    if fault is not None:
        return DescribeClientQuotasResponse(
            throttle_time_ms=0, error_code=fault.error, error_message=fault.message, entries=None
        )
    wanted = Filter(
        {one.entity_type: one.match if one.match_type == EXACT else None
         for one in request.components if one.match_type != ANY},
        {one.entity_type for one in request.components if one.match_type == ANY},
        request.strict,
    )  # fmt: skip
    found = [item for item in context.cluster.client_quotas.items() if wanted.matches(item[0])]
    is_large = len(found) > SMALL_ENTITIES
    response = DescribeClientQuotasResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=behavior.described_message,
        entries=array_of(_entry, found, is_large=is_large),
    )
    return LargeResponse(response) if is_large else response


def _entry(item: tuple[Entity, Mapping[str, float]]) -> EntryData:
    entity, values = item
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        values=tuple(ValueData(key=key, value=value) for key, value in values.items()),
    )


def _fault_in_quorum(components: Sequence[ComponentData], behavior: ClientQuotasBehavior) -> QuotaError | None:
    seen: set[str] = set()
    for one in components:
        kind = one.entity_type
        if not kind:
            return invalid("Invalid empty entity type.")
        if kind in seen:
            return invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in behavior.entity_types:
            return QuotaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if one.match_type not in MATCH_TYPES:
            return invalid(f"Unknown match type {one.match_type}")
        asked = f"Request specified {MATCH_TYPES[one.match_type]}, but"
        if one.match_type == EXACT and one.match is None:
            return invalid(f"{asked} set match string to null.")
        if one.match_type != EXACT and one.match is not None:
            return invalid(f"{asked} also specified a match string.")
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        return invalid(f"Invalid entity filter component combination. {COMBINATION}")
    return None


def _fault_with_zookeeper(components: Sequence[ComponentData], behavior: ClientQuotasBehavior) -> QuotaError | None:
    if any(one.match_type not in MATCH_TYPES or (one.match_type == EXACT and one.match is None) for one in components):
        return QuotaError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    seen: set[str] = set()
    for one in components:
        kind = one.entity_type
        if not kind:
            return invalid("Unexpected empty filter component entity type")
        if kind not in behavior.entity_types:
            return QuotaError(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if kind in seen:
            name = {CLIENT_ID: "client", IP: "ip", USER: "user"}[kind]
            return invalid(f"Duplicate {name} filter component entity type")
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        return invalid(f"Invalid entity filter component combination, {COMBINATION}")
    return None
