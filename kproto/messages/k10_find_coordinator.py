"""FindCoordinator (API key 10): the broker that coordinates a group, a transactional id or a share partition."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import Array, Int8, Int16, Int32, NullableString, String, Struct, ignorable, only, since, until
from kproto.message import Request, Response


class FindCoordinatorRequest(Request, api_key=10, versions=(0, 6), flexible=3):
    """v0: groups only
    v1: + key_type
    v2: layout of v1
    v3: flexible
    v4: + coordinator_keys, - key; several keys in one request
    v5: layout of v4
    v6: layout of v5; key type 2
    """

    key: Annotated[String, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    """0: group id; 1: transactional id; 2: ``group:topic id:partition`` of a share group."""
    coordinator_keys: Annotated[Array[String], since(4)] = ()


class Coordinator(Struct):
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: NullableString


class FindCoordinatorResponse(Response, api_key=10, versions=(0, 6), flexible=3):
    """v1: + throttle_time_ms, + error_message?
    v2: layout of v1; throttled at the client
    v3: flexible
    v4: + coordinators, - error_code, - error_message, - node_id, - host, - port
    v5: layout of v4; may return TRANSACTION_ABORTABLE
    v6: layout of v5
    """

    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[NullableString, only(1, 3), ignorable] = ""
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[String, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[Array[Coordinator], since(4)] = ()
