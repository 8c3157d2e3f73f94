"""The cases for a client under test: what the broker does once while the client works, and the reference of each.

The client does the same work in every case: it reads records of one topic in a group, writes each to another topic, and
commits. A case adds fault rules to it, or an older broker. The client is expected to lose no record, to write none
twice, and to go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kproto_server.broker.producing import CompressionName
    from kproto_server.faults.rule import FaultRule

T = TypeVar("T")
Action: TypeAlias = Literal[
    "rebalance",
    "commit-during-rebalance",
    "expire-member",
    "move-coordinator",
    "move-leader",
    "truncate",
    "replace-member",
]
Batches: TypeAlias = Literal["huge", "empty"]
FirstOffsets: TypeAlias = Literal["before-start", "after-end"]

TIMES = 2
"""How many requests get an error. A single error would not show whether a client retries more than once."""
THROTTLE_MS = 500
DELAY_MS = 1000
MERGED_MS = 1500
"""Longer than the heartbeat interval of the programs."""
EMPTY_TIMES = 5
HUGE_BATCH_KIB = 1500
"""1 MiB is `max.partition.fetch.bytes` of most clients."""
HALF_RESPONSE_BYTES = 9
"""The size, the correlation id and one byte more."""

RETRIABLE = "Kafka protocol guide, error codes: {} is retriable"
REPEATABLE = "Kafka protocol guide, error codes: {} asks the member to rejoin"


class ClientCase(NamedTuple):
    """What happens to a client under test."""

    name: str
    """As ``--only`` takes it."""
    text: str
    """What the broker does, in a sentence."""
    reference: str
    """The document that says what a client should do then."""
    faults: tuple[FaultRule, ...] = ()
    kafka_version: str = "latest"
    """The release that the broker behaves as."""
    action: Action | None = None
    """What happens in the broker when the client has copied the first records."""
    brokers: int = 1
    compression: CompressionName = "none"
    """Of the records that the client reads."""
    is_transactional: bool = False
    """Whether the client reads records of committed transactions, between those of aborted ones."""
    first_offsets: FirstOffsets | None = None
    """The offsets that the group has committed before the client starts, none of which is in the log."""
    named_error: tuple[str | None, str] | None = None
    """An API (None: any) and an error that its responses have by the nature of the case; otherwise the client does not
    offer it."""
    batches: Batches | None = None
    """What the input topic has beside batches of one record: batches of all records of a partition that are larger than
    a Fetch asks for, or batches without records."""


_FLEXIBLE = {
    "ApiVersions": "3-",
    "Metadata": "9-",
    "FindCoordinator": "3-",
    "JoinGroup": "6-",
    "SyncGroup": "4-",
    "Heartbeat": "4-",
    "OffsetFetch": "6-",
    "OffsetCommit": "8-",
    "ListOffsets": "6-",
    "Fetch": "12-",
    "Produce": "9-",
}
"""The flexible versions (KIP-482) of the APIs of a consumer's and a producer's day."""

_BASIC = (
    ClientCase("no-fault", "The broker does nothing wrong.", "the time of all other cases is compared with this one's"),
    ClientCase(
        "api-versions-unsupported",
        "The first ApiVersions requests get UNSUPPORTED_VERSION, in a response of version 0.",
        "KIP-511: the client sends ApiVersions again, in a version that the response names",
        ({"api": "ApiVersions", "versions": "1-", "error": "UNSUPPORTED_VERSION", "times": TIMES},),
    ),
    ClientCase(
        "oldest-broker",
        "The broker is Kafka 0.10.0: Fetch and Produce v2, no transactions, no idempotence.",
        "KIP-35: the client uses versions that the broker names",
        kafka_version="0.10.0",
    ),
    ClientCase(
        "older-broker",
        "The broker is Kafka 2.0.",
        "KIP-35: the client uses versions that the broker names",
        kafka_version="2.0",
    ),
    ClientCase(
        "newest-broker",
        "The broker is Kafka 4.4, without the versions that KIP-896 removed.",
        "KIP-896: the client's versions are served by Kafka 4",
        kafka_version="4.4",
    ),
    ClientCase(
        "unknown-apis",
        "ApiVersions does not list FindCoordinator beyond v2, Fetch beyond v4 and Produce beyond v3.",
        "KIP-35: the client uses versions that the broker names",
        ({"api": "ApiVersions", "max_versions": {"FindCoordinator": 2, "Fetch": 4, "Produce": 3}},),
    ),
    ClientCase(
        "split-responses",
        "Each response to one of the first hundred requests comes in pieces of one byte.",
        "Kafka protocol guide, network: a response has a size, and TCP may split it anywhere",
        ({"chunk_bytes": 1, "chunk_interval_ms": 0, "times": 100},),
    ),
    ClientCase(
        "throttled-fetch",
        f"Three Fetch responses have a throttle time of {THROTTLE_MS} ms, and the broker reads nothing meanwhile.",
        "KIP-219: the client waits for the throttle time",
        ({"api": "Fetch", "throttle_ms": THROTTLE_MS, "times": 3},),
    ),
    ClientCase(
        "throttled-produce",
        f"The first two Produce responses have a throttle time of {THROTTLE_MS} ms, and the broker reads nothing "
        "meanwhile.",
        "KIP-219: the client waits for the throttle time",
        ({"api": "Produce", "throttle_ms": THROTTLE_MS, "times": 2},),
    ),
    ClientCase(
        "rebalance",
        "The coordinator begins a rebalance while the member works.",
        "KIP-62: a member rejoins within a heartbeat, and goes on",
        action="rebalance",
    ),
    ClientCase(
        "member-expired",
        "The session of the member expires while it works: UNKNOWN_MEMBER_ID.",
        "KIP-62: a member that the group does not know joins again, and goes on",
        action="expire-member",
    ),
    ClientCase(
        "coordinator-moved",
        "Another broker becomes the coordinator of the group while the member works, and loads for a second.",
        RETRIABLE.format("NOT_COORDINATOR, as COORDINATOR_LOAD_IN_PROGRESS,"),
        action="move-coordinator",
        brokers=3,
    ),
    ClientCase(
        "leader-moved",
        "Another broker becomes the leader of both partitions of the input and of the output.",
        RETRIABLE.format("NOT_LEADER_OR_FOLLOWER"),
        action="move-leader",
        brokers=3,
    ),
    ClientCase(
        "slow-responses",
        f"The first twenty responses come {DELAY_MS // 4} ms late.",
        "request.timeout.ms: a response within it is no failure",
        ({"delay_ms": DELAY_MS // 4, "times": 20},),
    ),
    ClientCase(
        "commit-during-rebalance",
        f"A rebalance begins while the coordinator has an OffsetCommit, which it handles {DELAY_MS} ms later.",
        "Kafka protocol guide, error codes: ILLEGAL_GENERATION and REBALANCE_IN_PROGRESS ask the member to rejoin",
        ({"api": "OffsetCommit", "delay_ms": DELAY_MS, "times": 1},),
        action="commit-during-rebalance",
    ),
    ClientCase(
        "member-id-required",
        "The coordinator gives a member its id with MEMBER_ID_REQUIRED, and the member joins with it.",
        "KIP-394: the member sends JoinGroup again, with the id of the response",
        named_error=("JoinGroup", "MEMBER_ID_REQUIRED"),
    ),
    ClientCase(
        "unknown-tags",
        "Each struct of each flexible response has a tagged field that no release of Kafka has.",
        "KIP-482: a client ignores tagged fields that it does not know",
        tuple({"api": api, "versions": versions, "unknown_tags": True} for api, versions in _FLEXIBLE.items()),
    ),
    ClientCase(
        "merged-responses",
        f"The first {TIMES} OffsetCommit responses come {MERGED_MS} ms late, in one packet with those to the requests "
        "behind them.",
        "Kafka protocol guide, network: a response has a size, and TCP may merge it with the next one",
        ({"api": "OffsetCommit", "delay_ms": MERGED_MS, "when": "after", "times": TIMES},),
    ),
    ClientCase(
        "static-member-replaced",
        "A second process of the client joins with the same group.instance.id: FENCED_INSTANCE_ID for the first.",
        "KIP-345: the member that is fenced ends with an error, and the new one goes on",
        action="replace-member",
        named_error=(None, "FENCED_INSTANCE_ID"),
    ),
    ClientCase(
        "log-truncated",
        "An unclean leader election truncates records that the client has read, and others take their offsets.",
        "KIP-320, KIP-595: the client finds the offset at which its log and the leader's diverge, and goes on there",
        action="truncate",
    ),
)

_ARRAYS = (
    ClientCase(
        "metadata-no-brokers",
        f"The first {TIMES} Metadata responses list no brokers.",
        "Kafka protocol guide: an array may be empty; the client asks again",
        ({"api": "Metadata", "empty": "brokers", "times": TIMES},),
    ),
    ClientCase(
        "metadata-no-in-sync-replicas",
        "The partitions of all Metadata responses have a leader and no in-sync replicas.",
        "KIP-966: the in-sync replicas may be none",
        ({"api": "Metadata", "empty": "isr_nodes"},),
    ),
    ClientCase(
        "fetch-no-partitions",
        f"The first {EMPTY_TIMES} Fetch responses have no topics.",
        "KIP-227: a partition without news may be left out of a response",
        ({"api": "Fetch", "empty": "responses", "times": EMPTY_TIMES},),
    ),
    ClientCase(
        "fetch-null-records",
        f"The records of the first {EMPTY_TIMES} Fetch responses are null.",
        "Kafka protocol guide, Fetch response: the records are nullable; the client fetches again",
        ({"api": "Fetch", "null": "records", "times": EMPTY_TIMES},),
    ),
    ClientCase(
        "fetch-null-aborted-transactions",
        "The aborted transactions of all Fetch responses are null.",
        "Kafka protocol guide, Fetch response: aborted_transactions is nullable",
        ({"api": "Fetch", "versions": "4-", "null": "aborted_transactions"},),
    ),
)
"""Arrays without elements, and nulls."""

_CODECS: tuple[tuple[CompressionName, str], ...] = (
    ("gzip", "record batch, attributes: compression 1"),
    ("snappy", "record batch, attributes: compression 2"),
    ("lz4", "record batch, attributes: compression 3; KIP-57"),
    ("zstd", "KIP-110: compression 4, from Fetch v10 on"),
)
_MAGICS: tuple[tuple[int, str], ...] = (
    (0, "message set, magic 0: brokers keep records of clients before 0.10"),
    (1, "KIP-32: message set, magic 1; brokers keep records of clients before 0.11"),
)
_RECORDS = (
    *(
        ClientCase(
            f"records-{codec}",
            f"The batches of the input topic are compressed with {codec}.",
            reference,
            compression=codec,
        )
        for codec, reference in _CODECS
    ),
    *(
        ClientCase(
            f"records-magic-{magic}",
            f"The records have the message format version {magic}, in every version of Fetch.",
            reference,
            ({"api": "Fetch", "magic": magic},),
        )
        for magic, reference in _MAGICS
    ),
    ClientCase(
        "huge-batches",
        f"All records of a partition are in one batch of {HUGE_BATCH_KIB} KiB, more than clients fetch of a partition.",
        "KIP-74: a response has the first batch even if it is larger than the limits of the request",
        batches="huge",
    ),
    ClientCase(
        "empty-batches",
        "A batch without records is before, between and after those of each partition, as compaction leaves it.",
        "KIP-98, record batch: a batch may have no records; the client goes on behind its last offset",
        batches="empty",
    ),
    ClientCase(
        "records-transactional",
        "Each half of the records is a committed transaction, which ends with a control batch, between aborted ones.",
        "KIP-98: a consumer with isolation.level=read_committed returns no records of aborted transactions and no "
        "control records",
        is_transactional=True,
    ),
    ClientCase(
        "offset-before-start",
        "The committed offset of each partition is before the first record of the log: OFFSET_OUT_OF_RANGE.",
        "auto.offset.reset=earliest: the consumer goes on at the start of the log",
        first_offsets="before-start",
        named_error=("Fetch", "OFFSET_OUT_OF_RANGE"),
    ),
    ClientCase(
        "offset-after-end",
        "The committed offset of each partition is after the end of the log: OFFSET_OUT_OF_RANGE.",
        "auto.offset.reset=earliest: the consumer goes on at the start of the log",
        first_offsets="after-end",
        named_error=("Fetch", "OFFSET_OUT_OF_RANGE"),
    ),
)
"""What the client reads."""

_EPOCHS = (("ListOffsets", "4-"), ("Fetch", "9-"))
"""The APIs whose requests name a leader epoch, and the versions."""

_RETRIED = {
    "Metadata": ("LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
    "JoinGroup": ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
    "SyncGroup": ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
    "Heartbeat": ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
    "OffsetFetch": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
    "OffsetCommit": ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
    "ListOffsets": ("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE"),
    "Fetch": ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR"),
    "Produce": ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "LEADER_NOT_AVAILABLE", "REQUEST_TIMED_OUT"),
    "InitProducerId": ("COORDINATOR_LOAD_IN_PROGRESS",),
}
"""The retriable errors of each API in a consumer's and a producer's day."""

_REJOINED = {"JoinGroup": ("UNKNOWN_MEMBER_ID",), "SyncGroup": ("REBALANCE_IN_PROGRESS",)}
"""Errors after which a member joins again. Those that would leave a member behind in the group, which a real broker has
removed by then, are cases with an action."""

_CLOSED = (
    "ApiVersions",
    "Metadata",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "OffsetFetch",
    "OffsetCommit",
    "ListOffsets",
    "Fetch",
    "Produce",
)


def _errors() -> Iterator[ClientCase]:
    for apis, reference, what in (
        (_RETRIED, RETRIABLE, "The first {} {} requests get {}."),
        (_REJOINED, REPEATABLE, ""),
    ):
        for api, names in apis.items():
            for name in names:
                rule: FaultRule = {"api": api, "error": name, "times": TIMES if what else 1}
                text = what.format(TIMES, api, name) if what else f"One {api} request gets {name}."
                yield ClientCase(f"{_kebab(api)}-{_kebab_error(name)}", text, reference.format(name), (rule,))


def _epochs() -> Iterator[ClientCase]:
    for api, versions in _EPOCHS:
        for name in ("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"):
            yield ClientCase(
                f"{_kebab(api)}-{_kebab_error(name)}",
                f"The first {TIMES} {api} requests in versions that name a leader epoch get {name}.",
                f"KIP-320: the client asks for metadata again; {RETRIABLE.format(name)}",
                ({"api": api, "versions": versions, "error": name, "times": TIMES},),
            )


def _connections() -> Iterator[ClientCase]:
    reference = "Kafka protocol guide, network: a client connects again after its connection has ended"
    for api in _CLOSED:
        yield ClientCase(
            f"{_kebab(api)}-closed",
            f"The connection of the first {api} request is closed instead of a response.",
            reference,
            ({"api": api, "close": True, "times": 1},),
        )
    for api in ("OffsetCommit", "Produce"):
        yield ClientCase(
            f"{_kebab(api)}-response-lost",
            f"The first {api} request takes effect, and the connection is closed instead of a response.",
            "KIP-98: an idempotent producer does not write records twice"
            if api == "Produce"
            else "Kafka protocol guide: a commit may be repeated",
            ({"api": api, "close": True, "when": "after", "times": 1},),
        )
    for api in ("Fetch", "SyncGroup", "Metadata"):
        yield ClientCase(
            f"{_kebab(api)}-half-response",
            f"The connection ends after {HALF_RESPONSE_BYTES} bytes of the first {api} response.",
            reference,
            ({"api": api, "truncate_bytes": HALF_RESPONSE_BYTES, "times": 1},),
        )


def _kebab(api: str) -> str:
    """Return ``offset-commit`` for ``OffsetCommit``."""
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in api).lstrip("-")


def _kebab_error(name: str) -> str:
    return name.lower().replace("_", "-")


NO_FAULT = _BASIC[0]
CASES: dict[str, ClientCase] = {
    case.name: case for case in (*_BASIC, *_ARRAYS, *_RECORDS, *_errors(), *_epochs(), *_connections())
}
"""By name."""


def chosen(names: Sequence[str], cases: Mapping[str, T]) -> list[T]:
    """Return the cases of these names, or of all that begin with one of them; of no names: all cases, given by name.

    Raises:
        KeyError: no case has a name, or begins with it.
    """
    found: set[str] = set()
    for name in names:
        matching = {each for each in cases if each == name or each.startswith(f"{name}-")}
        if not matching:
            raise KeyError(name)
        found |= matching
    return [case for name, case in cases.items() if name in found or not names]
