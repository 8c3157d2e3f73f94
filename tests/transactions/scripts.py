"""The requests of transactional producers, script by script: each runs against real brokers, and against kproto as
those releases.

The brokers abort transactions within a second of their timeout; a topic "t" has two partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kproto.messages.k65_describe_transactions import DescribeTransactionsRequest
from kproto.messages.k66_list_transactions import ListTransactionsRequest
from tests.transactions.producers import Producers

Script = Callable[[Producers], None]

SCRIPTS: dict[str, Script] = {}

KNOWN_IDS = 3
"""The first version of InitProducerId with producer id and epoch."""

MINUTE_MS = 60_000
MARKER_MS = 500
"""Until the markers of a transaction are in the log."""


def script(run: Script) -> Script:
    SCRIPTS[run.__name__] = run
    return run


@script
def ids_that_are_wrong(producers: Producers) -> None:
    producers.init(None)
    producers.init("")
    producers.init(timeout_ms=0)
    producers.init(timeout_ms=-1)
    producers.init(timeout_ms=900_001)
    producers.init(timeout_ms=900_000)
    if producers.version(22) >= KNOWN_IDS:
        producers.init("b", pid=5)
        producers.init("b", epoch=5)
        producers.init("b", pid=5, epoch=5)
        producers.init(None, pid=5)
        producers.init(None, pid=5, epoch=5)
        producers.init("", pid=5)


@script
def a_producer_starts_again(producers: Producers) -> None:
    for _ in range(3):
        producers.init()
    if producers.version(22) < KNOWN_IDS:
        return
    pid, epoch = producers.ids["a"]
    producers.bump()
    producers.bump(pid=pid, epoch=epoch)
    producers.bump(pid=pid, epoch=epoch - 1)
    producers.bump(pid=pid, epoch=epoch + 5)
    producers.bump(pid=pid + 1_000_000)
    producers.bump()
    producers.init()
    producers.bump(pid=pid, epoch=epoch)


@script
def partitions_are_added(producers: Producers) -> None:
    producers.add()
    producers.add("")
    producers.init()
    pid, epoch = producers.ids["a"]
    producers.add(pid=pid + 1_000_000)
    producers.add(pid=-1)
    producers.add(epoch=epoch + 1)
    producers.add(epoch=epoch - 1)
    producers.add(topics={"t": (0, 9), "nowhere": (0,)})
    producers.add(topics={})
    producers.end()
    producers.add(topics={"t": (0, 1)})
    producers.add(topics={"t": (0,)})
    producers.add(topics={"t": (1,), "__consumer_offsets": (0,)})
    producers.init("b")
    producers.add("b", pid=pid)
    producers.end()


@script
def transactions_end(producers: Producers) -> None:
    producers.end()
    producers.end("")
    producers.init()
    pid, epoch = producers.ids["a"]
    for commit in (True, False):
        producers.end(commit=commit)
    for commit in (True, False):
        producers.add()
        pid, epoch = producers.ids["a"]
        producers.end(pid=pid + 1_000_000)
        if producers.kafka_version.at_least(2, 8):
            # Up to 2.5 brokers go on returning CONCURRENT_TRANSACTIONS after these.
            producers.end(epoch=epoch + 1)
            producers.end(epoch=epoch - 1)
        producers.end(commit=commit, epoch=epoch)
        producers.end(commit=commit, epoch=epoch)
        producers.end(commit=not commit, epoch=epoch)
        producers.end(commit=commit)
        producers.end(commit=not commit)


@script
def empty_transactions_end(producers: Producers) -> None:
    producers.init()
    for commit in (False, False, True, True):
        producers.end(commit=commit)
    producers.add()
    producers.end(commit=False)
    producers.end(commit=False)
    producers.add()
    producers.end()


@script
def a_second_instance_fences_the_first(producers: Producers) -> None:
    producers.init()
    producers.add()
    pid, epoch = producers.ids["a"]
    producers.init(waits=False)
    producers.add(pid=pid, epoch=epoch, waits=False)
    producers.init()
    producers.add(pid=pid, epoch=epoch)
    producers.add_offsets(pid=pid, epoch=epoch)
    producers.commit_offsets(pid=pid, epoch=epoch)
    producers.end(pid=pid, epoch=epoch)
    producers.end(pid=pid, epoch=epoch, commit=False)
    if producers.version(22) >= KNOWN_IDS:
        producers.bump(pid=pid, epoch=epoch)
    producers.add()
    producers.end()


@script
def a_producer_starts_again_after_an_error(producers: Producers) -> None:
    if producers.version(22) < KNOWN_IDS:
        return
    producers.init()
    producers.add()
    producers.bump()
    producers.add()
    producers.end()
    producers.bump()
    producers.end(commit=False)
    producers.bump()


@script
def a_transaction_times_out(producers: Producers) -> None:
    producers.init(timeout_ms=500)
    producers.add()
    pid, epoch = producers.ids["a"]
    producers.pass_time(2500)
    producers.add(waits=False)
    producers.end()
    producers.end(commit=False)
    producers.add_offsets()
    if producers.version(22) >= KNOWN_IDS:
        producers.bump()
    producers.init(timeout_ms=500)
    producers.pass_time(2500)
    producers.add()
    producers.end()
    producers.end("a", pid=pid, epoch=epoch)


@script
def offsets_are_added(producers: Producers) -> None:
    producers.find_coordinator()
    producers.add_offsets()
    producers.init()
    pid, epoch = producers.ids["a"]
    producers.add_offsets(pid=pid + 1_000_000)
    producers.add_offsets(epoch=epoch + 1)
    producers.add_offsets(epoch=epoch - 1)
    producers.add_offsets(group="")
    producers.add_offsets()
    producers.commit_offsets(offsets={"t": {0: 5, 9: 5}, "nowhere": {0: 1}})
    producers.commit_offsets(metadata="m" * 5000)
    producers.commit_offsets(metadata=None)
    producers.commit_offsets(group="")
    producers.commit_offsets()
    producers.fetch_both_offsets()
    producers.end(commit=False)
    producers.pass_time(300)
    producers.fetch_both_offsets()


@script
def offsets_of_wrong_producers(producers: Producers) -> None:
    producers.find_coordinator()
    producers.init()
    producers.init()
    producers.add_offsets()
    pid, epoch = producers.ids["a"]
    producers.commit_offsets(pid=pid + 1_000_000)
    producers.commit_offsets(epoch=epoch + 1)
    producers.commit_offsets(epoch=epoch - 1)
    producers.commit_offsets("b", pid=pid, epoch=epoch)
    producers.commit_offsets("", pid=pid, epoch=epoch)


@script
def offsets_become_visible(producers: Producers) -> None:
    producers.find_coordinator()
    producers.init()
    producers.fetch_offsets()
    for offset in (5, 6):
        producers.add_offsets()
        producers.commit_offsets(offsets={"t": {0: offset}})
        producers.commit_offsets(offsets={"t": {1: 10 * offset}})
        producers.fetch_both_offsets()
        producers.end()
        producers.pass_time(300)
        producers.fetch_offsets(stable=True)
    producers.commit_offsets(offsets={"t": {0: 99}})
    producers.fetch_offsets(stable=True)
    producers.end(commit=False)
    producers.pass_time(300)
    producers.fetch_offsets(stable=True)


@script
def a_plain_commit_wins(producers: Producers) -> None:
    producers.find_coordinator()
    producers.init()
    producers.add_offsets()
    producers.commit_offsets(offsets={"t": {0: 5, 1: 5}})
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=70, committed_metadata="plain")
    producers.send(
        OffsetCommitRequest(
            group_id=f"{producers.name}-g", topics=(OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
        ),
        2,
    )
    producers.fetch_offsets()
    producers.end()
    producers.pass_time(300)
    producers.fetch_offsets(stable=True)


@script
def a_producer_of_version_2(producers: Producers) -> None:
    if producers.version(26) < 5:
        return
    producers.find_coordinator()
    producers.init(timeout_ms=500)
    producers.commit_offsets()
    producers.pass_time(2500)
    producers.commit_offsets()
    producers.end()
    producers.end(commit=False)
    producers.commit_offsets()
    producers.bump()
    producers.commit_offsets()
    producers.init(waits=False)
    producers.init()
    epoch = producers.ids["a"][1]
    producers.commit_offsets()
    producers.commit_offsets(epoch=epoch - 1)
    producers.end()
    producers.end(epoch=epoch, commit=False)


@script
def old_producers_end_transactions(producers: Producers) -> None:
    """With each epoch and state: before a transaction, during one, and after it."""
    producers.find_coordinator()
    producers.init()
    producers.init()
    first = producers.ids["a"][1]
    for commit in (True, False):
        producers.end(epoch=first - 1, commit=commit)
    producers.commit_offsets()
    producers.add_offsets()
    for commit in (True, False):
        producers.end(epoch=first - 1, commit=commit)
    producers.end()
    producers.pass_time(300)
    for epoch in (first - 1, first):
        for commit in (True, False):
            producers.end(epoch=epoch, commit=commit)


@script
def offsets_of_members(producers: Producers) -> None:
    if producers.version(28) < 3:
        return
    producers.find_coordinator()
    producers.init()
    producers.add_offsets()
    producers.commit_offsets(generation_id_or_member_epoch=1)
    producers.commit_offsets(generation_id_or_member_epoch=1, member_id="m")
    producers.commit_offsets(member_id="m")
    producers.commit_offsets(group_instance_id="i")
    producers.commit_offsets()
    producers.end()


@script
def several_producers_in_one_request(producers: Producers) -> None:
    high = producers.kafka_version.api_versions[24][1]
    for version in range(4, high + 1):
        producers.init("a")
        producers.init("b")
        producers.add_batch(("a", {"t": (0,)}, True), ("b", {"t": (0, 1)}, False), version=version)
        producers.add_batch(("a", {"t": (0,)}, False), ("b", {"t": (0, 1)}, True), version=version)
        producers.add_batch(("c", {"t": (0,)}, False), version=version)
        producers.add_batch(("a", {"t": (0,), "nowhere": (0,)}, False), version=version)
        producers.add_batch(("a", {"t": (0,), "nowhere": (0,)}, True), version=version)
        producers.end("a")
        producers.end("b", commit=False)
        producers.add_batch(("a", {"t": (0,)}, True), version=version)


@script
def transactions_are_described(producers: Producers) -> None:
    if not producers.serves(65):
        return

    def describe(*names: str) -> None:
        producers.send(DescribeTransactionsRequest(transactional_ids=tuple(f"{producers.name}-{one}" for one in names)))

    describe("a")
    producers.send(DescribeTransactionsRequest(transactional_ids=("",)))
    producers.init()
    describe("a", "b")
    producers.add(topics={"t": (1, 0)})
    describe("a", "a")
    producers.end()
    producers.pass_time(200)
    describe("a")
    producers.add()
    producers.end(commit=False)
    producers.pass_time(200)
    describe("a")


@script
def transactions_are_listed(producers: Producers) -> None:
    if not producers.serves(66):
        return
    high = producers.kafka_version.api_versions[66][1]

    def listed(version: int, **filters: object) -> None:
        given: Any = {"state_filters": (), "producer_id_filters": ()} | filters
        response = producers.send(ListTransactionsRequest(**given), version)
        own = tuple(one for one in response.transaction_states if one.transactional_id.startswith(f"{producers.name}-"))
        producers.steps[-1] = producers.steps[-1]._replace(
            responses={"A": [producers._as_json(response.replace(transaction_states=own))]}
        )

    producers.init("a")
    producers.init("b")
    producers.add("b")
    producers.init("c")
    producers.add("c")
    producers.end("c")
    producers.pass_time(1200)
    listed(0)
    listed(0, state_filters=("Ongoing",))
    listed(0, state_filters=("Ongoing", "ongoing", "Nonsense"))
    listed(0, state_filters=("Nonsense",))
    listed(0, producer_id_filters=(producers.ids["a"][0], 99))
    listed(0, state_filters=("Ongoing",), producer_id_filters=(producers.ids["a"][0],))
    if high >= 1:
        listed(1, duration_filter=1000)
        listed(1, duration_filter=100_000)
        listed(1, duration_filter=0)
    if high >= 2:
        listed(2, transactional_id_pattern=".*-a")
        listed(2, transactional_id_pattern="")
        listed(2, transactional_id_pattern="a")
        listed(2, transactional_id_pattern="(")
    producers.end("b")


@script
def markers_from_a_client(producers: Producers) -> None:
    low, high = producers.kafka_version.api_versions[27]
    producers.init()
    producers.add()
    pid, epoch = producers.ids["a"]

    def marker(
        version: int, topics: dict[str, tuple[int, ...]], coordinator_epoch: int, of: int = pid, at: int = epoch
    ) -> None:
        producers.send(
            WriteTxnMarkersRequest(
                markers=(
                    WritableTxnMarker(
                        producer_id=of,
                        producer_epoch=at,
                        transaction_result=False,
                        topics=tuple(
                            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                            for name, indexes in topics.items()
                        ),
                        coordinator_epoch=coordinator_epoch,
                    ),
                )
            ),
            version,
        )

    for version in range(low, high + 1):
        marker(version, {"t": (0,)}, 0)
        marker(version, {"t": (0, 9), "nowhere": (0,)}, 0)
        marker(version, {"t": (0,)}, 5)
        marker(version, {"t": (0,)}, 4)
        marker(version, {"t": (1,)}, 0, 987_654, 0)
    producers.end(commit=False)


@script
def sequences_after_a_verification_that_failed(producers: Producers) -> None:
    if not producers.kafka_version.at_least(3, 6):
        return
    producers.init()
    producers.produce(5)
    producers.add()
    producers.produce(7)
    producers.produce(6, is_transactional=False)
    producers.produce(5, 2)
    producers.produce(7)
    producers.end()
    producers.pass_time(MARKER_MS)
    producers.produce(9)
    producers.produce(8)
    producers.add()
    producers.produce(9)
    producers.produce(8)
    producers.end()
    producers.pass_time(MARKER_MS)
    producers.init()
    producers.produce(3)
    producers.add()
    producers.produce(3)
    producers.produce(0)
    producers.end(commit=False)
    producers.pass_time(MARKER_MS)
    producers.produce(4)
    producers.init()
    producers.add()
    producers.produce(2)
    producers.produce(0, 3)
    producers.end()
