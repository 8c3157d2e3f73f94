"""Which requests brokers and controllers send to each other, and clients never send."""

from __future__ import annotations

from kproto_server.releases.kafka_version import KafkaVersion

NO_REPLICA = -1
"""The replica id of a client."""
CONTROLLER_APIS = frozenset({52, 53, 54, 59, 62, 63, 70, 73, 82})
"""Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot, BrokerRegistration, BrokerHeartbeat, ControllerRegistration,
AssignReplicasToDirs and UpdateRaftVoter, which kproto does not have: on the controllers' listener only."""
ADD_PARTITIONS_TO_TXN, BROKERS_ADD_PARTITIONS = 24, 4
"""From this version on only brokers send AddPartitionsToTxn (KIP-890)."""
API_VERSIONS = 18
BEGINNINGS = frozenset({17, API_VERSIONS, 36})
"""SaslHandshake, ApiVersions and SaslAuthenticate: a connection of a broker may begin with them, too."""
OFFSET_FOR_LEADER_EPOCH, NAMES_REPLICA = 23, 3
"""From this version on OffsetForLeaderEpoch has the id of a follower. Followers of 0.11 to 2.2 begin with it."""

_NEWEST = KafkaVersion.named()


def is_of_broker(api_key: int, api_version: int, replica_id: int) -> bool:
    """Return whether a request shows that a broker or a controller sent it."""
    return (
        api_key in CONTROLLER_APIS
        or _NEWEST.is_internal(api_key)
        or replica_id > NO_REPLICA
        or (api_key == ADD_PARTITIONS_TO_TXN and api_version >= BROKERS_ADD_PARTITIONS)
    )


def shows_sender(api_key: int, api_version: int) -> bool:
    """Return whether a request that is not of brokers is of a client; else brokers and clients send it alike."""
    if api_key == OFFSET_FOR_LEADER_EPOCH:
        return api_version >= NAMES_REPLICA
    return api_key not in BEGINNINGS
