"""Transactions as partitions have them, without a coordinator: markers are written by WriteTxnMarkers.

The broker must have ``transaction.partition.verification.enable=false`` (from 3.6 on): it appends batches of
transactions that no coordinator knows.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kproto.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.compression import Compression
from tests.partition_log.conversation_chapters import T0, batch, delete_records, fetch, newest, offsets, produce

if TYPE_CHECKING:
    from tests.partition_log.conversation import Talk

ONE, TWO, THREE, FOUR = 1001, 1002, 1003, 1004
"""Producer ids."""
PRODUCE_MAX = 11
"""Later versions add the partition to a transaction of the coordinator (KIP-890)."""
SEGMENT_MS = str(2**63 - 1)
"""Records and markers, which have the broker's time, stay in one segment."""
LEVELS = {0: "uncommitted", 1: "committed"}


def send(
    talk: Talk,
    note: str,
    topic: str,
    producer_id: int,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    is_transactional: bool = True,
    **fields: Any,
) -> None:
    """Produce a batch of a producer."""
    encoded = batch(
        count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        flags=TRANSACTIONAL if is_transactional else 0,
        **fields,
    )
    produce(talk, note, topic, encoded, min(PRODUCE_MAX, newest(talk, 0)), transactional_id="id")


def mark(
    talk: Talk,
    note: str,
    topic: str,
    producer_id: int,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    version: int | None = None,
    transaction_version: int = 0,
) -> Any:
    """Write a marker."""
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=(WritableTxnMarkerTopic(name=topic, partition_indexes=(0,)),),
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    version = newest(talk, 27) if version is None else version
    return talk.ask(note, WriteTxnMarkersRequest(markers=(marker,)), version)


def look(
    talk: Talk,
    note: str,
    topic: str,
    *positions: int,
    every_version: bool = False,
    times: tuple[int, ...] = (-1, -2, -3),
) -> None:
    """Ask for records, offsets and producers, at both isolation levels."""
    fetches = talk.every(1, 4) if every_version else [newest(talk, 1)]
    lists = talk.every(2, 2) if every_version else [newest(talk, 2)]
    for level, name in LEVELS.items():
        for version in fetches:
            for position in positions:
                fetch(talk, f"{note}: {name} from {position}", {topic: {0: position}}, version, isolation_level=level)
        for version in lists:
            for timestamp in times:
                about = f"{note}: {name}, time {timestamp}"
                offsets(talk, about, {topic: {0: timestamp}}, version, isolation_level=level)
    describe_producers(talk, f"{note}: producers", topic)


def describe_producers(talk: Talk, note: str, topic: str) -> Any:
    asked = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(0,)),))
    return talk.ask(note, asked, 0)


def isolation(talk: Talk) -> None:
    """BA-75: what consumers read of open, committed and aborted transactions."""
    talk.create("iso", segment_ms=SEGMENT_MS)
    say, end, see = partial(send, talk), partial(mark, talk), partial(look, talk)
    say("outside", "iso", -1, -1, 2, is_transactional=False)
    say("opens", "iso", ONE, 0, 3)
    see("open", "iso", 0, 2, 3, 5, 6, every_version=True)
    say("opens another", "iso", TWO, 0)
    say("outside again", "iso", -1, -1, is_transactional=False, timestamp=T0 + 500)
    fetch(
        talk,
        "waits for stable records",
        {"iso": {0: 2}},
        newest(talk, 1),
        isolation_level=1,
        max_wait_ms=300,
        min_bytes=1,
    )
    fetch(talk, "finds uncommitted ones", {"iso": {0: 2}}, newest(talk, 1), max_wait_ms=300, min_bytes=1)
    end("commits", "iso", ONE, commit=True)
    see("one committed", "iso", 0, 2, 5, 7, 8)
    end("aborts the other", "iso", TWO, commit=False)
    see("the other aborted", "iso", 0, 5, 6, 8, 9, every_version=True)
    say("opens again", "iso", ONE, 3, 2, timestamp=T0 + 1000)
    say("repeated", "iso", ONE, 3, 2, timestamp=T0 + 1000)
    end("aborts", "iso", ONE, commit=False)
    see("two aborted", "iso", 0, 6, 9, 10, 11, 12)
    say("opens a third time", "iso", ONE, 5, timestamp=T0 + 2000)
    for level, name in LEVELS.items():
        for timestamp in (T0 + 500, T0 + 501, T0 + 1000, T0 + 1500, T0 + 2001, int(time.time() * 1000) - 600_000):
            after = f"T0 + {timestamp - T0}" if timestamp < T0 + 10_000 else "ten minutes ago"
            offsets(talk, f"{name}, time {after}", {"iso": {0: timestamp}}, newest(talk, 2), isolation_level=level)
        fetch(talk, f"{name}, small", {"iso": {0: 0}}, newest(talk, 1), isolation_level=level, max_bytes=200)
        opened = fetch(
            talk, f"{name}, session", {"iso": {0: 12}}, newest(talk, 1), isolation_level=level, session=(0, 0)
        )
        session = opened.session_id
        fetch(talk, f"{name}, session, nothing new", {}, newest(talk, 1), isolation_level=level, session=(session, 1))
        end("ends in a session", "iso", ONE, commit=bool(level))
        fetch(talk, f"{name}, session, ended", {}, newest(talk, 1), isolation_level=level, session=(session, 2))
    see("all ended", "iso", 0, 12)
    for old in range(4):
        fetch(talk, "as message sets", {"iso": {0: 0}}, old)
        fetch(talk, "as message sets, from a marker", {"iso": {0: 7}}, old)
    talk.create("compressed", segment_ms=SEGMENT_MS)
    say("compressed, aborted", "compressed", ONE, 0, 40, compression=Compression.GZIP)
    end("aborts", "compressed", ONE, commit=False)
    say("compressed, committed", "compressed", ONE, 40, 40, compression=Compression.GZIP)
    end("commits", "compressed", ONE, commit=True)
    see("compressed", "compressed", 0, 1, 39, 40, 41)


def epochs(talk: Talk) -> None:
    """BA-65: epochs and sequences of producers, and markers that are refused.

    Not asked is which of two markers has the greatest timestamp: they can be of one millisecond.
    """
    talk.create("ep", segment_ms=SEGMENT_MS)
    say, end, see = partial(send, talk), partial(mark, talk), partial(look, talk, times=(-1, -2))
    for version in talk.every(27):
        end("without records", "ep", THREE, commit=True, version=version)
    end("unknown topic", "nowhere", ONE, commit=True)
    say("after a marker, from 5", "ep", THREE, 5)
    say("after a marker, from 0", "ep", THREE, 0)
    say("not transactional within", "ep", THREE, 1, is_transactional=False)
    say("again, not transactional", "ep", THREE, 0, is_transactional=False)
    say("within", "ep", THREE, 1)
    end("lower epoch", "ep", THREE, commit=True, epoch=-1)
    see("open", "ep", 0)
    end("commits", "ep", THREE, commit=True, coordinator_epoch=5)
    end("commits again", "ep", THREE, commit=True, coordinator_epoch=5)
    end("older coordinator", "ep", THREE, commit=True, coordinator_epoch=4)
    say("not transactional", "ep", THREE, 2, is_transactional=False)
    see("two markers", "ep", 0)
    end("older coordinator, higher epoch", "ep", THREE, commit=True, epoch=1, coordinator_epoch=4)
    end("higher epoch", "ep", THREE, commit=False, epoch=2, coordinator_epoch=5)
    see("raised", "ep", 0)
    end("lower epoch than raised", "ep", THREE, commit=False, epoch=1, coordinator_epoch=5)
    end("lower epoch, older coordinator", "ep", THREE, commit=False, epoch=1, coordinator_epoch=3)
    say("epoch 0", "ep", THREE, 3)
    say("epoch 2, from 3", "ep", THREE, 3, epoch=2)
    say("epoch 4, from 3", "ep", THREE, 3, epoch=4)
    say("epoch 2", "ep", THREE, 0, 2, epoch=2)
    say("epoch 2, duplicate", "ep", THREE, 0, 2, epoch=2)
    end("higher epoch, open", "ep", THREE, commit=False, epoch=3, coordinator_epoch=6)
    say("epoch 2 after it", "ep", THREE, 2, epoch=2)
    say("epoch 2 after it, duplicate", "ep", THREE, 0, 2, epoch=2)
    say("epoch 3 after it", "ep", THREE, 0, epoch=3)
    say("epoch 4 within epoch 3", "ep", THREE, 0, epoch=4)
    see("epoch raised within", "ep", 0)
    end("epoch 3, late", "ep", THREE, commit=True, epoch=3, coordinator_epoch=6)
    end("epoch 4", "ep", THREE, commit=True, epoch=4, coordinator_epoch=6)
    see("ended", "ep", 0)
    for transaction_version in (1, 2):
        end(
            f"the same epoch, version {transaction_version}",
            "ep",
            THREE,
            commit=True,
            epoch=4,
            coordinator_epoch=6,
            transaction_version=transaction_version,
        )
        end(
            f"an unknown producer, version {transaction_version}",
            "ep",
            2000 + transaction_version,
            commit=True,
            epoch=0,
            transaction_version=transaction_version,
        )
    say("opens", "ep", THREE, 1, epoch=4)
    end("the same epoch, version 2", "ep", THREE, commit=True, epoch=4, coordinator_epoch=6, transaction_version=2)
    end("the next epoch, version 2", "ep", THREE, commit=True, epoch=5, coordinator_epoch=6, transaction_version=2)
    end(
        "the next epoch again, version 2", "ep", THREE, commit=True, epoch=5, coordinator_epoch=6, transaction_version=2
    )
    say("no producer id", "ep", -1, -1)
    say("unknown, from 9", "ep", FOUR, 9)
    see("all", "ep", 0)
    end("commits", "ep", FOUR, commit=True)


def configs(talk: Talk) -> None:
    """Markers in topics whose configs change batches."""
    for name, given in (
        ("tgzip", {"compression_type": "gzip"}),
        ("tappend", {"message_timestamp_type": "LogAppendTime"}),
        ("tcompact", {"cleanup_policy": "compact"}),
        ("tsmall", {"max_message_bytes": "100"}),
    ):
        talk.create(name, 1, segment_ms=SEGMENT_MS, **given)
        for commit in (True, False):
            sequence = 0 if commit else 1
            send(talk, "opens", name, ONE, sequence)
            mark(talk, "ends", name, ONE, commit=commit)
        look(talk, name, name, 0, times=(-1, -2))


def deleting(talk: Talk) -> None:
    """DeleteRecords within transactions."""
    talk.create("tdel", segment_ms=SEGMENT_MS)
    say, end, see = partial(send, talk), partial(mark, talk), partial(look, talk)
    delete = partial(delete_records, talk, topic="tdel", version=newest(talk, 21))
    say("opens", "tdel", ONE, 0, 4)
    say("outside", "tdel", -1, -1, 2, is_transactional=False)
    delete(note="within the transaction", offset=2)
    see("begins within", "tdel", 2, 4, 6)
    delete(note="behind its records", offset=5)
    see("begins behind", "tdel", 5, 6)
    delete(note="all", offset=-1)
    see("all deleted", "tdel", 6)
    say("further", "tdel", ONE, 4)
    see("further", "tdel", 6, 7)
    end("aborts", "tdel", ONE, commit=False)
    see("aborted", "tdel", 6, 7, 8)
    delete(note="all but the marker", offset=7)
    see("marker left", "tdel", 7, 8)
    delete(note="the marker", offset=8)
    see("nothing left", "tdel", 8)


CHAPTERS = (isolation, epochs, configs, deleting)
