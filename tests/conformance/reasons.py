"""Why a client does not pass a case: found by hand in its requests and in its source, with its own issue, if any."""

from __future__ import annotations

_NOT_IDEMPOTENT = "the producer is not idempotent by default"
_LIVELOCK = (
    "the repeated commit fails with a transport error while the new connection to the coordinator is made, which marks "
    "the coordinator dead again; this goes on for 15 to 30 s or more. Whether it begins is a matter of time: on 24 "
    "November the same version passed"
)
_REJOINED = "the member joins again with the last committed offset while a record that is written is not committed yet"

_NO_TRUNCATION = "no request says which epoch its last record had, and it asks for no end of that epoch (KIP-320)"
_AGAIN_AFTER_COMMIT = "a record whose commit fails is processed again"
_CODEC_OF_PROGRAM = (
    "the library has gzip only, and a program registers other codecs: KafkaJSNotImplemented ends the consumer, and the "
    "program only sees it if it listens to `consumer.crash`"
)
_CONNECTS_ONCE = "`connect` or `subscribe` fails with KafkaJSConnectionClosedError; a program has to call it again"
_CRASH = (
    "KafkaJSGroupCoordinatorNotFound, which is not retriable, ends the consumer, and the program only sees it if it "
    "listens to `consumer.crash`"
)
_FORGETS_MEMBER = (
    "it joins again as a new member, and the group waits for the former one until its session of 30 s ends, which is "
    "longer than the case waits"
)
_NEW_BROKERS_ONLY = "it begins with ApiVersions v3 and cannot read the v0 of the response: OutOfBoundsError"
_BATCHES_ONLY = "it reads record batches only: OutOfBoundsError"
_NO_RESET = "OFFSET_OUT_OF_RANGE ends the stream with an error: it has no reset of an offset that is committed"
_NO_OPTIONAL_PACKAGE = (
    "the codec is in an optional package, which the environment of the tests lacks: UnsupportedCodecError ends `poll`"
)
_READ_COMMITTED = "with `read_committed` it needs ListOffsets v2, which 0.10.0 does not offer"
_BOOTSTRAP = (
    "`start()` raises KafkaConnectionError if the first connection to the only bootstrap server ends; a program has to "
    "call it again"
)

_NO_REPEATED_SEND = (
    "the producer repeats no request: the callback of `send` gets each error, and also that of a closed connection "
    "(kafka-node's issue 741)"
)
_STOPS_FETCHING = (
    "after a Fetch that fails it does not fetch again until the group has another generation (`fetch` in "
    "`consumerGroup.js`); its heartbeats go on"
)
_IGNORES_ERRORS = (
    "it ignores the error codes of ListOffsets, and takes the bytes behind an empty array for an offset "
    "(`decodeOffsetResponse` in `protocol.js`)"
)

REASONS: dict[tuple[str, str], str] = {
    ("Java 4.4.0", "oldest-broker"): "clients of Kafka 4 refuse brokers before 2.1 with an error (KIP-896)",
    ("Java 2.8.2", "oldest-broker"): f"{_READ_COMMITTED}: UnsupportedVersionException",
    ("Java 2.8.2", "fetch-null-records"): "`poll` ends with NullPointerException; 4.4.0 takes null for no records",
    ("Java 2.8.2", "produce-response-lost"): f"{_NOT_IDEMPOTENT} before 3.0",
    ("Java 0.11.0.3", "oldest-broker"): f"{_READ_COMMITTED}: UnsupportedVersionException",
    (
        "Java 0.11.0.3",
        "log-truncated",
    ): "it does not know leader epochs (KIP-320): the log is read again from its start",
    (
        "Java 0.11.0.3",
        "fetch-null-records",
    ): "`poll` ends with SchemaException: its layout of Fetch has no null records",
    ("Java 0.11.0.3", "records-zstd"): "it is older than zstd (KIP-110, 2.1): IllegalArgumentException ends `poll`",
    ("Java 0.11.0.3", "produce-response-lost"): f"{_NOT_IDEMPOTENT} before 3.0",
    ("kafka-python", "oldest-broker"): f"{_READ_COMMITTED}: IncompatibleBrokerVersion",
    (
        "kafka-python",
        "unknown-tags",
    ): "it reads nothing more after ApiVersions v4, whose tagged fields have such fields inside them",
    (
        "kafka-python",
        "static-member-replaced",
    ): "after a Heartbeat with FENCED_INSTANCE_ID `poll` returns records until a commit fails with it",
    ("kafka-python", "fetch-null-records"): "`poll` ends with TypeError: object of type 'NoneType' has no len()",
    ("kafka-python", "records-snappy"): _NO_OPTIONAL_PACKAGE,
    ("kafka-python", "records-lz4"): _NO_OPTIONAL_PACKAGE,
    ("kafka-python", "records-zstd"): _NO_OPTIONAL_PACKAGE,
    (
        "aiokafka",
        "oldest-broker",
    ): f"{_READ_COMMITTED}: IncompatibleBrokerVersion ends a task of its own, and the program waits forever",
    ("aiokafka", "log-truncated"): "it does not know leader epochs (KIP-320): the log is read again from its start",
    ("aiokafka", "api-versions-closed"): _BOOTSTRAP,
    ("aiokafka", "metadata-closed"): _BOOTSTRAP,
    ("aiokafka", "metadata-half-response"): _BOOTSTRAP,
    ("aiokafka", "produce-response-lost"): _NOT_IDEMPOTENT,
    (
        "confluent-kafka",
        "offset-after-end",
    ): "after the reset librdkafka commits no offset that is not above the committed one, "
    "so that the group stays at the offset that does not exist",
    (
        "confluent-kafka",
        "offset-fetch-not-coordinator",
    ): "the member never fetches the committed offset again, and reads nothing "
    "until it restarts (librdkafka's issue 5586)",
    ("confluent-kafka", "offset-commit-coordinator-not-available"): _LIVELOCK,
    ("confluent-kafka", "offset-commit-not-coordinator"): _LIVELOCK,
    ("confluent-kafka", "offset-commit-closed"): _LIVELOCK,
    ("confluent-kafka", "produce-response-lost"): _NOT_IDEMPOTENT,
    (
        "sarama",
        "oldest-broker",
    ): "the session ends after ListOffsets v0, and the member joins again, every few milliseconds and "
    "without an error for the program; the program sets no `Config.Version`, whose default is 2.1",
    (
        "sarama",
        "offset-after-end",
    ): "an offset out of range is left to the program, and `MarkMessage` never goes back behind the "
    "committed offset; a program has to call `ResetOffset`",
    (
        "sarama",
        "log-truncated",
    ): f"{_NO_TRUNCATION}; after FENCED_LEADER_EPOCH it goes on at its own offset, with the new epoch",
    ("sarama", "produce-response-lost"): _NOT_IDEMPOTENT,
    (
        "kafka-go",
        "oldest-broker",
    ): "its group members use JoinGroup v1 or v2 only, which 0.10.0 does not offer; the reader tries "
    "again every five seconds",
    ("kafka-go", "coordinator-moved"): _REJOINED,
    ("kafka-go", "commit-during-rebalance"): _REJOINED,
    ("kafka-go", "heartbeat-not-coordinator"): _REJOINED,
    ("kafka-go", "heartbeat-closed"): _REJOINED,
    ("kafka-go", "offset-commit-closed"): _REJOINED,
    ("kafka-go", "offset-commit-response-lost"): _REJOINED,
    ("kafka-go", "records-transactional"): "it returns records of aborted transactions, whatever the isolation level "
    "(kafka-go's issue 1332)",
    (
        "kafka-go",
        "offset-after-end",
    ): "the reader tries again until the log has the offset, by design (`reader.go`); it has no "
    "setting for the reset of an offset that is committed",
    (
        "kafka-go",
        "metadata-unknown-topic-or-partition",
    ): "the leader of the group assigns no partitions, keeps that assignment, and never looks at the topic again",
    ("kafka-go", "log-truncated"): f"{_NO_TRUNCATION}: it goes on at its own offset",
    (
        "kafka-go",
        "empty-batches",
    ): "two batches without records behind each other end the process: `panic: markRead: negative count` (kafka-go's "
    "issues 874 and 1393)",
    ("kafka-go", "produce-response-lost"): _NOT_IDEMPOTENT,
    ("kafkajs", "coordinator-moved"): _AGAIN_AFTER_COMMIT,
    ("kafkajs", "offset-commit-not-coordinator"): _AGAIN_AFTER_COMMIT,
    ("kafkajs", "log-truncated"): f"{_NO_TRUNCATION} (kafkajs's issue 818)",
    ("kafkajs", "records-snappy"): _CODEC_OF_PROGRAM,
    ("kafkajs", "records-lz4"): _CODEC_OF_PROGRAM,
    ("kafkajs", "records-zstd"): _CODEC_OF_PROGRAM,
    (
        "kafkajs",
        "metadata-unknown-topic-or-partition",
    ): "`subscribe` fails at once with this error (`cluster/index.js`); a program has to call it again",
    ("kafkajs", "metadata-closed"): _CONNECTS_ONCE,
    ("kafkajs", "metadata-half-response"): _CONNECTS_ONCE,
    ("kafkajs", "find-coordinator-coordinator-load-in-progress"): _CRASH,
    ("kafkajs", "find-coordinator-closed"): _CRASH,
    ("kafkajs", "sync-group-coordinator-not-available"): _FORGETS_MEMBER,
    ("kafkajs", "sync-group-closed"): _FORGETS_MEMBER,
    ("kafkajs", "sync-group-half-response"): _FORGETS_MEMBER,
    ("kafkajs", "produce-response-lost"): _NOT_IDEMPOTENT,
    (
        "@platformatic/kafka",
        "api-versions-unsupported",
    ): "it has no fall-back of ApiVersions: UNSUPPORTED_VERSION ends the consumer with an error",
    ("@platformatic/kafka", "oldest-broker"): _NEW_BROKERS_ONLY,
    ("@platformatic/kafka", "older-broker"): _NEW_BROKERS_ONLY,
    ("@platformatic/kafka", "unknown-apis"): "it has FindCoordinator from v4 on only: UnsupportedApiError",
    ("@platformatic/kafka", "rebalance"): _REJOINED,
    (
        "@platformatic/kafka",
        "coordinator-moved",
    ): "it looks for the coordinator once, and never again after NOT_COORDINATOR (`#coordinatorId` in `consumer.js`)",
    (
        "@platformatic/kafka",
        "unknown-tags",
    ): "tagged fields that it does not know are read as the next field: OutOfBoundsError",
    (
        "@platformatic/kafka",
        "static-member-replaced",
    ): "FENCED_INSTANCE_ID has no effect: the member goes on reading and writing",
    ("@platformatic/kafka", "log-truncated"): _NO_TRUNCATION,
    (
        "@platformatic/kafka",
        "metadata-no-brokers",
    ): "`TypeError: Cannot read properties of undefined (reading 'host')` ends the program",
    (
        "@platformatic/kafka",
        "records-snappy",
    ): "it decompresses snappy without the framing in which Kafka's clients write it: `RuntimeError: unreachable`",
    ("@platformatic/kafka", "records-zstd"): "it needs zstd of Node.js 22.15, and Node.js 20 ran",
    ("@platformatic/kafka", "records-magic-0"): _BATCHES_ONLY,
    ("@platformatic/kafka", "records-magic-1"): _BATCHES_ONLY,
    (
        "@platformatic/kafka",
        "records-transactional",
    ): "of several aborted transactions of one producer in a response it leaves out the last one only "
    "(`#filterUncommittedMessages` in `consumer.js`)",
    ("@platformatic/kafka", "offset-before-start"): _NO_RESET,
    ("@platformatic/kafka", "offset-after-end"): _NO_RESET,
    ("@platformatic/kafka", "produce-response-lost"): _NOT_IDEMPOTENT,
    ("kafka-node", "newest-broker"): "Kafka 4 does not serve its newest versions, Fetch v2 and Produce v2 among them "
    "(KIP-896); the program waits forever",
    ("kafka-node", "coordinator-moved"): _AGAIN_AFTER_COMMIT,
    ("kafka-node", "leader-moved"): _NO_REPEATED_SEND,
    ("kafka-node", "log-truncated"): _NO_TRUNCATION,
    ("kafka-node", "fetch-no-partitions"): "the decoder counts the topics of a response down to 0 from 1 on only "
    "(`decodeTopics` in `protocol.js`): with none it never ends, and no heartbeat is sent either",
    ("kafka-node", "records-snappy"): "the codec is in an optional package, which the environment of the tests lacks",
    (
        "kafka-node",
        "records-lz4",
    ): "it takes lz4 for no compression (`codec/index.js`): the program gets the compressed "
    "batch as the value of a record",
    ("kafka-node", "records-zstd"): "Fetch v2 gets UNSUPPORTED_COMPRESSION_TYPE (KIP-110), and tries again forever",
    ("kafka-node", "huge-batches"): "Fetch v2 is from before KIP-74: a response has no whole message that is larger "
    "than `fetchMaxBytes` (kafka-node's issue 192)",
    ("kafka-node", "records-transactional"): "Fetch v2 has no isolation level",
    ("kafka-node", "offset-after-end"): "after the reset it drops records as older than it expects: `setOffset` in "
    "`consumerGroup.js` leaves `payloadMap` at the former offset until the next response",
    ("kafka-node", "list-offsets-not-leader-or-follower"): _IGNORES_ERRORS,
    ("kafka-node", "list-offsets-leader-not-available"): _IGNORES_ERRORS,
    ("kafka-node", "produce-not-leader-or-follower"): _NO_REPEATED_SEND,
    ("kafka-node", "produce-not-enough-replicas"): _NO_REPEATED_SEND,
    ("kafka-node", "produce-leader-not-available"): _NO_REPEATED_SEND,
    ("kafka-node", "produce-request-timed-out"): _NO_REPEATED_SEND,
    ("kafka-node", "fetch-closed"): _STOPS_FETCHING,
    ("kafka-node", "produce-closed"): _NO_REPEATED_SEND,
    ("kafka-node", "produce-response-lost"): _NO_REPEATED_SEND,
    ("kafka-node", "fetch-half-response"): _STOPS_FETCHING,
}
"""By client and case."""

_NOT_IN_ITS_GROUP = "GROUP_ID_NOT_FOUND, which only requests of administrators get, instead of UNKNOWN_MEMBER_ID"
_ENDED = "not seen: the process has ended in `unknown-api-key`"
_NO_BASE_OFFSET = "the base offset beside the error is 0 instead of -1"
_OTHER_ERROR = "UNKNOWN_PRODUCER_ID instead of INVALID_PRODUCER_ID_MAPPING"

BROKER_REASONS: dict[tuple[str, str], str] = {
    ("kfake", "api-versions"): "offers other versions than 4.4.0",
    (
        "kfake",
        "offset-commit-unknown-member",
    ): "OffsetCommit v9 and v10 get ILLEGAL_GENERATION instead of GROUP_ID_NOT_FOUND",
    ("kfake", "offset-commit-large-metadata"): "commits metadata of any size",
    ("kfake", "offset-fetch-nothing"): "names no partitions, or responds GROUP_ID_NOT_FOUND, instead of the offset -1",
    ("kfake", "join-unknown-member"): "leaves the member id out of the response",
    ("kfake", "sync-unknown-group"): _NOT_IN_ITS_GROUP,
    ("kfake", "heartbeat-unknown-group"): _NOT_IN_ITS_GROUP,
    ("kfake", "leave-unknown-group"): _NOT_IN_ITS_GROUP,
    ("kfake", "fetch-out-of-range"): "names the offsets of the log instead of -1",
    ("kfake", "create-topics-existing"): "from v5 on the configs are null instead of empty",
    ("kfake", "create-partitions-fewer"): "accepts as many partitions as there are",
    ("kfake", "produce-unknown-topic"): _NO_BASE_OFFSET,
    ("kfake", "produce-corrupt"): _NO_BASE_OFFSET,
    ("kfake", "produce-acks"): _NO_BASE_OFFSET,
    ("kfake", "init-producer-id-timeout"): "the epoch beside the error is 0 instead of -1",
    (
        "kfake",
        "add-partitions-unknown-producer",
    ): "the response to v4 and v5, which brokers send, lacks the transaction",
    (
        "kfake",
        "api-versions-unknown-version",
    ): "closes the connection: a client that begins with a later version never falls back",
    ("kfake", "unknown-api-key"): "ends the process: a nil pointer in `clientConn.read`",
    ("kfake", "unknown-version"): _ENDED,
    ("kfake", "malformed-body"): _ENDED,
    ("kfake", "huge-array"): _ENDED,
    ("kfake", "negative-size"): _ENDED,
    ("kfake", "too-large-size"): _ENDED,
    ("librdkafka", "api-versions"): "offers other versions than 3.9.2, and fewer APIs",
    ("librdkafka", "metadata-unknown-topic"): "from v9 on the response has one byte after its end",
    (
        "librdkafka",
        "metadata-topic",
    ): "a new topic has four partitions (`test.mock` has no setting for it); from v9 on one byte after the end",
    ("librdkafka", "metadata-no-topics"): "from v9 on the response has one byte after its end",
    ("librdkafka", "find-coordinator-unknown-type"): "any key type has a coordinator, instead of INVALID_REQUEST",
    ("librdkafka", "offset-commit-unknown-member"): "commits for a member of a group that does not exist",
    ("librdkafka", "offset-commit-large-metadata"): "commits metadata of any size",
    ("librdkafka", "offset-fetch-nothing"): "the metadata is null instead of empty",
    ("librdkafka", "offset-fetch-committed"): "the leader epoch is 0 instead of -1, with which it was committed",
    ("librdkafka", "join-unknown-member"): "any member id joins",
    ("librdkafka", "join-session-timeout"): "no response: the session of 1 ms expires before it",
    ("librdkafka", "sync-unknown-group"): "GROUP_ID_NOT_FOUND, with an assignment of null, which no version allows",
    ("librdkafka", "heartbeat-unknown-group"): _NOT_IN_ITS_GROUP,
    ("librdkafka", "leave-unknown-group"): f"{_NOT_IN_ITS_GROUP}; v3 and v4 are not in their layout",
    (
        "librdkafka",
        "fetch-empty",
    ): "the aborted transactions are an empty array instead of null; from v13 on UNKNOWN_TOPIC_ID, since "
    "the id of the topic comes with Metadata from v10 on, which cannot be decoded",
    ("librdkafka", "fetch-out-of-range"): "names the offsets of the log instead of -1; from v13 on as `fetch-empty`",
    ("librdkafka", "produce"): "the append time is 1234 instead of -1",
    ("librdkafka", "produce-unknown-topic"): "v5 is not in its layout",
    ("librdkafka", "produce-corrupt"): "stores a batch whose checksum is wrong",
    ("librdkafka", "produce-acks"): "stores what has the acks 2",
    ("librdkafka", "fetch-first-batch"): "the aborted transactions are an empty array instead of null; from v13 on as "
    "`fetch-empty`",
    ("librdkafka", "list-offsets-time"): "finds no record by its time",
    ("librdkafka", "init-producer-id-timeout"): "accepts any timeout",
    ("librdkafka", "add-partitions-unknown-producer"): _OTHER_ERROR,
    ("librdkafka", "add-offsets-unknown-producer"): _OTHER_ERROR,
    ("librdkafka", "end-txn-unknown-producer"): _OTHER_ERROR,
    (
        "librdkafka",
        "api-versions-unknown-version",
    ): "the array of versions has no length, so that the response cannot be decoded",
    ("librdkafka", "negative-size"): "keeps the connection open",
    ("librdkafka", "too-large-size"): "keeps the connection open and waits for the bytes",
}
"""By the first word of the broker's name, and case."""
