"""Groups with and without members: list, describe, delete, delete offsets."""

from tests.clients.tool_steps import committed, joined, left, query, records, run, topic
from tests.clients.tools import ALL_GROUPS, GROUPS

EMPTY = (
    topic("of-empty", 2),
    records("of-empty", 0, 10),
    committed("empty-1", "of-empty", {0: 5, 1: 6}),
    committed("empty-2", "of-empty", {0: 7}),
    query(GROUPS, "--describe --group empty-1 --group empty-2", "has no active members", "empty-2"),
    query(GROUPS, "--describe --group empty-1 --offsets --verbose", "LEADER-EPOCH"),
    query(GROUPS, "--describe --group empty-1 --members", "has no active members"),
    query(GROUPS, "--describe --group empty-1 --state", "Empty"),
    query(GROUPS, "--describe --group unknown", "Group unknown not found."),
    query(GROUPS, "--describe --group unknown --members", "Group unknown not found."),
    query(GROUPS, "--describe --group unknown --state", "Group unknown not found."),
    query(GROUPS, "--list --state dead", "STATE"),
    query(GROUPS, "--list --state preparingrebalance", "STATE"),
    query(GROUPS, "--list --type share", "types"),
    query(ALL_GROUPS, "--list --group-type consumer", "PROTOCOL"),
    query(ALL_GROUPS, "--list --group-type classic", "empty-1", unordered=True),
    query(ALL_GROUPS, "--list --protocol consumer", "PROTOCOL", unordered=True),
    run(GROUPS, "--delete-offsets --group unknown --topic of-empty:0", "The group id does not exist."),
    run(GROUPS, "--delete-offsets --group empty-1 --topic of-empty:0", "Successful"),
    run(GROUPS, "--delete-offsets --group empty-1 --topic of-empty", "Successful"),
    query(GROUPS, "--describe --group empty-1", "Consumer group 'empty-1' has no active members."),
    run(GROUPS, "--delete --group unknown", "The group id does not exist."),
    run(GROUPS, "--delete --group empty-2", "Deletion of requested consumer groups ('empty-2') was successful."),
    query(GROUPS, "--describe --group empty-2", "Group empty-2 not found."),
    query(GROUPS, "--describe", "all-groups"),
    query(GROUPS, "", "Command must include exactly one action"),
)

STABLE = (
    topic("of-stable", 2),
    records("of-stable", 0, 10),
    records("of-stable", 1, 5),
    committed("bystander", "of-stable", {0: 1}),
    joined("stable", ["of-stable"]),
    query(GROUPS, "--describe --group stable", "the-client-UUID /127.0.0.1"),
    query(GROUPS, "--describe --group stable --verbose", "LEADER-EPOCH"),
    query(GROUPS, "--describe --group stable --members", "#PARTITIONS"),
    query(GROUPS, "--describe --group stable --members --verbose", "of-stable:0,1"),
    query(GROUPS, "--describe --group stable --state", "range", "Stable", "1"),
    query(GROUPS, "--describe --group stable --state --verbose", "GROUP-EPOCH"),
    query(GROUPS, "--list --state stable", "stable", unordered=True),
    run(GROUPS, "--delete --group stable", "The group is not empty."),
    run(GROUPS, "--delete --group stable --group bystander", "The group is not empty.", "bystander"),
    run(
        GROUPS,
        "--reset-offsets --group stable --topic of-stable --to-earliest --execute",
        "Assignments can only be reset if the group 'stable' is inactive, but the current state is Stable.",
    ),
    run(GROUPS, "--reset-offsets --group stable --topic of-stable --to-earliest --dry-run", "inactive"),
    run(
        GROUPS, "--delete-offsets --group stable --topic of-stable", "is forbidden while the consumer group is actively"
    ),
    run(GROUPS, "--delete-offsets --group stable --topic of-stable:0", "is forbidden"),
    left("stable"),
    query(GROUPS, "--describe --group stable", "Consumer group 'stable' has no active members."),
    query(GROUPS, "--describe --group stable --members", "has no active members"),
    query(GROUPS, "--describe --group stable --state --verbose", "Empty"),
    run(GROUPS, "--delete-offsets --group stable --topic of-stable:0", "Successful"),
    run(GROUPS, "--delete --group stable", "was successful"),
)
