"""The fast decoder and the reference decoder agree on random logs of every kind, on damage, and on any window of a log.

Both get the same blocks. For a damaged log, both raise an error of the same class, position and text.
"""

from __future__ import annotations

import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.arrow import fast, record_table, reference
from kproto.arrow.buffer import UnusualBlock
from kproto.arrow.decoding import Decoded, DecodeRequest, View
from kproto.logs import errors
from kproto.logs.blocks import Block, SegmentBlocks
from kproto.logs.transactions import TransactionOutcomes
from kproto.records.batch_header import CHECKED_FROM
from kproto.records.checksum import crc32c
from tests.arrow.made_logs import KINDS, Made, make_log

SEEDS = st.integers(0, 2**32)
VIEWS = st.sampled_from(list(View))


def blocks_of(data: bytes, base_offset: int = 0, *, is_newest: bool = True) -> list[Block]:
    return list(SegmentBlocks(io.BytesIO(data), "log", base_offset=base_offset, is_newest=is_newest))


def request_for(
    data: bytes,
    view: View = View.COMMITS,
    base: int = 0,
    start: int = 0,
    end: int | None = None,
    *,
    only_last: bool = False,
) -> DecodeRequest:
    return DecodeRequest(
        view=view,
        log_partition=4,
        outcomes=TransactionOutcomes(lambda offset: blocks_of(data, base)),
        start_offset=start,
        end_offset=end,
        only_last=only_last,
    )


def both(
    data: bytes,
    base: int = 0,
    view: View = View.COMMITS,
    start: int = 0,
    end: int | None = None,
    *,
    only_last: bool = False,
) -> Decoded:
    """Decode with both decoders; return their common result.

    Raises:
        errors.Damage: both raised it.
    """
    results: list[Decoded | errors.Damage] = []
    for decode in (fast.decode_block, reference.decode_block):
        try:
            (block,) = blocks_of(data, base)
            results.append(decode(block, request_for(data, view, base, start, end, only_last=only_last)))
        except errors.Damage as error:
            results.append(error)
    ours, theirs = results
    if isinstance(theirs, errors.Damage):
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


def check_last(found: Decoded, whole: Decoded) -> None:
    """Check that the rows are the last ones of each key and state of a whole decoding, which has the same counts."""
    assert whole.rows is not None
    assert found.rows is not None
    last = {(row["group_id"], row["topic"], row["partition"], row["txn_state"]): row for row in whole.rows.to_pylist()}
    assert found.rows.to_pylist() == sorted(last.values(), key=lambda row: row["log_offset"])
    assert found.counts == whole.counts


def difference(ours: Decoded, theirs: Decoded) -> str:
    assert ours.rows is not None
    assert theirs.rows is not None
    pairs = zip(ours.rows.to_pylist(), theirs.rows.to_pylist(), strict=True)
    return "\n".join(f"{a}\n{b}" for a, b in pairs if a != b)[:2000]


def base_of(made: Made) -> int:
    """Return a base offset of a segment that can hold all offsets of the log."""
    return max(0, made.next_offset - 2**31 + 1)


@settings(max_examples=150)
@given(seed=SEEDS, view=VIEWS, batches=st.integers(1, 12) | st.integers(30, 60))
def test_the_decoders_agree_on_random_logs(seed: int, view: View, batches: int) -> None:
    made = make_log(seed, batches, 40)
    assert both(made.data, base_of(made), view).counts.records == made.records


def test_random_logs_have_enough_batches_for_the_numpy_walk() -> None:
    assert record_table.SIDE_BY_SIDE_MIN < 30


@pytest.mark.parametrize("records", [1, 2, 127, 128, 1000, 10_000])
def test_the_decoders_agree_on_batches_of_any_size(records: int) -> None:
    made = make_log(records, 3, records, ("plain", "transaction", "compressed"))
    assert both(made.data, base_of(made)).counts.records == made.records


@settings(max_examples=60)
@given(seed=SEEDS, view=VIEWS)
def test_the_fast_decoder_handles_all_content_that_brokers_write(seed: int, view: View) -> None:
    """A fallback would be slow without any other sign. Compressed message sets do go to the reference decoder."""
    made = make_log(seed, 8, 30, tuple(kind for kind in KINDS if kind != "wrapper"))
    (block,) = blocks_of(made.data, base_of(made))
    assert fast.decode_usual(block, request_for(made.data, view, base_of(made))).counts.records == made.records


@settings(max_examples=60)
@given(seed=SEEDS, ends=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_window_has_the_rows_between_its_offsets(seed: int, ends: tuple[float, float]) -> None:
    made = make_log(seed, 8, 30)
    whole = both(made.data, base_of(made)).rows
    assert whole is not None
    offsets = whole["log_offset"].to_pylist() or [0]
    start, end = (offsets[int(share * (len(offsets) - 1))] for share in sorted(ends))
    found = both(made.data, base_of(made), start=start, end=end).rows
    assert found is not None
    expected = [row for row in whole.to_pylist() if start <= row["log_offset"] < end]
    assert found.to_pylist() == expected


@settings(max_examples=150)
@given(seed=SEEDS, batches=st.integers(1, 12) | st.integers(30, 60))
def test_the_last_commits_are_the_last_of_each_key_and_state(seed: int, batches: int) -> None:
    """LF-31, LF-32: what replaces a commit depends on its transaction. All records are counted all the same."""
    made = make_log(seed, batches, 40)
    whole = both(made.data, base_of(made))
    found = both(made.data, base_of(made), only_last=True)
    check_last(found, whole)


@settings(max_examples=300)
@given(
    seed=SEEDS,
    where=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
    fix_crc=st.booleans(),
    only_last=st.booleans(),
)
def test_the_decoders_agree_on_a_flipped_bit(seed: int, where: float, bit: int, fix_crc: bool, only_last: bool) -> None:
    """Once with the old checksum, and once with a corrected one, so that the content is decoded."""
    made = make_log(seed, 4 if seed % 2 else 40, 12, ("plain", "transaction", "append time", "message set"))
    data = bytearray(made.data)
    data[int(where * len(data))] ^= 1 << bit
    damaged = with_right_crc(bytes(data), made.starts) if fix_crc else bytes(data)
    kind = common_damage(damaged, base_of(made), only_last=only_last)
    assert (
        kind in (errors.BadChecksum, errors.BadSize, errors.Truncated, errors.UnknownMagic)
        or fix_crc
        or (
            kind in (None, errors.BadOffset, errors.BadBatch)  # the fields that no checksum covers
        )
    )


def common_damage(data: bytes, base_offset: int, *, only_last: bool = False) -> type[errors.Damage] | None:
    """Return the class of the error that both raise; None: no error, or the damage changed the number of blocks."""
    try:
        if len(blocks_of(data, base_offset)) == 1:
            both(data, base_offset, only_last=only_last)
    except errors.Damage as error:
        return type(error)
    return None


def with_right_crc(data: bytes, starts: list[int]) -> bytes:
    """Return the log with correct checksums in batches of magic 2."""
    fixed = bytearray(data)
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        if data[start + 16] == 2:
            fixed[start + 17 : start + 21] = crc32c(bytes(data[start + CHECKED_FROM : end])).to_bytes(4, "big")
    return bytes(fixed)


@settings(max_examples=100)
@given(seed=SEEDS)
def test_the_decoders_agree_on_random_bytes_with_a_right_checksum(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    made = make_log(seed, 2, 6, ("plain",))
    start = chance.choice(made.starts)
    end = min(position for position in (*made.starts[1:], len(made.data)) if position > start)
    data = bytearray(made.data)
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(start + 61, end)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    expected = (None, errors.BadRecords, errors.BadKey, errors.BadValue, errors.BadOffset)
    assert common_damage(with_right_crc(bytes(data), made.starts), base_of(made)) in expected


def test_an_unusual_block_goes_to_the_reference_decoder() -> None:
    made = make_log(5, 6, 10, ("wrapper",))
    (block,) = blocks_of(made.data, base_of(made))
    with pytest.raises(UnusualBlock):
        fast.decode_usual(block, request_for(made.data, base=base_of(made)))
    assert fast.decode_block(block, request_for(made.data, base=base_of(made))).counts.records == made.records
