"""Fast path of loading: of commits that come again and again, only the newest is decoded (D13).

Theory of operation. A consumer commits the same partitions over and over, and only the last of these commits counts. A
`RepeatedCommit` is an entry for the commits of certain partitions by a certain group; it keeps the newest batch of
them, as one large integer. A batch that differs from it only where commits of the same partitions may differ (the
template's ``identity_mask``) replaces it, without a look at its records: one XOR and one AND of integers.

Entries are found in two steps:

1. by prefix: the record count of the batch and the key of its first record, which are at fixed positions. Commits with
   the same prefix may be of different partitions, so the prefix has a list of alternatives;
2. by the masks of the alternatives' templates, which alone decide.

A new entry needs a `BatchTemplate`. Templates depend on sizes only, so that most groups share a few of them, and they
outlive the load of one partition. A template is made from the second batch with the same size and beginning: the first
may be the only one, and a template costs more than one replay.

The entries of a group are applied ("flushed") when something else changes the group's offsets, at the end, or when they
take too much memory; in the order of their newest batches. That order is enough: between two batches of an entry there
may be batches of other entries of the same group, but the last write of each key is in the newest batch of some entry,
and this batch is applied after all older ones.

Everything else is for the reference implementation, `replay`: damaged batches, other records, unknown templates, and
groups with offsets of an open transaction, for which the position of each record counts.

Earns 5 microseconds for each record of a commit that is repeated (`kproto_server.coordinator.loading`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.batch_header import CHECKED_FROM, HEADER_SIZE, LOG_OVERHEAD, MAGIC, header_struct, position_of
from kproto.records.checksum import crc32c
from kproto_server.coordinator.loading.batch_templates import BatchTemplate, read_template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto_server.coordinator.loading.replay import Replay

HEADER = header_struct("base_offset", "batch_length", "magic", "crc")
COUNT_POSITION = position_of("record_count")
SIZE_MIN = 72
"""The size of the smallest batch with a record. All bytes that are read to find the prefix are among these."""
TWO_BYTE_VARINT = 0x80
"""A varint whose first byte is less has one byte."""
KEY_SIZE_POSITIONS = 65, 66
"""Where the size of the first key is: after the record's size of one or two bytes, attributes, and two deltas."""
KEY_START_SIZE = 5
"""Bytes of a key's size, its type, and the size of the group id: the end of a template's beginning."""

ALTERNATIVES_MAX = 8
"""Templates with the same size and beginning, and entries with the same prefix: more are not searched."""
TEMPLATES_MAX = 4096
"""Sizes and beginnings with templates; when there are more, all are dropped."""
BUFFERED_SIZE_MAX_BYTES = 64 << 20
"""The memory for batches that are not applied yet."""
ENTRY_SIZE_BYTES = 400
"""The memory of an entry besides its batch, about."""
RECORDS_PER_FLUSH_STEP = 1000

BatchTemplates = dict[tuple[int, bytes], list[BatchTemplate | None]]
"""Templates by the size of a batch and its beginning; None: a batch that has no template."""


class RepeatedCommit:
    """The entry for commits of the same partitions by the same group, with their newest batch."""

    __slots__ = ("alternative", "base_offset", "next_of_group", "prefix", "template", "value")

    def __init__(
        self,
        template: BatchTemplate,
        prefix: bytes,
        value: int,
        base_offset: int,
        alternative: RepeatedCommit | None,
        next_of_group: RepeatedCommit | None,
    ) -> None:
        self.template: BatchTemplate = template
        self.prefix: bytes = prefix
        self.value: int = value
        """The newest batch, from its attributes on, as a big-endian integer."""
        self.base_offset: int = base_offset
        """The base offset of the newest batch."""
        self.alternative: RepeatedCommit | None = alternative
        """The next entry with the same prefix."""
        self.next_of_group: RepeatedCommit | None = next_of_group
        """The next entry of the same group."""


class RepeatedCommits:
    """The repeated commits of one offsets partition."""

    def __init__(self, replay: Replay, templates: BatchTemplates) -> None:
        self._replay = replay
        self._templates = templates
        self._by_prefix: dict[bytes, RepeatedCommit] = {}
        self._groups: dict[bytes, RepeatedCommit] = {}
        """By group id; the newest entry is the head of a list."""
        self._buffered_size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the entries take so much memory that they should be flushed."""
        return self._buffered_size_bytes > BUFFERED_SIZE_MAX_BYTES

    def read(self, data: bytes, start: int, end: int, end_of_step: int) -> int:
        """Read batches that begin before ``end_of_step``; return the position of the first that is not for this class.

        That batch may be no commit, have no known template, be damaged, or be incomplete.
        """
        known = self._by_prefix.get
        header, number = HEADER.unpack_from, int.from_bytes
        while start < end_of_step and end - start >= SIZE_MIN:
            base_offset, size, magic, crc = header(data, start)
            stop = start + LOG_OVERHEAD + size
            if stop > end or size < SIZE_MIN - LOG_OVERHEAD or magic != MAGIC:
                break
            checked = data[start + CHECKED_FROM : stop]
            if crc32c(checked) != crc:
                break
            # The prefix. If the batch is no commit, these bytes are something else, and match no template.
            one_byte, two_bytes = KEY_SIZE_POSITIONS
            key_position = start + (one_byte if data[start + HEADER_SIZE] < TWO_BYTE_VARINT else two_bytes)
            prefix = data[start + COUNT_POSITION : key_position + 1 + (data[key_position] >> 1)]
            value = number(checked, "big")
            commit = known(prefix)
            if commit is None:
                beginning = prefix[: key_position - start - COUNT_POSITION + KEY_START_SIZE]
                if not self._add(beginning, prefix, checked, value, base_offset):
                    break
            elif commit.template.size == len(checked) and not (commit.value ^ value) & commit.template.identity_mask:
                # The path of nearly all batches: the same commit again.
                commit.value = value
                commit.base_offset = base_offset
            else:
                beginning = prefix[: key_position - start - COUNT_POSITION + KEY_START_SIZE]
                if not self._replace_alternative(commit, beginning, checked, value, base_offset):
                    break
            start = stop
        return start

    def _replace_alternative(
        self, commit: RepeatedCommit, beginning: bytes, checked: bytes, value: int, base_offset: int
    ) -> bool:
        """Put a batch into an entry with the same prefix, if need be into a new one; return whether it could be."""
        other = commit.alternative
        count = 1
        while other is not None:
            if other.template.size == len(checked) and not (other.value ^ value) & other.template.identity_mask:
                other.value = value
                other.base_offset = base_offset
                return True
            other = other.alternative
            count += 1
        if count >= ALTERNATIVES_MAX:
            return False
        return self._add(beginning, commit.prefix, checked, value, base_offset)

    def _add(self, beginning: bytes, prefix: bytes, checked: bytes, value: int, base_offset: int) -> bool:
        """Add an entry for a batch; return False if the batch has no known template, or its group pending offsets."""
        template = self._template(beginning, checked, value)
        if template is None:
            return False
        group = checked[template.group]
        if self._replay.pending and self._replay.pending.has_group(group.decode()):
            return False
        groups, by_prefix = self._groups, self._by_prefix
        groups[group] = by_prefix[prefix] = RepeatedCommit(
            template, prefix, value, base_offset, by_prefix.get(prefix), groups.get(group)
        )
        self._buffered_size_bytes += len(checked) + ENTRY_SIZE_BYTES
        return True

    def _template(self, beginning: bytes, checked: bytes, value: int) -> BatchTemplate | None:
        """Return the template of a batch; make one if a batch with the same size and beginning was seen before."""
        key = len(checked), beginning
        templates = self._templates.get(key)
        if templates is None:
            if len(self._templates) >= TEMPLATES_MAX:
                self._templates.clear()
            self._templates[key] = []
            return None
        for template in templates:
            if template is not None and template.matches(value):
                return template
        if len(templates) >= ALTERNATIVES_MAX:
            return None
        # Also None is kept: it counts as an alternative, so that batches without a template are not read for ever.
        template = read_template(checked)
        templates.append(template)
        return template

    def flush(self, group_id: str) -> None:
        """Apply the entries of a group, before something else changes its offsets."""
        if self._groups:
            newest = self._groups.pop(group_id.encode(), None)
            if newest is not None:
                for commit in _all_of_group(newest):
                    # Alternatives of other groups have other prefixes: the whole list goes.
                    self._by_prefix.pop(commit.prefix, None)
                    self._buffered_size_bytes -= commit.template.size + ENTRY_SIZE_BYTES
                self._apply(group_id, newest)

    def flush_all(self) -> Iterator[None]:
        """Apply all entries, in steps. No batch may be read between these steps."""
        groups, self._groups = self._groups, {}
        self._by_prefix.clear()
        self._buffered_size_bytes = 0
        count = 0
        for group, newest in groups.items():
            count += self._apply(group.decode(), newest)
            if count >= RECORDS_PER_FLUSH_STEP:
                count = 0
                yield

    def _apply(self, group_id: str, newest: RepeatedCommit) -> int:
        """Decode and apply the entries of a group, oldest batch first; return how many records they have."""
        replay = self._replay
        commits = [newest] if newest.next_of_group is None else sorted(_all_of_group(newest), key=_base_offset)
        count = 0
        for commit in commits:
            template = commit.template
            checked = commit.value.to_bytes(template.size, "big")
            replay.commit(group_id, template.entries(checked, replay.deadline))
            count += template.record_count
        return count


def _all_of_group(newest: RepeatedCommit) -> Iterator[RepeatedCommit]:
    commit: RepeatedCommit | None = newest
    while commit is not None:
        yield commit
        commit = commit.next_of_group


def _base_offset(commit: RepeatedCommit) -> int:
    return commit.base_offset
