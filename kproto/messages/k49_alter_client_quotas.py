"""AlterClientQuotas (API key 49): an administrator changes quotas of users and clients."""

from __future__ import annotations

from kproto.declaration import Array, Bool, Float64, Int16, Int32, NullableString, String, Struct
from kproto.message import Request, Response


class EntityData(Struct):
    entity_type: String
    entity_name: NullableString


class OpData(Struct):
    key: String
    value: Float64
    remove: Bool


class EntryData(Struct):
    entity: Array[EntityData]
    ops: Array[OpData]


class AlterClientQuotasRequest(Request, api_key=49, versions=(0, 1), flexible=1):
    """v1: flexible."""

    entries: Array[EntryData]
    validate_only: Bool


class AlterClientQuotasResponseEntryData(Struct):
    error_code: Int16
    error_message: NullableString
    entity: Array[EntityData]


class AlterClientQuotasResponse(Response, api_key=49, versions=(0, 1), flexible=1):
    """v1: flexible."""

    throttle_time_ms: Int32
    entries: Array[AlterClientQuotasResponseEntryData]
