"""What KIP-333 says of one partition, rule by rule, on the state machine and on what is stored of it.

`test_parallel_model.py` has the histories; here are the places where a rule could be broken by one record.
"""

from __future__ import annotations

import json

import pytest

from kproto.client.configuration import read
from kproto.client.core.catch_up import CatchUp, Commit, EndCatchUp, PauseHead, Phase, ResumeHead
from kproto.client.core.checkpoints import Checkpoint, Key, of_topic
from kproto.client.core.ranges import OPEN, Range, plan
from kproto.client.core.reset import Log
from tests.kproto_client.parallel_model import Produced


def machine(position: int = 70, end: int = 120, known: dict[int, Range] | None = None) -> CatchUp[Produced]:
    """At the proposal's example, with what earlier crashes have left."""
    planned = plan(position=position, log=Log(start=0, end=end), known=known or {}, merge=known is None)
    return CatchUp(planned, limit_bytes=5)


def records(start: int, end: int) -> list[Produced]:
    return [Produced(offset) for offset in range(start, end)]


def offsets(taken: list[Produced]) -> list[int]:
    return [record.offset() for record in taken]


def test_one_reading_goes_through_all_ranges_one_after_the_other() -> None:
    """CK-55, CK-80: of three ranges one is read at a time; the others wait."""
    catch_up = machine(10, 40, {0: Range(10, 20), 1: Range(20, 30), 2: Range(30, OPEN)})
    assert list(catch_up.ranges) == [Range(10, 20), Range(20, 30), Range(30, 40)]
    catch_up.catch_up_read(records(10, 25))
    assert catch_up.read == 25
    assert offsets(catch_up.take(12)) == list(range(10, 22))
    assert list(catch_up.ranges) == [Range(22, 30), Range(30, 40)]


@pytest.mark.parametrize("last_record", [69, 99, 119])
def test_the_end_is_told_by_the_position_and_not_by_a_record(last_record: int) -> None:
    """CK-61: what is missing at the end of the range (markers, compacted records) does not hang it."""
    catch_up = machine()
    catch_up.catch_up_read(records(70, last_record + 1))
    catch_up.take(100)
    if last_record < 119:
        assert catch_up.settle() == []
        assert catch_up.phase is Phase.CATCHING_UP
        catch_up.catch_up_is_at(120)
    assert catch_up.settle() == [Commit(120), EndCatchUp()]
    assert catch_up.phase is Phase.NORMAL


def test_the_position_alone_is_not_the_end() -> None:
    """CK-61, CK-60: it has read all, but the user has not got all."""
    catch_up = machine()
    catch_up.catch_up_read(records(70, 120))
    catch_up.head_read(records(120, 122))
    assert catch_up.has_read_all
    assert catch_up.settle() == []
    assert offsets(catch_up.take(100)) == list(range(70, 120))
    assert offsets(catch_up.take(100)) == []
    catch_up.settle()
    assert offsets(catch_up.take(100)) == [120, 121]


@pytest.mark.parametrize("fetched_to", [121, 130])
def test_what_the_catch_up_fetched_of_the_head_is_dropped(fetched_to: int) -> None:
    """CK-66: a batch that crosses the border; the head has those records itself."""
    catch_up = machine()
    catch_up.catch_up_read(records(70, fetched_to))
    assert catch_up.has_read_all
    assert offsets(catch_up.take(1000)) == list(range(70, 120))
    catch_up.head_read(records(120, 130))
    catch_up.settle()
    assert offsets(catch_up.take(1000)) == list(range(120, 130))


def test_all_that_waits_is_handed_out_over_as_many_polls_as_it_takes() -> None:
    """CK-62: then the partition is normal, and nothing is kept."""
    catch_up = machine(119, 120)
    catch_up.catch_up_read(records(119, 120))
    catch_up.head_read(records(120, 124))
    catch_up.take(1)
    found = []
    catch_up.settle()
    while catch_up.ready:
        found.append(offsets(catch_up.take(3)))
        catch_up.settle()
    assert found == [[120, 121, 122], [123]]
    assert catch_up.phase is Phase.NORMAL
    assert (catch_up.ready, catch_up.ahead_bytes) == (0, 0)


def test_a_full_buffer_pauses_the_head_until_half_of_it_is_free() -> None:
    """CK-65, I5."""
    catch_up = machine(119, 120)
    assert catch_up.head_read(records(120, 124)) == []
    assert catch_up.head_read(records(124, 130)) == [PauseHead()]
    with pytest.raises(AssertionError, match="I5"):
        catch_up.head_read(records(130, 131))
    catch_up.catch_up_read(records(119, 120))
    catch_up.take(1)
    assert catch_up.settle() == [Commit(120), EndCatchUp()]
    catch_up.take(7)
    assert catch_up.settle() == [], "3 of 5 bytes still wait"
    catch_up.take(1)
    assert catch_up.settle() == [ResumeHead()]


def test_a_log_that_goes_back_is_refused() -> None:
    """CK-63, I1: no fetcher may hand in what is behind it."""
    catch_up = machine()
    catch_up.catch_up_read(records(70, 80))
    with pytest.raises(AssertionError):
        catch_up.catch_up_read(records(79, 81))
    with pytest.raises(AssertionError):
        catch_up.head_read(records(119, 121))


def test_checkpoints_say_what_the_seed_asks_for() -> None:
    """CK-71: group, topic, partition and range; start, end (-1: open), position and time."""
    key = Key("billing", "orders", 3, 1)
    assert json.loads(key.encode()) == [1, "billing", "orders", 3, 1]
    assert Key.decode(key.encode()) == key
    checkpoint = Checkpoint(range=Range(120, OPEN), position=133, time_ms=5, topic_id="abc")
    written = {"start": 120, "end": -1, "position": 133, "t": 5, "topic_id": "abc"}
    assert json.loads(checkpoint.encode()) == written
    assert Checkpoint.decode(checkpoint.encode()) == checkpoint


@pytest.mark.parametrize("data", [None, b"", b"{", b"7", b"[2,1]", b'{"start":1}', b"\xff"])
def test_what_others_wrote_into_the_topic_is_nobodys(data: bytes | None) -> None:
    """CK-71: keys and values of another kind, or of a later version, are passed over."""
    assert Key.decode(data) is None
    assert Checkpoint.decode(data) is None


def test_ranges_of_another_topic_of_that_name_are_dropped() -> None:
    """CK-87: by the topic's id, where brokers have one."""
    stored = {
        number: Checkpoint(range=Range(0, 5), position=0, time_ms=0, topic_id=topic_id)
        for number, topic_id in enumerate(["old", "new", None])
    }
    assert of_topic(stored, "new").keys() == {1, 2}
    assert of_topic(stored, None).keys() == {0, 1, 2}


def test_stale_ranges_are_clipped_and_empty_ones_go() -> None:
    """CK-85, CK-83: by the committed offset; the union with the head's covers all from there on."""
    known = {0: Range(10, 40), 1: Range(40, 60), 2: Range(60, 80), 3: Range(80, OPEN)}
    planned = plan(position=50, log=Log(start=0, end=90), known=known, merge=False)
    assert planned.ranges == (Range(50, 60), Range(60, 80), Range(80, 90))
    planned = plan(position=85, log=Log(start=0, end=90), known=known, merge=False)
    assert (planned.ranges, planned.drop) == ((Range(85, 90),), (2, 3))


def test_the_past_is_fetched_as_the_user_fetches() -> None:
    """CK-92: same fetch settings; `bench/client.py` has the floor of its speed."""
    fetch = {"fetch.min.bytes": 7, "max.partition.fetch.bytes": 900, "queued.max.messages.kbytes": 5000}
    config = read({"group.id": "g", "enable.parallel.rebalance": True, **fetch}).for_catch_up()
    assert {name: config[name] for name in fetch} == fetch


def test_the_second_consumer_is_no_member() -> None:
    """CK-54: it has nothing of a member, and never commits."""
    of_members = {"group.instance.id": "one", "partition.assignment.strategy": "range", "group.protocol": "classic"}
    config = read({"group.id": "g", "enable.parallel.rebalance": True, **of_members}).for_catch_up()
    assert not config.keys() & of_members.keys()
    assert (config["enable.auto.commit"], config["enable.auto.offset.store"]) == (False, False)
