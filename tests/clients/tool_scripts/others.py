"""The cluster, and features that a broker has no part of: users, ACLs, reassignments."""

from tests.clients.tool_steps import query, run, topic
from tests.clients.tools import ACLS, CLUSTER, CONFIGS, ELECTIONS, REASSIGNMENTS, STREAMS_GROUPS

STEPS = (
    topic("elected", 2),
    run(ELECTIONS, "--election-type preferred --topic elected --partition 0", "Valid replica already elected"),
    run(ELECTIONS, "--election-type unclean --topic elected --partition 0", "Valid replica already elected"),
    run(ELECTIONS, "--election-type preferred --topic not-there --partition 0", "not-there"),
    run(ELECTIONS, "--election-type preferred --all-topic-partitions"),
    query(CLUSTER, "cluster-id --bootstrap-server ADDRESS", "DIFFERENT"),
    query(ACLS, "--list", "No Authorizer is configured"),
    query(REASSIGNMENTS, "--list", "No partition reassignments found."),
    query(STREAMS_GROUPS, "--list"),
    query(CONFIGS, "--describe --entity-type users"),
    query(CONFIGS, "--describe --entity-type clients"),
    query(CONFIGS, "--describe --entity-type ips"),
    query(
        CONFIGS, "--describe --entity-type brokers --entity-default", "Default configs for brokers in the cluster are:"
    ),
)
