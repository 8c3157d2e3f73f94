"""The broker settings of Kafka that kproto knows: name, type, bounds, and the defaults by release."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import UsageError
from kproto.jvm.doubles import double_text, parse_double
from kproto.jvm.text import trimmed
from kproto_server.configuration.config_type import ConfigType, split_list
from kproto_server.configuration.topic_config_table import CHOICES, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kproto_server.releases.kafka_version import KafkaVersion

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
LONG_DIGITS = 19
NEW_PARTITIONS_MAX = 10_000
"""Partitions that one request may create. KRaft's controller has this limit; without a limit, a request of 50 bytes
could use all memory."""


NODE_ID_MAX = 1_000_000_000
"""The highest id of a first node: those of the others are numbers of 32 bits, too."""


class SettingError(UsageError):
    """A setting is unknown or its value is invalid; the message is one line that says what to do."""


LIMITS = {
    ConfigType.SHORT: (-(2**15), 2**15 - 1),
    ConfigType.INT: (-(2**31), INT_MAX),
    ConfigType.LONG: (-(2**63), LONG_MAX),
}


def whole_number(text: str, type_: ConfigType) -> int | None:
    """Return the number in a text, parsed as in Java; None if it is not a number, or does not fit the type."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    significant = digits.lstrip("0") or "0"  # Python refuses to convert thousands of digits
    if not (digits.isascii() and digits.isdigit()) or len(significant) > LONG_DIGITS:
        return None
    low, high = LIMITS[type_]
    number = -int(significant) if text[0] == "-" else int(significant)
    return number if low <= number <= high else None


class Setting(NamedTuple):
    """One broker setting."""

    name: str
    type: ConfigType
    default: str | None
    """The default of the oldest release. None is Kafka's null: not set."""
    changed: tuple[tuple[tuple[int, ...], str], ...] = ()
    """(release, default since that release), oldest first."""
    low: int | None = None
    high: int | None = None
    """Bounds of a number in addition to those of its type, both included."""
    not_zero: bool = False
    choices: tuple[str, ...] = ()
    acts: bool = True
    """Whether kproto implements the setting."""
    dynamic: tuple[int, ...] | None = None
    """The first release in which the setting is dynamic; DescribeConfigs returns the others as read-only."""
    since: tuple[int, ...] = ()
    """The first release that has the setting, if DescribeConfigs must not return it for others."""
    until: tuple[int, ...] = ()
    """The first release that no longer has the setting."""
    hidden_in: tuple[int, ...] = ()
    """The release in which DescribeConfigs does not return the setting, although those before and after it do."""
    is_described: bool = True
    """Whether DescribeConfigs returns the setting: none of kproto's own, and none that is internal in Kafka."""
    described_if_set: bool = False
    """Whether DescribeConfigs returns the setting only if it has a value."""

    def default_in(self, kafka_version: KafkaVersion) -> str | None:
        """Return the default in a release."""
        default = self.default
        for release, new_default in self.changed:
            if kafka_version.at_least(*release):
                default = new_default
        return default

    def is_described_in(self, kafka_version: KafkaVersion) -> bool:
        """Return whether DescribeConfigs of this release returns the setting, if it has a value."""
        is_gone = bool(self.until) and kafka_version.at_least(*self.until)
        is_hidden = is_gone or kafka_version.release == self.hidden_in
        return self.is_described and not is_hidden and kafka_version.at_least(*self.since)

    def is_dynamic_in(self, kafka_version: KafkaVersion) -> bool:
        """Return whether the setting can be changed while brokers of this release run."""
        return self.dynamic is not None and kafka_version.at_least(*self.dynamic)

    def check(self, text: str) -> str:
        """Return the value as Kafka writes it.

        Raises:
            SettingError: the value does not have the type, or is out of bounds.
        """
        value = trimmed(text)
        given = split_list(value) if self.type is ConfigType.LIST else [value]
        if self.choices and not set(given) <= set(self.choices):
            count = "some" if self.type is ConfigType.LIST else "one"
            raise self._refusal(text, f"{count} of {', '.join(self.choices)}")
        match self.type:
            case ConfigType.BOOLEAN:
                if value.lower() not in ("true", "false"):
                    raise self._refusal(text, "true or false")
                return value.lower()
            case ConfigType.DOUBLE:
                number = parse_double(value)
                if number is None or number < 0 or number > 1:  # not a number is neither, as in Java
                    raise self._refusal(text, "a number from 0 to 1")
                return double_text(number)
            case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
                return str(self._checked_number(value))
            case _:
                return value

    def _checked_number(self, value: str) -> int:
        low, high = LIMITS[self.type]
        low = low if self.low is None else self.low
        high = high if self.high is None else self.high
        number = whole_number(value, self.type)
        if number is None or not low <= number <= high or (self.not_zero and not number):
            but = ", but 0" if self.not_zero else ""
            raise self._refusal(value, f"a whole number from {low} to {high}{but}")
        return number

    def _refusal(self, value: str, wanted: str) -> SettingError:
        return SettingError(f"{self.name} cannot be {value!r}: give {wanted}")


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, PASSWORD = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.SHORT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
    ConfigType.PASSWORD,
)

ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."
ASSIGNOR_CLASSES = f"{ASSIGNORS}UniformAssignor,{ASSIGNORS}RangeAssignor"

# Types, defaults and bounds are those of Kafka's configuration definitions. kproto adds bounds where Kafka has none and
# a value makes no sense.
_TABLE = (
    # The id of the first node; the others follow.
    Setting("broker.id", INT, "1", low=0, high=NODE_ID_MAX),
    Setting("node.id", INT, "1", low=0, high=NODE_ID_MAX, since=(2, 8)),
    # Connections.
    Setting("socket.request.max.bytes", INT, "104857600", low=1),
    Setting("queued.max.request.bytes", LONG, "-1", since=(1, 0)),
    Setting("connections.max.idle.ms", LONG, "600000"),
    Setting("max.connection.creation.rate", INT, "2147483647", low=0, dynamic=(2, 7), since=(2, 7)),
    Setting("max.connections", INT, "2147483647", low=0, dynamic=(2, 3), since=(2, 3)),
    Setting("max.connections.per.ip", INT, "2147483647", low=0, dynamic=(2, 1)),
    Setting("max.connections.per.ip.overrides", STRING, "", dynamic=(2, 1)),
    Setting("broker.rack", STRING, None, acts=False),
    # TLS. DescribeConfigs returns them from 0.9 on.
    Setting("ssl.client.auth", STRING, "none", choices=("none", "requested", "required"), dynamic=(1, 1), since=(0, 9)),
    Setting(
        "ssl.enabled.protocols",
        LIST,
        "TLSv1.2,TLSv1.1,TLSv1",
        changed=(((2, 5), "TLSv1.2"), ((2, 6), "TLSv1.2,TLSv1.3")),
        choices=("TLSv1.2", "TLSv1.3", "TLSv1.1", "TLSv1"),
        dynamic=(1, 1),
        since=(0, 9),
    ),
    Setting("ssl.principal.mapping.rules", STRING, "DEFAULT", since=(2, 2)),
    Setting("ssl.keystore.location", STRING, None, dynamic=(1, 1), since=(0, 9)),
    Setting("ssl.keystore.type", STRING, "JKS", dynamic=(1, 1), since=(0, 9)),
    Setting("ssl.keystore.password", PASSWORD, None, dynamic=(1, 1), since=(0, 9)),
    Setting("ssl.key.password", PASSWORD, None, dynamic=(1, 1), since=(0, 9)),
    Setting("ssl.keystore.certificate.chain", PASSWORD, None, dynamic=(2, 7), since=(2, 7)),
    Setting("ssl.keystore.key", PASSWORD, None, dynamic=(2, 7), since=(2, 7)),
    Setting("ssl.truststore.location", STRING, None, dynamic=(1, 1), since=(0, 9)),
    Setting("ssl.truststore.type", STRING, "JKS", dynamic=(1, 1), since=(0, 9)),
    Setting("ssl.truststore.password", PASSWORD, None, dynamic=(1, 1), since=(0, 9)),
    Setting("ssl.truststore.certificates", PASSWORD, None, dynamic=(2, 7), since=(2, 7)),
    # SASL.
    Setting(
        "sasl.enabled.mechanisms",
        LIST,
        "GSSAPI",
        choices=("GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
        dynamic=(1, 1),
        since=(0, 9),
    ),
    Setting("sasl.oauthbearer.jwks.endpoint.url", STRING, None, since=(3, 1)),
    Setting("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, "3600000", low=1, since=(3, 1)),
    Setting("sasl.oauthbearer.expected.audience", LIST, None, changed=(((4, 2), ""),), since=(3, 1)),
    Setting("sasl.oauthbearer.expected.issuer", STRING, None, since=(3, 1)),
    Setting("sasl.oauthbearer.scope.claim.name", STRING, "scope", since=(3, 1)),
    Setting("sasl.oauthbearer.sub.claim.name", STRING, "sub", since=(3, 1)),
    Setting("sasl.oauthbearer.clock.skew.seconds", INT, "30", low=0, since=(3, 1)),
    # ACLs. Kafka's authorizers read the last two; no release returns their values.
    Setting("authorizer.class.name", STRING, "", since=(0, 9)),
    Setting("super.users", STRING, None, is_described=False),
    Setting("allow.everyone.if.no.acl.found", BOOLEAN, "false", is_described=False),
    Setting("connections.max.reauth.ms", LONG, "0", low=0, since=(2, 2)),
    Setting("connection.failed.authentication.delay.ms", INT, "100", low=0, since=(2, 1)),
    # Delegation tokens. The key has its second name up to 3.9.
    Setting("delegation.token.secret.key", PASSWORD, None, since=(2, 8)),
    Setting("delegation.token.master.key", PASSWORD, None, since=(1, 1), until=(4, 0)),
    Setting("delegation.token.max.lifetime.ms", LONG, "604800000", low=1, since=(1, 1)),
    Setting("delegation.token.expiry.time.ms", LONG, "86400000", low=1, since=(1, 1)),
    Setting("delegation.token.expiry.check.interval.ms", LONG, "3600000", low=1, since=(1, 1)),
    # Topics.
    Setting("auto.create.topics.enable", BOOLEAN, "true"),
    Setting("delete.topic.enable", BOOLEAN, "false", changed=(((1, 0), "true"),)),
    Setting("num.partitions", INT, "1", low=1, high=NEW_PARTITIONS_MAX),
    Setting("default.replication.factor", INT, "1", low=1, high=2**15 - 1),
    Setting("max.incremental.fetch.session.cache.slots", INT, "1000", low=0, since=(1, 1)),
    Setting("min.insync.replicas", INT, "1", low=1, dynamic=(1, 1)),
    Setting("message.max.bytes", INT, "1000012", changed=(((2, 5), "1048588"),), low=0, dynamic=(1, 1)),
    Setting("log.cleaner.backoff.ms", LONG, "15000", low=1, dynamic=(1, 1)),
    Setting("log.cleaner.delete.retention.ms", LONG, "86400000", low=0, dynamic=(1, 1)),
    Setting("log.cleaner.enable", BOOLEAN, "false", changed=(((0, 9), "true"),)),
    Setting("log.cleaner.min.cleanable.ratio", DOUBLE, "0.5", low=0, high=1, dynamic=(1, 1)),
    Setting("log.flush.interval.ms", LONG, None, dynamic=(1, 1)),
    Setting("log.flush.scheduler.interval.ms", LONG, "9223372036854775807"),
    Setting("log.retention.bytes", LONG, "-1", dynamic=(1, 1)),
    Setting("log.retention.check.interval.ms", LONG, "300000", low=1),
    Setting("log.retention.hours", INT, "168", not_zero=True),
    # Partitions move at once, so there is nothing to throttle; Kafka's tool for reassignments sets them.
    Setting("leader.replication.throttled.rate", LONG, None, low=0, acts=False, dynamic=(1, 1), described_if_set=True),
    Setting(
        "follower.replication.throttled.rate", LONG, None, low=0, acts=False, dynamic=(1, 1), described_if_set=True
    ),
    Setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        None,
        low=0,
        acts=False,
        dynamic=(1, 1),
        described_if_set=True,
    ),
    Setting("log.retention.minutes", INT, None, not_zero=True),
    Setting("log.retention.ms", LONG, None, not_zero=True, dynamic=(1, 1)),
    Setting("log.roll.hours", INT, "168", low=1),
    Setting("log.roll.jitter.hours", INT, "0", low=0),
    Setting("log.roll.jitter.ms", LONG, None, dynamic=(1, 1)),
    Setting("log.roll.ms", LONG, None, not_zero=True, dynamic=(1, 1)),
    Setting("log.segment.bytes", INT, "1073741824", low=14, dynamic=(1, 1)),
    # Before 3.4 transactional.id.expiration.ms decides, with the default given here.
    Setting(
        "producer.id.expiration.ms",
        INT,
        "604800000",
        changed=(((3, 4), "86400000"),),
        low=1,
        dynamic=(3, 4),
        since=(3, 4),
    ),
    # There is one thread, and the cleaner has no buffers of its own.
    Setting("background.threads", INT, "10", low=1, acts=False, dynamic=(1, 1)),
    Setting("log.cleaner.dedupe.buffer.size", LONG, "134217728", acts=False, dynamic=(1, 1)),
    Setting("log.cleaner.io.buffer.size", INT, "524288", low=0, acts=False, dynamic=(1, 1)),
    Setting("log.cleaner.threads", INT, "1", low=1, acts=False, dynamic=(1, 1)),
    Setting("num.io.threads", INT, "8", low=1, acts=False, dynamic=(1, 1)),
    Setting("num.network.threads", INT, "3", low=1, acts=False, dynamic=(1, 1)),
    Setting("num.recovery.threads.per.data.dir", INT, "1", changed=(((4, 0), "2"),), low=1, acts=False, dynamic=(1, 1)),
    Setting("num.replica.fetchers", INT, "1", low=1, acts=False, dynamic=(1, 1)),
    # Internal in Kafka: DescribeConfigs does not return it.
    Setting("producer.id.expiration.check.interval.ms", INT, "600000", low=1, is_described=False),
    Setting("records.memory.max.bytes", LONG, "268435456", low=1, is_described=False),
    # Offsets.
    Setting("offset.metadata.max.bytes", INT, "1024", changed=(((0, 8, 2), "4096"),), low=0),
    Setting("offsets.commit.timeout.ms", INT, "5000", low=1),
    Setting("offsets.load.buffer.size", INT, "5242880", low=1, acts=False),
    Setting("offsets.retention.check.interval.ms", LONG, "600000", low=1),
    Setting("offsets.retention.minutes", INT, "1440", changed=(((2, 0), "10080"),), low=1),
    Setting("offsets.topic.compression.codec", INT, "0", low=0, high=4),
    Setting("offsets.topic.num.partitions", INT, "50", low=1, high=NEW_PARTITIONS_MAX),
    Setting("offsets.topic.replication.factor", SHORT, "3", low=1),
    Setting("offsets.topic.segment.bytes", INT, "104857600", low=1),
    Setting("offsets.retention.override", STRING, "ignore", choices=("ignore", "honour"), is_described=False),
    # Groups with members.
    # DEVIATION: Kafka's default is 3 s; the server.properties that Kafka ships has 0, and so do most tests.
    Setting("group.initial.rebalance.delay.ms", INT, "0", low=0),
    Setting("group.max.session.timeout.ms", INT, "30000", changed=(((0, 10), "300000"), ((2, 3), "1800000")), low=1),
    Setting("group.max.size", INT, "2147483647", low=1, since=(2, 2)),
    Setting("group.min.session.timeout.ms", INT, "6000", low=1),
    # Share groups (KIP-932).
    Setting("errors.deadletterqueue.auto.create.topics.enable", BOOLEAN, "false", dynamic=(4, 4), since=(4, 4)),
    Setting("errors.deadletterqueue.topic.name.prefix", STRING, "dlq.", dynamic=(4, 4), since=(4, 4)),
    Setting(
        "group.share.assignment.interval.ms", INT, "0", changed=(((4, 3), "1000"),), low=0, dynamic=(4, 3), since=(4, 3)
    ),
    Setting("group.share.delivery.count.limit", INT, "5", low=2, high=10, since=(3, 9)),
    Setting("group.share.heartbeat.interval.ms", INT, "5000", low=1, since=(3, 9)),
    Setting("group.share.max.assignment.interval.ms", INT, "15000", low=0, since=(4, 3)),
    Setting("group.share.max.delivery.count.limit", INT, "10", low=5, high=25, since=(4, 3)),
    Setting("group.share.max.heartbeat.interval.ms", INT, "15000", low=1, since=(3, 9)),
    Setting("group.share.max.partition.max.record.locks", INT, "4000", low=2000, high=10000, since=(4, 3)),
    Setting("group.share.max.record.lock.duration.ms", INT, "60000", low=30000, high=3600000, since=(3, 9)),
    Setting("group.share.max.session.timeout.ms", INT, "60000", low=1, since=(3, 9)),
    Setting("group.share.max.share.sessions", INT, "2000", low=1, since=(4, 1)),
    Setting("group.share.max.size", INT, "200", low=1, high=1000, since=(3, 9)),
    Setting("group.share.min.assignment.interval.ms", INT, "0", low=0, since=(4, 3)),
    Setting("group.share.min.delivery.count.limit", INT, "2", low=2, high=5, since=(4, 3)),
    Setting("group.share.min.heartbeat.interval.ms", INT, "5000", low=1, since=(3, 9)),
    Setting("group.share.min.partition.max.record.locks", INT, "100", low=100, high=2000, since=(4, 3)),
    Setting("group.share.min.record.lock.duration.ms", INT, "15000", low=1000, high=30000, since=(3, 9)),
    Setting("group.share.min.session.timeout.ms", INT, "45000", low=1, since=(3, 9)),
    Setting(
        "group.share.partition.max.record.locks",
        INT,
        "200",
        changed=(((4, 1), "2000"),),
        low=100,
        high=10000,
        since=(3, 9),
    ),
    Setting("group.share.record.lock.duration.ms", INT, "30000", low=1000, high=3600000, since=(3, 9)),
    Setting("group.share.session.timeout.ms", INT, "45000", low=1, since=(3, 9)),
    Setting(
        "share.coordinator.cold.partition.snapshot.interval.ms", INT, "300000", low=1, since=(4, 1), is_described=False
    ),
    Setting("share.coordinator.snapshot.update.records.per.snapshot", INT, "500", low=0, since=(4, 0)),
    Setting("share.coordinator.state.topic.min.isr", SHORT, "2", low=1, since=(4, 0)),
    Setting("share.coordinator.state.topic.num.partitions", INT, "50", low=1, high=NEW_PARTITIONS_MAX, since=(4, 0)),
    Setting("share.coordinator.state.topic.prune.interval.ms", INT, "300000", low=1, since=(4, 1), is_described=False),
    Setting("share.coordinator.state.topic.replication.factor", SHORT, "3", low=1, since=(4, 0)),
    # Groups of consumers that speak KIP-848.
    Setting(
        "group.consumer.assignment.interval.ms",
        INT,
        "0",
        changed=(((4, 3), "1000"),),
        low=0,
        dynamic=(4, 3),
        since=(4, 3),
    ),
    Setting("group.consumer.assignors", LIST, ASSIGNOR_CLASSES, changed=(((4, 0), "uniform,range"),), since=(3, 7)),
    Setting("group.consumer.max.assignment.interval.ms", INT, "15000", low=0, since=(4, 3)),
    Setting("group.consumer.heartbeat.interval.ms", INT, "5000", low=1, since=(3, 7)),
    Setting("group.consumer.max.heartbeat.interval.ms", INT, "15000", low=1, since=(3, 7)),
    Setting("group.consumer.max.session.timeout.ms", INT, "60000", low=1, since=(3, 7)),
    Setting("group.consumer.max.size", INT, "2147483647", low=1, since=(3, 7)),
    Setting(
        "group.consumer.migration.policy",
        STRING,
        "disabled",
        changed=(((4, 0), "bidirectional"),),
        choices=("bidirectional", "disabled", "downgrade", "upgrade"),
        since=(3, 8),
        hidden_in=(3, 9),
    ),
    Setting("group.consumer.min.assignment.interval.ms", INT, "0", low=0, since=(4, 3)),
    Setting("group.consumer.min.heartbeat.interval.ms", INT, "5000", low=1, since=(3, 7)),
    Setting("group.consumer.min.session.timeout.ms", INT, "45000", low=1, since=(3, 7)),
    Setting("group.consumer.regex.refresh.interval.ms", INT, "600000", low=10_000, is_described=False),
    Setting("group.consumer.session.timeout.ms", INT, "45000", low=1, since=(3, 7)),
    # Streams groups (KIP-1071).
    Setting("group.streams.acceptable.recovery.lag", LONG, "10000", low=0, since=(4, 4), is_described=False),
    Setting(
        "group.streams.assignment.interval.ms",
        INT,
        "0",
        changed=(((4, 3), "1000"),),
        low=0,
        dynamic=(4, 3),
        since=(4, 3),
    ),
    Setting("group.streams.assignors", LIST, "sticky", acts=False, since=(4, 4)),
    Setting("group.streams.heartbeat.interval.ms", INT, "5000", low=1, since=(4, 1)),
    Setting("group.streams.initial.rebalance.delay.ms", INT, "3000", low=0, since=(4, 2)),
    Setting("group.streams.max.assignment.interval.ms", INT, "15000", low=0, since=(4, 3)),
    Setting("group.streams.max.heartbeat.interval.ms", INT, "15000", low=1, since=(4, 1)),
    Setting("group.streams.max.session.timeout.ms", INT, "60000", low=1, since=(4, 1)),
    Setting("group.streams.max.size", INT, "2147483647", low=1, since=(4, 1)),
    Setting("group.streams.max.standby.replicas", INT, "2", low=0, since=(4, 1)),
    Setting("group.streams.max.warmup.replicas", INT, "20", low=0, since=(4, 4), is_described=False),
    Setting("group.streams.min.assignment.interval.ms", INT, "0", low=0, since=(4, 3)),
    Setting("group.streams.min.heartbeat.interval.ms", INT, "5000", low=1, since=(4, 1)),
    Setting("group.streams.min.session.timeout.ms", INT, "45000", low=1, since=(4, 1)),
    Setting("group.streams.min.task.offset.interval.ms", INT, "15000", low=1, since=(4, 4), is_described=False),
    Setting("group.streams.num.standby.replicas", INT, "0", low=0, since=(4, 1)),
    Setting("group.streams.num.warmup.replicas", INT, "2", low=0, since=(4, 4), is_described=False),
    Setting("group.streams.rack.aware.assignment.tags", LIST, "", since=(4, 4)),
    Setting("group.streams.session.timeout.ms", INT, "45000", low=1, since=(4, 1)),
    Setting("group.streams.task.offset.interval.ms", INT, "60000", low=1, since=(4, 4), is_described=False),
    # Client quotas.
    Setting("controller.quota.window.num", INT, "11", low=1, since=(2, 7)),
    Setting("controller.quota.window.size.seconds", INT, "1", low=1, since=(2, 7)),
    Setting("quota.window.num", INT, "11", low=1),
    Setting("quota.window.size.seconds", INT, "1", low=1),
    # Transactions.
    # Metrics of clients. The first one is kproto's own: in Kafka, a plugin receives them.
    Setting("client.telemetry.receiver.enable", BOOLEAN, "false", since=(3, 7), is_described=False),
    Setting("telemetry.max.bytes", INT, "1048576", low=1, since=(3, 7)),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, "60000", changed=(((2, 5), "10000"),), low=1
    ),
    Setting("transaction.max.timeout.ms", INT, "900000", low=1),
    Setting("transaction.partition.verification.enable", BOOLEAN, "true", dynamic=(3, 6), since=(3, 6)),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, "3600000", low=1),
    Setting("transaction.state.log.min.isr", INT, "2", low=1),
    Setting("transaction.state.log.num.partitions", INT, "50", low=1, high=NEW_PARTITIONS_MAX),
    Setting("transaction.state.log.replication.factor", SHORT, "3", low=1),
    Setting("transactional.id.expiration.ms", INT, "604800000", low=1),
)

OLD_FORMATS = "log.message.format.version"
"""Records are stored in batches, whatever it says: no broker has it."""


def _defaults_of_topics() -> Iterator[Setting]:
    """Yield the settings that are defaults of topic configs and nothing else: their table has all but the names."""
    others = {setting.name for setting in _TABLE}
    for name, type_, synonym, steps in TABLE:
        if synonym is None or synonym == OLD_FORMATS or synonym in others:
            continue
        since, default, *_ = steps[0]
        low, high = next((low, high) for _, value, low, high in reversed(steps) if value is not None)
        gaps = [release for release, value, *_ in steps if value is None]
        is_back = steps[-1][1] is not None
        yield Setting(
            synonym,
            type_,
            default,
            changed=tuple((release, value) for release, value, *_ in steps[1:] if value is not None),
            low=low,
            high=high,
            choices=CHOICES[name][-1][1] if name in CHOICES else (),
            dynamic=max(since, (1, 1)),
            since=since,
            until=gaps[0] if gaps and not is_back else (),
            hidden_in=gaps[0] if gaps and is_back else (),
        )


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in (*_TABLE, *_defaults_of_topics())}
)
"""All settings by name."""

STORE_SETTINGS = frozenset({
    "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password", "ssl.key.password",
    "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.location", "ssl.truststore.type",
    "ssl.truststore.password", "ssl.truststore.certificates",
})  # fmt: skip
"""The settings of key stores and trust stores."""
