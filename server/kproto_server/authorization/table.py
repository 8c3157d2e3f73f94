"""The rights that each API needs (BA-121), as checks in the order of a real broker, and how they come before handlers.

An API that is not in the table needs no right: ApiVersions, SaslHandshake, SaslAuthenticate, telemetry, and those that
renew and expire delegation tokens, whose handlers look at the client's own name. Handlers of share sessions, which keep
denied topics, look at rights to read topics, too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kproto_server.authorization import group_checks as groups
from kproto_server.authorization import other_checks as other
from kproto_server.authorization import token_checks as tokens
from kproto_server.authorization import topic_checks as topics
from kproto_server.authorization import transaction_checks as transactions
from kproto_server.authorization.checks import (
    Asked,
    Check,
    Perform,
    closes_without_acks,
    on_cluster,
    on_controller,
    on_group,
    on_topics,
    on_transactional_id,
)
from kproto_server.authorization.hidden_topics import hides_topics
from kproto_server.authorization.rights import Rights
from kproto_server.authorization.visible_topics import describe_topic_partitions
from kproto_server.connection.dispatcher import Endpoints
from kproto_server.security.acls import Operation

if TYPE_CHECKING:
    from kproto_server.connection.dispatcher import Dispatcher
    from kproto_server.requests.context import RequestContext
    from kproto_server.requests.endpoint import Endpoint
    from kproto_server.security.acls import Authorizer

READ, WRITE, DELETE, ALTER = Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER
DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
CLUSTER_ACTION = Operation.CLUSTER_ACTION

TABLE: dict[int, tuple[Check, ...]] = {
    0: (hides_topics, closes_without_acks, topics.produce, on_topics(WRITE, None)),
    1: (hides_topics, topics.fetch),
    2: (hides_topics, on_topics(DESCRIBE)),
    3: (hides_topics, topics.metadata),
    8: (hides_topics, on_group(READ), on_topics(READ)),
    9: (hides_topics, topics.offset_fetch),
    10: (other.find_coordinator,),
    11: (on_group(READ),),
    12: (on_group(READ),),
    13: (on_group(READ),),
    14: (on_group(READ),),
    15: (groups.described_groups("groups"),),
    16: (groups.list_groups,),
    19: (on_controller(topics.create_topics),),
    20: (hides_topics, on_controller(topics.delete_topics)),
    21: (hides_topics, on_topics(DELETE)),
    22: (topics.init_producer_id,),
    23: (other.offset_for_leader_epoch(on_topics(DESCRIBE)),),
    24: (hides_topics, transactions.add_partitions_to_txn),
    25: (on_transactional_id(WRITE), on_group(READ)),
    26: (on_transactional_id(WRITE),),
    27: (transactions.write_txn_markers,),
    28: (hides_topics, on_transactional_id(WRITE), on_group(READ), on_topics(READ)),
    29: (other.readable_acls, on_cluster(DESCRIBE)),
    30: (other.readable_acls, on_cluster(ALTER)),
    31: (other.readable_acls, on_cluster(ALTER)),
    32: (other.configs("results", DESCRIBE_CONFIGS),),
    33: (other.configs("responses", ALTER_CONFIGS),),
    34: (on_cluster(ALTER),),
    35: (on_cluster(DESCRIBE),),
    37: (on_controller(other.create_partitions),),
    38: (tokens.create,),
    41: (tokens.describe,),
    42: (groups.delete_groups,),
    43: (on_cluster(ALTER),),
    44: (other.configs("responses", ALTER_CONFIGS),),
    45: (on_cluster(ALTER),),
    46: (on_cluster(DESCRIBE),),
    47: (on_group(DELETE), on_topics(READ)),
    48: (on_cluster(DESCRIBE_CONFIGS),),
    49: (on_cluster(ALTER_CONFIGS),),
    50: (other.describe_scram_credentials,),
    51: (on_controller(on_cluster(ALTER)),),
    55: (on_cluster(DESCRIBE),),
    57: (on_cluster(ALTER),),
    60: (other.describe_cluster,),
    61: (transactions.describe_producers,),
    64: (on_cluster(ALTER),),
    65: (transactions.describe_transactions,),
    66: (transactions.list_transactions,),
    68: groups.if_enabled(groups.has_consumer_groups, on_group(READ, None), groups.subscription),
    69: groups.if_enabled(groups.has_consumer_groups, groups.described_groups("group_ids", groups.ASSIGNED_TOPICS)),
    74: (on_cluster(DESCRIBE_CONFIGS),),
    75: (describe_topic_partitions,),
    76: groups.if_enabled(groups.has_share_groups, on_group(READ, None), groups.subscription),
    77: groups.if_enabled(groups.has_share_groups, groups.described_groups("group_ids", groups.ASSIGNED_TOPICS)),
    **dict.fromkeys((78, 79), groups.if_enabled(groups.has_share_groups, on_group(READ, None))),
    80: (on_cluster(ALTER),),
    81: (on_cluster(ALTER),),
    **dict.fromkeys(range(83, 88), (on_cluster(CLUSTER_ACTION),)),
    88: (on_group(READ, None), groups.topology),
    89: (groups.described_groups("group_ids", groups.TOPICS_OF_TOPOLOGY),),
    90: groups.if_enabled(groups.has_share_groups, groups.share_group_offsets),
    91: groups.if_enabled(groups.has_share_groups, on_group(READ), groups.altered_share_group_offsets),
    92: groups.if_enabled(groups.has_share_groups, on_group(DELETE), on_topics(READ)),
    93: (on_group(READ),),
    94: (on_cluster(ALTER),),
}
"""The checks of an API, by its key."""


def install(dispatcher: Dispatcher) -> None:
    """Have a dispatcher's handlers follow the checks of its cluster's authorizer, if it has one.

    Cached commits would respond without a check: there are none then.
    """
    authorizer = dispatcher.state.cluster.authorizer
    if authorizer is not None:
        dispatcher.cached_commits = None
        dispatcher.endpoints = _CheckedEndpoints(authorizer, dispatcher.endpoints)


class _CheckedEndpoints(Endpoints):
    """The endpoints of a broker that has an authorizer, made when first needed."""

    def __init__(self, authorizer: Authorizer, own: dict[tuple[int, int], Endpoint]) -> None:
        super().__init__()
        self._authorizer = authorizer
        self._own = own

    def _made(self, key: tuple[int, int]) -> Endpoint:
        endpoint = self._own[key]
        checks = TABLE.get(key[0])
        if checks:
            endpoint = replace(endpoint, handle=partial(_handle, self._authorizer, checks, endpoint), is_learned=False)
        return endpoint


def _handle(
    authorizer: Authorizer, checks: tuple[Check, ...], endpoint: Endpoint, request: Any, context: RequestContext
) -> Any:
    rights = Rights(authorizer, context.connection)

    def perform_from(index: int) -> Perform:
        if index == len(checks):
            return lambda request: endpoint.handle(request, context)
        following = perform_from(index + 1)
        return lambda request: checks[index](Asked(request, context, rights), following)

    return perform_from(0)(request)
