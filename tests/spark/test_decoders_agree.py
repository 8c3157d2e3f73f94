"""The fast decoder equals the plain one: on random logs of every kind, on each damage, and on any window of a log.

Both get the same blocks; of a damaged log both have to raise the same error, by name, place and text.
"""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.records.checksum import crc32c
from kproto.records.record_batch import CHECKED_FROM
from kproto.spark.decode import errors, fast, plain, record_table
from kproto.spark.decode.blocks import Block, SegmentBlocks
from kproto.spark.decode.octets import Suspect
from kproto.spark.decode.tables import Decoded, Job, View
from kproto.spark.decode.transactions import Outcomes
from tests.spark.made_logs import KINDS, Made, make_log

SEEDS = st.integers(0, 2**32)
VIEWS = st.sampled_from(list(View))


def blocks_of(data: bytes, base_offset: int = 0, *, is_newest: bool = True) -> list[Block]:
    return list(SegmentBlocks(io.BytesIO(data), "log", base_offset=base_offset, is_newest=is_newest))


def job(data: bytes, view: View = View.COMMITS, base: int = 0, start: int = 0, end: int | None = None) -> Job:
    outcomes = Outcomes(iter(blocks_of(data, base)))
    return Job(view=view, log_partition=4, outcomes=outcomes, start_offset=start, end_offset=end)


def both(data: bytes, base: int = 0, view: View = View.COMMITS, start: int = 0, end: int | None = None) -> Decoded:
    """Decode with both, and return what they agree on.

    Raises:
        Damaged: both say so.
    """
    results: list[Decoded | errors.Damaged] = []
    for decode in (fast.decode_block, plain.decode_block):
        try:
            (block,) = blocks_of(data, base)
            results.append(decode(block, job(data, view, base, start, end)))
        except errors.Damaged as error:
            results.append(error)
    ours, theirs = results
    if isinstance(theirs, errors.Damaged):
        assert (type(ours), str(ours)) == (type(theirs), str(theirs))
        raise theirs
    assert isinstance(ours, Decoded)
    assert ours.counts == theirs.counts
    if theirs.rows is None:
        assert ours.rows is None
    else:
        assert ours.rows is not None
        assert ours.rows.equals(theirs.rows), difference(ours, theirs)
    return theirs


def difference(ours: Decoded, theirs: Decoded) -> str:
    assert ours.rows is not None
    assert theirs.rows is not None
    pairs = zip(ours.rows.to_pylist(), theirs.rows.to_pylist(), strict=True)
    return "\n".join(f"{a}\n{b}" for a, b in pairs if a != b)[:2000]


def base_of(made: Made) -> int:
    """A base offset from which all of the log's are within a segment."""
    return max(0, made.next_offset - 2**31 + 1)


@settings(max_examples=150)
@given(seed=SEEDS, view=VIEWS, batches=st.integers(1, 12) | st.integers(30, 60))
def test_random_logs_decode_alike(seed: int, view: View, batches: int) -> None:
    made = make_log(seed, batches, 40)
    assert both(made.data, base_of(made), view).counts.records == made.records


def test_the_batches_are_enough_to_be_walked_side_by_side() -> None:
    assert record_table.SIDE_BY_SIDE_MIN < 30


@pytest.mark.parametrize("records", [1, 2, 127, 128, 1000, 10_000])
def test_batches_of_any_size_decode_alike(records: int) -> None:
    made = make_log(records, 3, records, ("plain", "transaction", "compressed"))
    assert both(made.data, base_of(made)).counts.records == made.records


@settings(max_examples=60)
@given(seed=SEEDS, view=VIEWS)
def test_what_brokers_write_needs_no_help_of_the_plain_decoder(seed: int, view: View) -> None:
    """Else the fast one would be slow and nobody would notice. Compressed message sets are left to the plain one."""
    made = make_log(seed, 8, 30, tuple(kind for kind in KINDS if kind != "wrapper"))
    (block,) = blocks_of(made.data, base_of(made))
    assert fast.decode_usual(block, job(made.data, view, base_of(made))).counts.records == made.records


@settings(max_examples=60)
@given(seed=SEEDS, ends=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_any_window_has_the_rows_between_its_offsets(seed: int, ends: tuple[float, float]) -> None:
    made = make_log(seed, 8, 30)
    whole = both(made.data, base_of(made)).rows
    assert whole is not None
    offsets = whole["log_offset"].to_pylist() or [0]
    start, end = (offsets[int(share * (len(offsets) - 1))] for share in sorted(ends))
    found = both(made.data, base_of(made), start=start, end=end).rows
    assert found is not None
    expected = [row for row in whole.to_pylist() if start <= row["log_offset"] < end]
    assert found.to_pylist() == expected


@settings(max_examples=300)
@given(seed=SEEDS, where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), mended=st.booleans())
def test_a_flipped_bit_is_judged_alike(seed: int, where: float, bit: int, mended: bool) -> None:
    """With the checksum as it was, and with one that is right again, so that the content has to be judged."""
    made = make_log(seed, 4 if seed % 2 else 40, 12, ("plain", "transaction", "append time", "message set"))
    data = bytearray(made.data)
    place = int(where * len(data))
    data[place] ^= 1 << bit
    damaged = mend(bytes(data), made.starts) if mended else bytes(data)
    judgement = judged(damaged, base_of(made))
    assert (
        judgement in (errors.BadChecksum, errors.BadSize, errors.Truncated, errors.UnknownMagic)
        or mended
        or (
            judgement in (None, errors.BadOffset, errors.BadBatch)  # what no checksum covers
        )
    )


def judged(data: bytes, base_offset: int) -> type[errors.Damaged] | None:
    """Return the damage that both see; None: none, or it changed how the log is cut into blocks."""
    try:
        if len(blocks_of(data, base_offset)) == 1:
            both(data, base_offset)
    except errors.Damaged as error:
        return type(error)
    return None


def mend(data: bytes, starts: list[int]) -> bytes:
    """Return the log with the right checksums for batches of magic 2."""
    mended = bytearray(data)
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        if data[start + 16] == 2:
            mended[start + 17 : start + 21] = crc32c(bytes(data[start + CHECKED_FROM : end])).to_bytes(4, "big")
    return bytes(mended)


@settings(max_examples=100)
@given(seed=SEEDS)
def test_random_octets_under_a_right_checksum_are_judged_alike(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    made = make_log(seed, 2, 6, ("plain",))
    start = chance.choice(made.starts)
    end = min(position for position in (*made.starts[1:], len(made.data)) if position > start)
    data = bytearray(made.data)
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(start + 61, end)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    expected = (None, errors.BadRecords, errors.BadKey, errors.BadValue, errors.BadOffset)
    assert judged(mend(bytes(data), made.starts), base_of(made)) in expected


def test_a_suspicion_never_leaves_the_fast_decoder() -> None:
    made = make_log(5, 6, 10, ("wrapper",))
    (block,) = blocks_of(made.data, base_of(made))
    with pytest.raises(Suspect):
        fast.decode_usual(block, job(made.data, base=base_of(made)))
    assert fast.decode_block(block, job(made.data, base=base_of(made))).counts.records == made.records
