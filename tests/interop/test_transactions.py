"""Transactions of a topic whose directory goes from a real broker to kproto and back: both see the same ones.

Method: a real broker has a topic with committed, aborted and open transactions, and is stopped or killed. kproto
starts on its log.dir, in place, and must return the same records, offsets and producers at both isolation levels. It
ends an open transaction, and leaves an aborted and an open one of its own, for the same broker to go on with.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from kproto.records.batches import read_batches
from tests.interop.kproto_process import kproto_on
from tests.interop.real_brokers import real_broker
from tests.oracle.releases import number
from tests.partition_log.conversation import Talk
from tests.partition_log.conversation_chapters import fetch, newest, offsets
from tests.partition_log.conversation_transactions import LEVELS, SEGMENT_MS, describe_producers, mark, send
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.oracle

SETTINGS = {"transaction.partition.verification.enable": "false"}
COMMITTED, ABORTED, OPEN, LATE, OURS, OUR_OPEN = range(101, 107)
"""Producer ids: of transactions by their end, one that kproto ends, and two that kproto begins."""


def talk_to(address: str) -> Talk:
    """Return a talk with a broker that leads the topic."""
    talk = Talk(address)
    talk.topic_ids["t"] = talk._metadata("t").topic_id
    wait_until(lambda: talk._leads("t", 1), "the leader of the topic")
    return talk


def seen(talk: Talk) -> Mapping[str, Any]:
    """Return what a broker says about the topic."""
    found: dict[str, Any] = {}
    for level, name in LEVELS.items():
        read = fetch(talk, "", {"t": {0: 0}}, newest(talk, 1), isolation_level=level).responses[0].partitions[0]
        assert read.error_code == 0, read
        aborted = [(one.producer_id, one.first_offset) for one in read.aborted_transactions or ()]
        batches: Any = read_batches(read.records)
        records = [(one.last_offset, one.is_control) for one in batches]
        found[name] = (read.high_watermark, read.last_stable_offset, aborted, records)
        end = offsets(talk, "", {"t": {0: -1}}, newest(talk, 2), isolation_level=level).topics[0].partitions[0]
        found[f"{name}, end"] = (end.error_code, end.offset)
    response = describe_producers(talk, "", "t")
    if response is not None:
        (partition,) = response.topics[0].partitions
        found["producers"] = {one.producer_id: one for one in partition.active_producers}
    return found


@pytest.mark.parametrize(
    ("release", "broker_end", "kproto_end"),
    [("0.11.0.3", "stopped", "killed"), ("3.9.2", "killed", "stopped"), ("4.4.0", "stopped", "killed")],
)
def test_transactions_of_kproto_and_the_broker_in_one_directory(release: str, broker_end: str, kproto_end: str) -> None:
    settings = SETTINGS if number(release) >= (3, 6) else {}
    with real_broker(release, settings) as theirs:
        talk = Talk(theirs.start())
        talk.create("t", segment_ms=SEGMENT_MS)
        say, end = partial(send, talk, "", "t"), partial(mark, talk, "", "t")
        say(-1, -1, is_transactional=False)
        for producer_id in (COMMITTED, ABORTED, OPEN, LATE):
            say(producer_id, 0, 2)
        end(COMMITTED, commit=True)
        end(ABORTED, commit=False, coordinator_epoch=2)
        before = seen(talk)
        theirs.kill() if broker_end == "killed" else theirs.stop()

        with kproto_on(theirs.log_dir, release, settings, "fsync") as ours:
            talk = talk_to(ours.address)
            assert seen(talk) == before
            say, end = partial(send, talk, "", "t"), partial(mark, talk, "", "t")
            end(LATE, commit=False, epoch=1)
            say(COMMITTED, 2)
            end(COMMITTED, commit=True)
            for producer_id in (OURS, OUR_OPEN):
                say(producer_id, 0, 3)
            end(OURS, commit=False)
            after = seen(talk)
            if kproto_end == "killed":
                ours.kill()
        assert after["committed"][1] == before["committed"][1], "the oldest transaction is still open"

        talk = talk_to(theirs.start())
        assert seen(talk) == after
        say, end = partial(send, talk, "", "t"), partial(mark, talk, "", "t")
        end(OPEN, commit=True)
        say(OUR_OPEN, 3)
        end(OUR_OPEN, commit=False)
        last = seen(talk)
        theirs.kill()
        with kproto_on(theirs.log_dir, release, settings) as ours:
            assert seen(talk_to(ours.address)) == last
        assert last["committed"][1] == last["committed"][0]
