"""Hypothesis strategies for records, and the batches of LF-6."""

from hypothesis import strategies as st

from kproto.records.record import Record, RecordHeader

NOW = 1700000000000
INT64_SAFE = st.integers(0, 2**62)
NULLABLE_BYTES = st.none() | st.binary(max_size=200)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
HEADERS = st.lists(st.builds(RecordHeader, NAMES, NULLABLE_BYTES), max_size=3).map(tuple)


@st.composite
def rising_records(draw: st.DrawFn, *, headers: bool = True, timestamps: bool = True, least: int = 0) -> list[Record]:
    """Draw records with rising offsets and gaps, as in compacted batches."""
    count = draw(st.integers(least, 6))
    gaps = draw(st.lists(st.integers(1, 1000), min_size=count, max_size=count))
    offset = draw(INT64_SAFE)
    records = []
    for gap in gaps:
        records.append(
            Record(
                key=draw(NULLABLE_BYTES),
                value=draw(NULLABLE_BYTES),
                headers=draw(HEADERS) if headers else (),
                timestamp=draw(INT64_SAFE) if timestamps else -1,
                offset=offset,
            )
        )
        offset += gap
    return records


COMMIT_BATCH = bytes.fromhex(
    "00000000000000000000005f00000000025c677be20000000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff"
    "000000015a0000001c0001000267310002743100000000320003000000000000002a0000000500016d0000018bcfe5680000"
)
TOMBSTONE_BATCH = bytes.fromhex(
    "0000000000000001000000460000000002375b29170000000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff"
    "00000001280000001c00010002673100027431000000000100"
)
COMMIT_MARKER = bytes.fromhex(
    "0000000000000002000000420000000002b4213bcb0030000000000000018bcfe568000000018bcfe568000000000000000fa00003ffffffff"
    "000000012000000008000000010c00000000000000"
)
COMMIT_KEY = bytes.fromhex("0001000267310002743100000000")
COMMIT_VALUE = bytes.fromhex("0003000000000000002a0000000500016d0000018bcfe56800")
