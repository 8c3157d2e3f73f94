"""What is asked of a cluster, and of what kproto has none of: quotas, users, tokens, ACLs, share groups, ..."""

from tests.clients.tool_steps import look, run, topic
from tests.clients.tools import (
    ACLS,
    CLUSTER,
    CONFIGS,
    ELECTIONS,
    FEATURES,
    REASSIGNMENTS,
    SHARE_GROUPS,
    STREAMS_GROUPS,
    TRANSACTIONS,
)

STEPS = (
    topic("elected", 2),
    run(ELECTIONS, "--election-type preferred --topic elected --partition 0", "Valid replica already elected"),
    run(ELECTIONS, "--election-type unclean --topic elected --partition 0", "Valid replica already elected"),
    run(ELECTIONS, "--election-type preferred --topic not-there --partition 0", "not-there"),
    run(ELECTIONS, "--election-type preferred --all-topic-partitions"),
    look(TRANSACTIONS, "list", "TransactionalId"),
    look(TRANSACTIONS, "describe --transactional-id unknown", "unknown"),
    look(TRANSACTIONS, "find-hanging --broker-id 1", "Topic"),
    look(FEATURES, "--bootstrap-server ADDRESS describe", "Feature: metadata.version"),
    look(CLUSTER, "cluster-id --bootstrap-server ADDRESS", "OF ITS OWN"),
    look(ACLS, "--list", "No Authorizer is configured"),
    look(REASSIGNMENTS, "--list", "No partition reassignments found."),
    look(STREAMS_GROUPS, "--list"),
    look(SHARE_GROUPS, "--list"),
    look(CONFIGS, "--describe --entity-type users"),
    look(CONFIGS, "--describe --entity-type clients"),
    look(CONFIGS, "--describe --entity-type ips"),
    look(
        CONFIGS, "--describe --entity-type brokers --entity-default", "Default configs for brokers in the cluster are:"
    ),
)
