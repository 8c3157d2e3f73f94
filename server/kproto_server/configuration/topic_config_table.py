"""The configs of topics: type, the broker setting that is the default, and default and bounds by release.

A row is name, type, synonym, then steps (release, default, lowest, highest): a step applies from its release on, and a
step without a default removes the config. The table omits configs that DescribeConfigs hides and real deployments never
set (internal.segment.bytes).

Source:
    fixtures/kafka-configs.json.
"""

from __future__ import annotations

from kproto_server.configuration.config_type import ConfigType

Step = tuple[tuple[int, ...], str | None, int | None, int | None]

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)

NOT_YET: Step = ((0,), None, None, None)

CHOICES: dict[str, tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]] = {
    "cleanup.policy": (((0,), ("compact", "delete")),),
    "compression.type": (
        ((0,), ("uncompressed", "snappy", "lz4", "gzip", "producer")),
        ((2, 1), ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
    ),
    "message.timestamp.type": (((0,), ("CreateTime", "LogAppendTime")),),
}
"""The valid values of a config, or of the items of a list, since a release; the order is that of error messages."""

TABLE: tuple[tuple[str, ConfigType, str | None, tuple[Step, ...]], ...] = (
    ("cleanup.policy", LIST, "log.cleanup.policy", (((0,), "delete", None, None),)),
    ("compression.gzip.level", INT, "compression.gzip.level", (((3, 8), "-1", None, None),)),
    ("compression.lz4.level", INT, "compression.lz4.level", (((3, 8), "9", 1, 17),)),
    ("compression.type", STRING, "compression.type", (((0,), "producer", None, None),)),
    ("compression.zstd.level", INT, "compression.zstd.level", (((3, 8), "3", -131072, 22),)),
    ("delete.retention.ms", LONG, "log.cleaner.delete.retention.ms", (((0,), "86400000", 0, None),)),
    ("errors.deadletterqueue.group.enable", BOOLEAN, None, (((4, 4), "false", None, None),)),
    ("file.delete.delay.ms", LONG, "log.segment.delete.delay.ms", (((0,), "60000", 0, None),)),
    (
        "flush.messages",
        LONG,
        "log.flush.interval.messages",
        (((0,), "9223372036854775807", 0, None), ((3, 3), "9223372036854775807", 1, None)),
    ),
    ("flush.ms", LONG, None, (((0,), "9223372036854775807", 0, None),)),
    ("follower.replication.throttled.replicas", LIST, None, (((0, 10, 1), "", None, None),)),
    ("index.interval.bytes", INT, "log.index.interval.bytes", (((0,), "4096", 0, None),)),
    ("leader.replication.throttled.replicas", LIST, None, (((0, 10, 1), "", None, None),)),
    ("local.retention.bytes", LONG, "log.local.retention.bytes", (((3, 6), "-2", -2, None),)),
    ("local.retention.ms", LONG, "log.local.retention.ms", (((3, 6), "-2", -2, None),)),
    ("max.compaction.lag.ms", LONG, "log.cleaner.max.compaction.lag.ms", (((2, 3), "9223372036854775807", 1, None),)),
    (
        "max.decompressed.message.bytes",
        INT,
        "max.decompressed.message.bytes",
        (((4, 2), "2147483639", 1, 2147483639), ((4, 3), None, None, None), ((4, 4), "2147483639", 1, 2147483639)),
    ),
    ("max.message.bytes", INT, "message.max.bytes", (((0,), "1000012", 0, None), ((2, 5), "1048588", 0, None))),
    (
        "message.downconversion.enable",
        BOOLEAN,
        "log.message.downconversion.enable",
        (((2, 0), "true", None, None), ((4, 0), None, None, None)),
    ),
    (
        "message.format.version",
        STRING,
        "log.message.format.version",
        (
            ((0, 10, 0), "0.10.0-IV1", None, None),
            ((0, 10, 1), "0.10.1-IV2", None, None),
            ((0, 10, 2), "0.10.2-IV0", None, None),
            ((0, 11, 0), "0.11.0-IV2", None, None),
            ((1, 0), "1.0-IV0", None, None),
            ((1, 1), "1.1-IV0", None, None),
            ((2, 0), "2.0-IV1", None, None),
            ((2, 1), "2.1-IV2", None, None),
            ((2, 2), "2.2-IV1", None, None),
            ((2, 3), "2.3-IV1", None, None),
            ((2, 4), "2.4-IV1", None, None),
            ((2, 5), "2.5-IV0", None, None),
            ((2, 6), "2.6-IV0", None, None),
            ((2, 7), "2.7-IV2", None, None),
            ((2, 8), "2.8-IV1", None, None),
            ((3, 0), "3.0-IV1", None, None),
            ((4, 0), None, None, None),
        ),
    ),
    (
        "message.timestamp.after.max.ms",
        LONG,
        "log.message.timestamp.after.max.ms",
        (((3, 6), "9223372036854775807", 0, None), ((4, 0), "3600000", 0, None)),
    ),
    (
        "message.timestamp.before.max.ms",
        LONG,
        "log.message.timestamp.before.max.ms",
        (((3, 6), "9223372036854775807", 0, None),),
    ),
    (
        "message.timestamp.difference.max.ms",
        LONG,
        "log.message.timestamp.difference.max.ms",
        (((0, 10, 0), "9223372036854775807", 0, None), ((4, 0), None, None, None)),
    ),
    ("message.timestamp.type", STRING, "log.message.timestamp.type", (((0, 10, 0), "CreateTime", None, None),)),
    ("min.cleanable.dirty.ratio", DOUBLE, "log.cleaner.min.cleanable.ratio", (((0,), "0.5", 0, 1),)),
    ("min.compaction.lag.ms", LONG, "log.cleaner.min.compaction.lag.ms", (((0, 10, 1), "0", 0, None),)),
    ("min.insync.replicas", INT, "min.insync.replicas", (((0,), "1", 1, None),)),
    ("preallocate", BOOLEAN, "log.preallocate", (((0,), "false", None, None),)),
    ("remote.copy.lag.bytes", LONG, "log.remote.copy.lag.bytes", (((4, 4), "-1", -1, None),)),
    ("remote.copy.lag.ms", LONG, "log.remote.copy.lag.ms", (((4, 4), "0", -1, None),)),
    ("remote.log.copy.disable", BOOLEAN, None, (((3, 9), "false", None, None),)),
    ("remote.log.delete.on.disable", BOOLEAN, None, (((3, 9), "false", None, None),)),
    ("remote.storage.enable", BOOLEAN, None, (((3, 6), "false", None, None),)),
    ("retention.bytes", LONG, "log.retention.bytes", (((0,), "-1", None, None),)),
    ("retention.ms", LONG, None, (((0,), "604800000", None, None), ((2, 2), "604800000", -1, None))),
    (
        "segment.bytes",
        INT,
        "log.segment.bytes",
        (((0,), "1073741824", 14, None), ((4, 1), "1073741824", 1048576, None)),
    ),
    (
        "segment.index.bytes",
        INT,
        "log.index.size.max.bytes",
        (((0,), "10485760", 0, None), ((3, 3), "10485760", 4, None)),
    ),
    ("segment.jitter.ms", LONG, None, (((0,), "0", 0, None),)),
    ("segment.ms", LONG, None, (((0,), "604800000", 0, None), ((2, 0), "604800000", 1, None))),
    (
        "unclean.leader.election.enable",
        BOOLEAN,
        "unclean.leader.election.enable",
        (((0,), "true", None, None), ((0, 11, 0), "false", None, None)),
    ),
)
