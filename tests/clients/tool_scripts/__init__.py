"""The scripts for Kafka's newest tools, by subject."""

from collections.abc import Mapping, Sequence

from tests.clients.tool_scripts import (
    configs,
    features,
    groups,
    others,
    quorum,
    quotas,
    records,
    resets,
    share_groups,
    streams_groups,
    topics,
    transactions,
    users,
)
from tests.clients.tool_steps import Action

SCRIPTS: Mapping[str, Sequence[Action]] = {
    "topics": topics.STEPS,
    "partitions": topics.PARTITIONS,
    "empty groups": groups.EMPTY,
    "groups with members": groups.STABLE,
    "resets": resets.STEPS,
    "resets from files": resets.FROM_FILES,
    "producers and consumers": records.CONSOLE,
    "verifiable clients": records.VERIFIABLE,
    "performance": records.PERFORMANCE,
    "offsets and deletions of records": records.COUNTED,
    "configs of topics": configs.OF_TOPICS,
    "configs of brokers": configs.OF_BROKERS,
    "configs of groups": configs.OF_GROUPS,
    "transactions": transactions.STEPS,
    "hanging transactions": transactions.HANGING,
    "SCRAM credentials": users.CREDENTIALS,
    "client quotas": quotas.STEPS,
    "features": features.STEPS,
    "share groups": share_groups.STEPS,
    "streams groups": streams_groups.STEPS,
    "brokers and controllers": quorum.STEPS,
    "others": others.STEPS,
}
