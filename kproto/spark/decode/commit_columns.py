"""Keys and values of offset commits as columns (LF-11, LF-12): read at once, strings cut out of the buffer by Arrow.

All strings of all commits stand in the buffer in rising order. One Arrow array whose offsets point at their begins and
ends needs no copy; taking every eighth of its elements gives one column each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from kproto.spark.decode.octets import Octets, Suspect, expect
from kproto.spark.decode.tables import MOMENT_MAX, MOMENT_MIN, TXN_STATES
from kproto.spark.schemas import COMMITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kproto.spark.decode.octets import Flags, Ints
    from kproto.spark.decode.record_table import RecordTable

EXPIRING, WITH_EPOCH, FLEXIBLE = 1, 3, 4
"""Versions of the value: with a time of expiry, from which on with a leader epoch, in compact forms with tags."""
ONE_TOPIC_ID = bytes((1, 0, 16))
"""A section of tags before its content: one field, tag 0, 16 octets."""
UUID_SIZE = 16
OLD_KEY_MAX_VERSION = 4
SPANS = 4
"""Group, topic, metadata, topic id."""


class Spans(NamedTuple):
    """Where some octets begin and end."""

    begin: Ints
    end: Ints


class Keys(NamedTuple):
    group: Spans
    topic: Spans
    partition: Ints


class Values(NamedTuple):
    """Of tombstones, numbers are undefined, and spans are empty."""

    version: Ints
    offset: Ints
    leader_epoch: Ints
    metadata: Spans
    commit_ms: Ints
    expire_ms: Ints
    topic_id: Spans
    """Empty: the value has none."""


def read_keys(records: RecordTable) -> Keys:
    """Read group, topic and partition.

    Raises:
        Suspect: not the layout of a key of offsets.
    """
    octets, end = records.octets, records.key + records.key_size
    group = _short_string(octets, records.key + 2)
    topic = _short_string(octets, group.end)
    partition = octets.int32(octets.within(topic.end))
    expect(topic.end + 4 == end)
    return Keys(group, topic, partition)


def _short_string(octets: Octets, place: Ints) -> Spans:
    """Read where a string behind its int16 size stands."""
    size = octets.int16(octets.within(place))
    expect(size >= 0)
    return Spans(place + 2, place + 2 + size)


def read_values(records: RecordTable) -> Values:
    """Read the values.

    Raises:
        Suspect: not their layout, or with tags that are not known.
    """
    octets, alive = records.octets, records.value_size >= 0
    places = np.where(alive, records.value, octets.limit)  # padding, all zeros: a value of version 0 without text
    end = places + records.value_size
    version = octets.int16(places)
    expect((version >= 0) & (version <= OLD_KEY_MAX_VERSION))
    offset = octets.int64(octets.within(places + 2))
    has_epoch = version >= WITH_EPOCH
    leader_epoch = np.where(has_epoch, octets.int32(octets.within(places + 10)), -1)
    metadata = _metadata(octets, places + np.where(has_epoch, 14, 10), version == FLEXIBLE)
    commit_ms = octets.int64(octets.within(metadata.end))
    behind = metadata.end + 8
    expires = version == EXPIRING
    expire_ms = np.where(expires, octets.int64(octets.within(behind)), -1)
    behind = behind + 8 * expires
    topic_id, behind = _topic_id(octets, behind, version == FLEXIBLE)
    expect((behind == end) | ~alive)
    return Values(version, offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id)


def _metadata(octets: Octets, place: Ints, flexible: Flags) -> Spans:
    if not flexible.any():
        return _short_string(octets, place)
    begin, end = np.empty_like(place), np.empty_like(place)
    for flags, is_compact in ((flexible, True), (~flexible, False)):
        if is_compact:
            size, start = octets.uvarint(octets.within(place[flags]))
            expect(size >= 1)
            begin[flags], end[flags] = start, start + size - 1
        elif flags.any():
            begin[flags], end[flags] = _short_string(octets, place[flags])
    return Spans(begin, end)


def _topic_id(octets: Octets, place: Ints, flexible: Flags) -> tuple[Spans, Ints]:
    """Read the tags of flexible values; return ``(topic ids, places behind)``."""
    count = octets.uint8(octets.within(place))
    tagged = flexible & (count != 0)
    begin = place + flexible  # behind the count of no tags
    if not tagged.any():
        return Spans(begin, begin), begin
    for index, octet in enumerate(ONE_TOPIC_ID):
        expect(octets.uint8(octets.within(place[tagged] + index)) == octet)
    begin = np.where(tagged, place + len(ONE_TOPIC_ID), begin)
    end = begin + UUID_SIZE * tagged
    is_zero = tagged & (octets.int64(octets.within(begin)) == 0) & (octets.int64(octets.within(begin + 8)) == 0)
    return Spans(begin, np.where(is_zero, begin, end)), end


def to_arrow(
    records: RecordTable, keys: Keys, values: Values, log_partition: int | None, producer: Ints, state: Ints
) -> pa.RecordBatch:
    """Return the rows; ``producer`` is -1 outside of transactions, ``state`` a place in `TXN_STATES`.

    Raises:
        Suspect: a string is not UTF-8.
    """
    dead = records.value_size < 0
    group, topic, metadata, topic_id = _strings(records.octets, keys, values, dead)
    partition = pa.scalar(log_partition, pa.int32())
    columns = [
        pa.repeat(partition, len(dead)),
        pa.array(records.offset),
        moments(records.timestamp, None),
        group,
        topic,
        pa.array(keys.partition, pa.int32()),
        pa.array(dead),
        unless(dead, values.version, pa.int16()),
        unless(dead, values.offset, pa.int64()),
        unless(dead | (values.leader_epoch == -1), values.leader_epoch, pa.int32()),
        topic_id,
        metadata,
        moments(values.commit_ms, dead),
        moments(values.expire_ms, dead),
        unless(producer == -1, producer, pa.int64()),
        _states(state),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=COMMITS.arrow())


def _states(state: Ints) -> pa.Array:
    if not state.any():
        return pa.repeat(TXN_STATES[0], len(state))
    return pa.array(TXN_STATES).take(pa.array(state))


def _strings(octets: Octets, keys: Keys, values: Values, dead: Flags) -> tuple[pa.Array, ...]:
    count = len(dead)
    nowhere = keys.topic.end
    bounds = np.empty((count, 2 * SPANS), np.int32)
    for index, (begin, end) in enumerate((keys.group, keys.topic)):
        bounds[:, 2 * index], bounds[:, 2 * index + 1] = begin, end
    for index, (begin, end) in enumerate((values.metadata, values.topic_id), 2):
        bounds[:, 2 * index], bounds[:, 2 * index + 1] = np.where(dead, nowhere, begin), np.where(dead, nowhere, end)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(octets.data)]
    pieces = pa.Array.from_buffers(pa.binary(), max(0, bounds.size - 1), buffers)
    firsts = np.arange(0, bounds.size, 2 * SPANS)
    without_id = bounds[:, 6] == bounds[:, 7]
    try:
        return (
            pieces.take(pa.array(firsts)).cast(pa.string()),
            pieces.take(pa.array(firsts + 2)).cast(pa.string()),
            pieces.take(pa.array(firsts + 4, mask=dead)).cast(pa.string()),
            pieces.take(pa.array(firsts + 6, mask=without_id)),
        )
    except pa.ArrowInvalid:
        raise Suspect from None


def unless(absent: Flags, column: Ints, kind: pa.DataType) -> pa.Array:
    """Return a column that is null where ``absent``."""
    return pa.array(column.astype(kind.to_pandas_dtype()), kind, mask=absent if absent.any() else None)


def moments(moment_ms: Ints, absent: Flags | None) -> pa.Array:
    """Return milliseconds as timestamps; null for -1, and where ``absent``."""
    missing: NDArray[np.bool_] = moment_ms == -1
    if absent is not None:
        missing = missing | absent
    micros = np.clip(moment_ms, MOMENT_MIN, MOMENT_MAX) * 1000
    return unless(missing, micros, pa.int64()).view(pa.timestamp("us", tz="UTC"))
