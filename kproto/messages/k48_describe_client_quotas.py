"""DescribeClientQuotas (API key 48): the quotas of users and clients."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Float64, Int8, Int16, Int32, NullableString, String, Struct, nullable
from kproto.message import Request, Response


class ComponentData(Struct):
    entity_type: String
    match_type: Int8
    """0: this name; 1: the default; 2: any name."""
    match: NullableString


class DescribeClientQuotasRequest(Request, api_key=48, versions=(0, 1), flexible=1):
    """v1: flexible."""

    components: Array[ComponentData]
    strict: Bool


class EntityData(Struct):
    entity_type: String
    entity_name: NullableString


class ValueData(Struct):
    key: String
    value: Float64


class EntryData(Struct):
    entity: Array[EntityData]
    values: Array[ValueData]


class DescribeClientQuotasResponse(Response, api_key=48, versions=(0, 1), flexible=1, has_slices=True):
    """v1: flexible."""

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    entries: Annotated[Array[EntryData] | None, nullable()]
