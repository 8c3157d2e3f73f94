"""UpdateFeatures (API key 57): an administrator raises or lowers the cluster's feature levels."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    Struct,
    ignorable,
    only,
    since,
    until,
)
from kproto.message import Request, Response


class FeatureUpdateKey(Struct):
    feature: String
    max_version_level: Int16
    allow_downgrade: Annotated[Bool, only(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1
    """1: upgrade only; 2: downgrade without loss; 3: downgrade with loss."""


class UpdateFeaturesRequest(Request, api_key=57, versions=(0, 2), flexible=0):
    """v1: + feature_updates[].upgrade_type, + validate_only, - feature_updates[].allow_downgrade
    v2: layout of v1
    """

    timeout_ms: Int32 = 60000
    feature_updates: Array[FeatureUpdateKey]
    validate_only: Annotated[Bool, since(1)] = False


class UpdatableFeatureResult(Struct):
    feature: String
    error_code: Int16
    error_message: NullableString


class UpdateFeaturesResponse(Response, api_key=57, versions=(0, 2), flexible=0):
    """v1: layout of v0
    v2: - results
    """

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString
    results: Annotated[Array[UpdatableFeatureResult], until(1), ignorable] = ()
