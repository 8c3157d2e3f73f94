"""Why a client does not pass a case: found by hand in its requests and in its source, with its own issue, if any."""

from __future__ import annotations

_NOT_IDEMPOTENT = "the producer is not idempotent by default"
_LIVELOCK = (
    "the repeated commit fails with a transport error while the new connection to the coordinator is made, which marks "
    "the coordinator dead again; this goes on for 15 to 30 s or more. Whether it begins is a matter of time: on 24 "
    "November the same version passed"
)
_REJOINED = "the member joins again with the last committed offset while a record that is written is not committed yet"

REASONS: dict[tuple[str, str], str] = {
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
    ("kafka-go", "produce-response-lost"): _NOT_IDEMPOTENT,
}
"""By client and case."""

_NOT_IN_ITS_GROUP = "GROUP_ID_NOT_FOUND, which only requests of administrators get, instead of UNKNOWN_MEMBER_ID"
_ENDED = "not seen: the process has ended in `unknown-api-key`"

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
    (
        "librdkafka",
        "api-versions-unknown-version",
    ): "the array of versions has no length, so that the response cannot be decoded",
    ("librdkafka", "negative-size"): "keeps the connection open",
    ("librdkafka", "too-large-size"): "keeps the connection open and waits for the bytes",
}
"""By the first word of the broker's name, and case."""
