"""DescribeUserScramCredentials (API key 50): the mechanisms and iterations of users (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import quote

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto.messages.k50_describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kproto_server.deferred import LargeResponse, array_of, noting_errors
from kproto_server.security.users import SCRAM_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest
    from kproto_server.requests.context import RequestContext


SMALL_USERS = 1000
"""Users that are described at once: about 10 ms. A response with more is made in slices."""


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse | LargeResponse:
    names: Iterable[str]
    is_kraft = context.kafka_version.is_kraft
    if request.users:
        counts = Counter(user.name for user in request.users)
        names = in_hash_order(counts, java_hash) if is_kraft else counts
    else:
        counts = Counter(context.cluster.scram_credentials.users())
        names = in_hash_order(counts, java_hash) if is_kraft else sorted(counts, key=_node_name)
    error_codes: list[int] = []

    def result(name: str) -> DescribeUserScramCredentialsResult:
        found = _result(name, counts[name], context)
        return found if request.users or is_kraft else found.replace(user=_node_name(found.user))

    is_large = len(counts) > SMALL_USERS
    response = DescribeUserScramCredentialsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message="",
        results=array_of(noting_errors(result, error_codes), list(names), is_large=is_large),
    )
    return LargeResponse(response, error_codes) if is_large else response


def _node_name(name: str) -> str:
    """Return the name of the node that ZooKeeper has for a user, which lists of all users have, too."""
    return quote(name, safe="").replace("~", "%7E")


def _result(name: str, count: int, context: RequestContext) -> DescribeUserScramCredentialsResult:
    if not name and not context.kafka_version.is_kraft:
        return _refused(name, ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty")
    if count > 1:
        text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return _refused(name, ErrorCode.DUPLICATE_RESOURCE, text)
    iterations = context.cluster.scram_credentials.iterations(name)
    if not iterations:
        text = f"Attempt to describe a user credential that does not exist: {name}"
        return _refused(name, ErrorCode.RESOURCE_NOT_FOUND, text)
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.NONE,
        error_message="",
        credential_infos=tuple(
            CredentialInfo(mechanism=number, iterations=iterations[mechanism])
            for number, mechanism in SCRAM_TYPES.items()
            if mechanism in iterations
        ),
    )


def _refused(name: str, error: ErrorCode, text: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=error, error_message=text, credential_infos=())
