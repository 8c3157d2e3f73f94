"""The scripts for Kafka's newest tools, by subject."""

from collections.abc import Mapping, Sequence

from tests.clients.tool_scripts import configs, groups, others, records, resets, topics
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
    "others": others.STEPS,
}
