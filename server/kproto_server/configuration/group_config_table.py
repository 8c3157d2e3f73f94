"""The configs of groups: type, and default and lowest value by release; the broker settings that limit them.

A row is name, type, then steps (release, default, lowest): a step applies from its release on. The order is the one in
which brokers check the limits. The default applies if there is no broker setting ``group.NAME``.

Source:
    fixtures/kafka-configs.json; GroupConfig.
"""

from __future__ import annotations

from kproto_server.configuration.settings import ConfigType

Step = tuple[tuple[int, ...], str, int | None]

BOOLEAN, STRING, INT, LONG, LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
)

TABLE: tuple[tuple[str, ConfigType, tuple[Step, ...]], ...] = (
    ("consumer.heartbeat.interval.ms", INT, (((4, 0), "5000", 1),)),
    ("consumer.session.timeout.ms", INT, (((4, 0), "45000", 1),)),
    ("consumer.assignment.interval.ms", INT, (((4, 3), "1000", 0),)),
    ("consumer.assignor.offload.enable", BOOLEAN, (((4, 4), "true", None),)),
    ("share.heartbeat.interval.ms", INT, (((4, 0), "5000", 1),)),
    ("share.session.timeout.ms", INT, (((4, 0), "45000", 1),)),
    ("share.record.lock.duration.ms", INT, (((4, 0), "30000", 1000),)),
    ("share.delivery.count.limit", INT, (((4, 3), "5", 2),)),
    ("share.partition.max.record.locks", INT, (((4, 3), "2000", 100),)),
    ("share.assignment.interval.ms", INT, (((4, 3), "1000", 0),)),
    ("share.assignor.offload.enable", BOOLEAN, (((4, 4), "true", None),)),
    ("share.auto.offset.reset", STRING, (((4, 0), "latest", None),)),
    ("share.isolation.level", STRING, (((4, 1), "read_uncommitted", None),)),
    ("share.renew.acknowledge.enable", BOOLEAN, (((4, 3), "true", None),)),
    ("streams.heartbeat.interval.ms", INT, (((4, 1), "5000", 1),)),
    ("streams.session.timeout.ms", INT, (((4, 1), "45000", 1),)),
    ("streams.num.standby.replicas", INT, (((4, 1), "0", 0),)),
    ("streams.initial.rebalance.delay.ms", INT, (((4, 2), "3000", 0),)),
    ("streams.assignment.interval.ms", INT, (((4, 3), "1000", 0),)),
    ("streams.assignor.offload.enable", BOOLEAN, (((4, 4), "true", None),)),
    ("streams.task.offset.interval.ms", INT, (((4, 4), "60000", 1),)),
    ("streams.num.warmup.replicas", INT, (((4, 4), "2", 0),)),
    ("streams.acceptable.recovery.lag", LONG, (((4, 4), "10000", 0),)),
    ("streams.rack.aware.assignment.tags", LIST, (((4, 4), "", None),)),
    ("streams.assignor.name", STRING, (((4, 4), "", None),)),
    ("errors.deadletterqueue.topic.name", STRING, (((4, 4), "", None),)),
    ("errors.deadletterqueue.copy.record.enable", BOOLEAN, (((4, 4), "false", None),)),
)

CHOICES: dict[str, tuple[str, ...]] = {"share.isolation.level": ("read_committed", "read_uncommitted")}

IRREGULAR_BOUNDS: dict[str, tuple[str | None, str | None]] = {
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    "streams.num.warmup.replicas": (None, "group.streams.max.warmup.replicas"),
}
"""The broker settings of the lowest and the highest value, where their names are not ``group.KIND.min.REST`` and
``group.KIND.max.REST``."""

SYNONYMS = {"streams.assignor.name": "group.streams.assignors"}
"""The broker settings that are the defaults of configs, where their names are not ``group.NAME``."""

INTERNAL = frozenset(
    {
        "consumer.assignor.offload.enable",
        "share.assignor.offload.enable",
        "streams.acceptable.recovery.lag",
        "streams.assignor.offload.enable",
        "streams.num.warmup.replicas",
        "streams.task.offset.interval.ms",
    }
)
"""The configs that DescribeConfigs does not return."""

KINDS = ("consumer", "share", "streams")
