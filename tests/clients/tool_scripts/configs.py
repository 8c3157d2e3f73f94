"""Configs of topics, brokers and groups: describe and alter."""

from tests.clients.tool_steps import query, run, wait
from tests.clients.tools import CLIENT_METRICS, CONFIGS, TOPICS

METRICS = "--entity-type client-metrics --entity-name slow"
OF_TOPIC = "--entity-type topics --entity-name configured"

OF_TOPICS = (
    run(TOPICS, "--create --topic configured --config segment.bytes=2000000", "Created topic configured."),
    wait("configured", 1),
    query(CONFIGS, f"--describe {OF_TOPIC}", "segment.bytes=2000000", "DYNAMIC_TOPIC_CONFIG:segment.bytes=2000000"),
    query(
        CONFIGS, f"--describe {OF_TOPIC} --all", "retention.ms=604800000", "DEFAULT_CONFIG:log.cleanup.policy=delete"
    ),
    query(CONFIGS, "--describe --entity-type topics --entity-name not-there", "not-there"),
    run(
        CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=5,cleanup.policy=[compact,delete]", "Completed updating"
    ),
    query(CONFIGS, f"--describe {OF_TOPIC}", "retention.ms=5 ", "cleanup.policy=compact,delete"),
    run(CONFIGS, f"--alter {OF_TOPIC} --add-config no.such=1", "Unknown topic config name: no.such"),
    run(CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=soon", "Invalid value soon"),
    run(
        CONFIGS, f"--alter {OF_TOPIC} --add-config retention.ms=7 --delete-config cleanup.policy", "Completed updating"
    ),
    query(CONFIGS, f"--describe {OF_TOPIC}", "retention.ms=7 "),
    run(CONFIGS, f"--alter {OF_TOPIC} --delete-config cleanup.policy", "Completed updating"),
    run(CONFIGS, f"--alter {OF_TOPIC} --delete-config retention.ms", "Completed updating"),
    query(TOPICS, "--describe --topic configured", "segment.bytes=2000000"),
    run(CONFIGS, "--alter --entity-type topics --entity-name not-there --add-config retention.ms=7", "not-there"),
    run(CONFIGS, "--alter --entity-type topics --add-config retention.ms=7", "An entity name must be specified"),
)

ALL, ONE = "--entity-type brokers --entity-default", "--entity-type brokers --entity-name 1"
FOR_ALL = "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=100000"

OF_BROKERS = (
    run(TOPICS, "--create --topic brokers-configs", "Created topic brokers-configs."),
    wait("brokers-configs", 1),
    query(CONFIGS, f"--describe {ALL}", "Default configs for brokers in the cluster are:"),
    query(CONFIGS, f"--describe {ONE}", "Dynamic configs for broker 1 are:"),
    run(CONFIGS, f"--alter {ALL} --add-config log.retention.ms=100000,log.segment.bytes=2000000", "Completed updating"),
    run(CONFIGS, f"--alter {ONE} --add-config message.max.bytes=5000", "Completed updating config for broker 1."),
    query(CONFIGS, f"--describe {ALL}", FOR_ALL),
    query(CONFIGS, f"--describe {ONE}", "DYNAMIC_BROKER_CONFIG:message.max.bytes=5000"),
    query(
        CONFIGS,
        "--describe --entity-type topics --entity-name brokers-configs --all",
        f"retention.ms=100000 sensitive=false synonyms={{{FOR_ALL}, DEFAULT_CONFIG:log.retention.hours=168}}",
    ),
    run(
        CONFIGS,
        f"--alter {ONE} --add-config num.partitions=3",
        "Cannot update these configs dynamically: [num.partitions]",
    ),
    run(
        CONFIGS,
        f"--alter {ONE} --add-config log.retention.ms=soon",
        "Invalid value soon for configuration log.retention.ms",
    ),
    run(CONFIGS, f"--alter {ALL} --add-config log.retention.ms=0", "log.retention.ms must be unlimited (-1) or"),
    run(CONFIGS, f"--alter {ALL} --delete-config min.insync.replicas", "cannot be removed while ELR is enabled"),
    run(CONFIGS, f"--alter {ONE} --add-config min.insync.replicas=2", "cannot be altered while ELR is enabled"),
    run(CONFIGS, f"--alter {ONE} --delete-config message.max.bytes", "Completed updating"),
    run(CONFIGS, f"--alter {ALL} --delete-config log.retention.ms,log.segment.bytes", "Completed updating"),
    query(CONFIGS, f"--describe {ALL}", "min.insync.replicas=1"),
    query(CONFIGS, "--describe --entity-type brokers", "Default configs for brokers in the cluster are:"),
    query(CONFIGS, "--describe --entity-type brokers --entity-name 7", "The broker '7' doesn't exist"),
    query(CONFIGS, "--describe --entity-type brokers --entity-name x", "must be a valid integer broker id"),
    query(CONFIGS, "--describe --entity-type client-metrics"),
    query(CLIENT_METRICS, "--list"),
    query(CLIENT_METRICS, "--describe"),
    run(CLIENT_METRICS, "--alter --name slow --metrics a.,x --interval 9000 --match client_id=a", "slow"),
    run(CLIENT_METRICS, "--alter --name slow --interval 10", "interval must be between 100 and 3600000"),
    run(CONFIGS, f"--alter {METRICS} --add-config metrics=[],match=[client_id=b]", "Completed updating config for"),
    run(CONFIGS, f"--alter {METRICS} --add-config match=[b=c]", "Illegal client matching pattern: b=c"),
    run(CONFIGS, f"--alter {METRICS} --add-config nope=1", "Unknown client metrics configuration: nope"),
    query(CLIENT_METRICS, "--list", "slow"),
    query(CLIENT_METRICS, "--describe --name slow", "interval.ms=9000"),
    query(CONFIGS, f"--describe {METRICS}", "match=client_id=b"),
    run(CONFIGS, f"--alter {METRICS} --delete-config match", "Completed updating"),
    run(CLIENT_METRICS, "--delete --name slow", "slow"),
    query(CLIENT_METRICS, "--list"),
)

ONE_GROUP, OTHER = "--entity-type groups --entity-name configured-group", "--entity-type groups --entity-name other"

OF_GROUPS = (
    query(CONFIGS, "--describe --entity-type groups"),
    query(CONFIGS, f"--describe {ONE_GROUP}", "doesn't exist"),
    query(CONFIGS, f"--describe {ONE_GROUP} --all", "group.share.session.timeout.ms=45000"),
    run(
        CONFIGS,
        f"--alter {ONE_GROUP} --add-config consumer.session.timeout.ms=50000,share.auto.offset.reset=earliest",
        "Completed updating config for group configured-group.",
    ),
    query(CONFIGS, f"--describe {ONE_GROUP}", "consumer.session.timeout.ms=50000"),
    query(CONFIGS, f"--describe {ONE_GROUP} --all", "share.auto.offset.reset=earliest"),
    run(CONFIGS, f"--alter {OTHER} --add-config share.isolation.level=read_committed", "Completed updating"),
    query(CONFIGS, "--describe --entity-type groups", "share.isolation.level=read_committed"),
    query(CONFIGS, "--describe --entity-type groups --all", "consumer.session.timeout.ms=50000"),
    run(CONFIGS, f"--alter {ONE_GROUP} --add-config no.such=1", "Unknown group config name: no.such"),
    run(CONFIGS, f"--alter {ONE_GROUP} --add-config consumer.session.timeout.ms=soon", "Invalid value soon"),
    run(CONFIGS, f"--alter {ONE_GROUP} --add-config consumer.session.timeout.ms=5", "must be in the range"),
    run(CONFIGS, f"--alter {ONE_GROUP} --add-config consumer.heartbeat.interval.ms=15001", "must be in the range"),
    run(CONFIGS, f"--alter {ONE_GROUP} --add-config share.auto.offset.reset=by_duration:PT1H", "Completed updating"),
    run(CONFIGS, f"--alter {ONE_GROUP} --delete-config consumer.session.timeout.ms", "Completed updating"),
    query(CONFIGS, f"--describe {ONE_GROUP}", "by_duration:PT1H"),
    run(CONFIGS, f"--alter {ONE_GROUP} --delete-config share.session.timeout.ms", "Completed updating"),
    run(CONFIGS, f"--alter {ONE_GROUP} --delete-config share.auto.offset.reset", "Completed updating"),
    query(CONFIGS, f"--describe {ONE_GROUP}", "doesn't exist"),
    run(CONFIGS, "--alter --entity-type groups --add-config consumer.session.timeout.ms=50000", "entity"),
    run(
        CONFIGS,
        "--alter --entity-type groups --entity-default --add-config consumer.session.timeout.ms=50000",
        "An entity name must be specified",
    ),
    run(CONFIGS, "--describe --group configured-group", "doesn't exist"),
)
