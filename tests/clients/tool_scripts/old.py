"""The scripts for the tools of older releases, each against a broker of its release."""

from tests.clients.tool_steps import committed, file, joined, left, query, records, run, topic, wait
from tests.clients.tools import (
    OLD_CONFIGS,
    OLD_CONSOLE_PRODUCER,
    OLD_ELECTIONS,
    OLD_GROUPS,
    OLD_LOG_DIRS,
    OLD_OFFSETS,
    OLD_TOPICS,
    OLD_VERSIONS,
)

RESETS = (
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--to-offset 4",
    "--shift-by 2",
    "--shift-by -100",
    "--by-duration PT1H",
    "--to-datetime 2023-11-14T22:13:23.500",
)
GROUP = "--group aged --topic of-age"
ALL, ONE = "--entity-type brokers --entity-default", "--entity-type brokers --entity-name 1"

GROUPS = (
    topic("of-age", 2),
    records("of-age", 0, 10),
    committed("aged", "of-age", {0: 3, 1: 0}),
    query(OLD_GROUPS, "--list", "aged"),
    query(OLD_GROUPS, "--describe --group aged", "of-age          0          3               10              7"),
    query(OLD_GROUPS, "--describe --group aged --members --verbose", "has no active members"),
    query(OLD_GROUPS, "--describe --group aged --state", "Empty"),
    query(OLD_GROUPS, "--describe --group unknown", "does not exist"),
    query(OLD_GROUPS, "--describe --group unknown --state", "does not exist"),
    query(OLD_GROUPS, "--describe --group unknown --members", "does not exist"),
    joined("alive", ["of-age"]),
    query(OLD_GROUPS, "--describe --group alive", "the-client-UUID /127.0.0.1"),
    query(OLD_GROUPS, "--describe --group alive --members --verbose", "of-age(0,1)"),
    query(OLD_GROUPS, "--describe --group alive --state", "Stable"),
    run(OLD_GROUPS, "--delete --group alive", "could not be deleted due to"),
    run(OLD_GROUPS, "--reset-offsets --group alive --topic of-age --to-earliest --execute", "inactive"),
    left("alive"),
    *(
        query(OLD_GROUPS, f"--reset-offsets {GROUP} {reset} --dry-run", "NEW-OFFSET", unordered=True)
        for reset in RESETS
    ),
    run(OLD_GROUPS, f"--reset-offsets {GROUP}:0 --to-offset 7 --execute", "NEW-OFFSET"),
    query(OLD_GROUPS, "--describe --group aged", "of-age          0          7               10              3"),
    run(OLD_GROUPS, "--reset-offsets --group new --topic of-age --to-latest --execute", "NEW-OFFSET", unordered=True),
    run(
        OLD_GROUPS,
        "--reset-offsets --group aged --all-topics --to-offset 2 --export --dry-run",
        "of-age",
        unordered=True,
    ),
    file("plan.csv", "of-age,0,5\n"),
    run(OLD_GROUPS, "--reset-offsets --group aged --from-file FOLDER/plan.csv --execute", "NEW-OFFSET"),
    run(OLD_GROUPS, "--delete --group unknown", "could not be deleted"),
    run(OLD_GROUPS, "--delete --group aged", "was successful"),
    query(OLD_GROUPS, "--describe --group aged", "does not exist"),
    query(OLD_OFFSETS, "--broker-list ADDRESS --topic of-age --time -2", "of-age:0:0"),
    query(OLD_LOG_DIRS, "--describe --topic-list of-age", '"partition":"of-age-0"', measured=True),
    query(OLD_VERSIONS, "", "OffsetCommit(8): 0 to"),
)
"""For 2.0.1 and later."""

BROKERS = (
    query(OLD_CONFIGS, f"--describe {ALL}", "for brokers in the cluster are:"),
    run(OLD_CONFIGS, f"--alter {ALL} --add-config log.retention.ms=50000000", "ompleted"),
    run(OLD_CONFIGS, f"--alter {ONE} --add-config num.partitions=2", "Cannot update these configs dynamically"),
    run(OLD_CONFIGS, f"--alter {ONE} --add-config message.max.bytes=20000", "ompleted"),
    query(OLD_CONFIGS, f"--describe {ALL}", "log.retention.ms=50000000"),
    query(OLD_CONFIGS, f"--describe {ONE}", "message.max.bytes=20000"),
    run(OLD_CONFIGS, f"--alter {ONE} --delete-config message.max.bytes", "ompleted"),
    run(OLD_CONFIGS, f"--alter {ALL} --delete-config log.retention.ms", "ompleted"),
    query(OLD_CONFIGS, f"--describe {ALL}", "brokers in the cluster are:"),
)

OF_TOPIC = "--entity-type topics --entity-name made"

TOPICS = (
    run(OLD_TOPICS, "--create --topic made --partitions 2 --replication-factor 1", "Created topic made."),
    wait("made", 2),
    run(OLD_TOPICS, "--create --topic made", "already exists"),
    run(OLD_TOPICS, "--create --topic no --replication-factor 3", "larger than available brokers"),
    run(OLD_TOPICS, "--create --topic no --config no.such=1", "no.such"),
    run(OLD_TOPICS, "--create --topic no --partitions 0", "must be greater than 0"),
    query(OLD_TOPICS, "--describe --topic made", "PartitionCount: 2"),
    query(OLD_TOPICS, "--describe --topic unknown", "does not exist as expected"),
    run(OLD_TOPICS, "--alter --topic made --partitions 1", "higher than the requested 1"),
    query(OLD_CONFIGS, f"--describe {OF_TOPIC} --all", "retention.ms=604800000"),
    run(OLD_CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=50000000", "Completed"),
    query(OLD_CONFIGS, f"--describe {OF_TOPIC}", "retention.ms=50000000"),
    run(OLD_CONFIGS, f"--alter {OF_TOPIC} --add-config no.such=5", "Unknown topic config name"),
    run(OLD_CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=soon", "Invalid value soon"),
    run(OLD_CONFIGS, f"--alter {OF_TOPIC} --delete-config retention.ms", "Completed"),
    run(OLD_ELECTIONS, "--election-type preferred --topic made --partition 0", "Valid replica already elected"),
    run(OLD_ELECTIONS, "--election-type preferred --topic unknown --partition 0", "does not exist"),
    query(OLD_GROUPS, "--list --state Empty", "STATE"),
    run(OLD_CONSOLE_PRODUCER, "--broker-list ADDRESS --topic made", stdin="one\n"),
    query(OLD_OFFSETS, "--broker-list ADDRESS --topic made --time -2", "made:0:0\nmade:1:0"),
    run(OLD_GROUPS, "--delete-offsets --group unknown --topic made:1", "does not exist"),
    run(OLD_TOPICS, "--delete --topic made"),
    wait("made", 0),
    run(OLD_TOPICS, "--delete --topic made", "does not exist as expected"),
)
"""Of 2.8.2."""
