"""ApiVersions (API key 18): the APIs of a broker, and the versions of each."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Bool, Int16, Int32, Int64, NullableString, String, Struct, ignorable, since, tag
from kproto.message import Request, Response


class ApiVersionsRequest(Request, api_key=18, versions=(0, 5), flexible=3):
    """v1-v2: layout of v0
    v3: + client_software_name, + client_software_version, flexible
    v4: layout of v3
    v5: + cluster_id?, + node_id
    """

    client_software_name: Annotated[String, since(3), ignorable] = ""
    client_software_version: Annotated[String, since(3), ignorable] = ""
    cluster_id: Annotated[NullableString, since(5), ignorable] = None
    node_id: Annotated[Int32, since(5), ignorable] = -1


class ApiVersion(Struct):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Struct):
    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Struct):
    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Response, api_key=18, versions=(0, 5), flexible=3):
    """v0: also the response to an unknown version, with UNSUPPORTED_VERSION
    v1: + throttle_time_ms
    v2: layout of v1; throttled at the client
    v3: + supported_features (tagged), + finalized_features_epoch (tagged), + finalized_features (tagged),
          + zk_migration_ready (tagged), flexible; the header stays v0
    v4: layout of v3; a feature's min_version may be 0
    v5: layout of v4; may return REBOOTSTRAP_REQUIRED
    """

    error_code: Int16
    api_keys: Array[ApiVersion]
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    supported_features: Annotated[Array[SupportedFeatureKey], since(3), tag(0), ignorable] = ()
    finalized_features_epoch: Annotated[Int64, since(3), tag(1), ignorable] = -1
    """-1: unknown."""
    finalized_features: Annotated[Array[FinalizedFeatureKey], since(3), tag(2), ignorable] = ()
    zk_migration_ready: Annotated[Bool, since(3), tag(3), ignorable] = False
