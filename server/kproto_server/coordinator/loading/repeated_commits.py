"""Commits that come again: of each only the last is decoded (D13: a fast path is never semantics).

Theory of operation. A consumer commits the same partitions over and over, and of those commits only the last counts. A
`Shape` is a commit of certain partitions by a certain group; it holds the newest batch of it, as a number. A batch that
differs from that only in what may differ (`layouts`) takes its place, without a look at its records. At the end, or
when something else happens to the group, its shapes are applied in the order of their newest batches. Between two
batches of a shape there may be others of the same group: each key's last write is in the newest batch of some shape,
and that is applied after all older ones.

Whatever is not recognized is for the plain path, `replay`. It tells before it touches a group (`settle`). A group with
pending offsets has no shapes: there the places of its records count.

A batch is found by a candidate: its record count and its first record up to the end of the key. That says nothing yet;
the masks decide.
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
SHORTEST = 72
"""Octets of any batch with a record; all that finds a candidate is among them."""
TWO_OCTETS = 0x80
KEY_START = 5
"""Octets of a key's size, its type, and the size of the group id."""

ALTERNATIVES_MAX = 8
"""Layouts, and shapes, among which one that looks the same at its beginning is sought."""
TEMPLATES_MAX = 4096
"""Beginnings of batches of which layouts are kept; then all are forgotten."""
BUFFERED_SIZE_MAX_BYTES = 64 << 20
"""Of batches that are not applied yet."""
ENTRY_SIZE_BYTES = 400
"""What a shape takes beside its batch."""
RECORDS_PER_FLUSH_STEP = 1000
"""Records applied in one step."""

BatchTemplates = dict[tuple[int, bytes], list[BatchTemplate | None]]
"""Layouts by the size of a batch and its beginning; None: an attempt in vain. All partitions of a topic share them."""


class RepeatedCommit:
    """A commit that may come again, and its newest batch."""

    __slots__ = ("alternative", "base_offset", "candidate", "sibling", "template", "value")

    def __init__(
        self,
        template: BatchTemplate,
        candidate: bytes,
        value: int,
        base_offset: int,
        alternative: RepeatedCommit | None,
        sibling: RepeatedCommit | None,
    ) -> None:
        self.template = template
        self.candidate = candidate
        self.value = value
        self.base_offset = base_offset
        self.alternative = alternative
        """Another one with the same candidate."""
        self.sibling = sibling
        """Another one of the same group."""


class RepeatedCommits:
    """The shapes of one offsets partition."""

    def __init__(self, replay: Replay, templates: BatchTemplates) -> None:
        self._replay = replay
        self._templates = templates
        self._candidates: dict[bytes, RepeatedCommit] = {}
        self._groups: dict[bytes, RepeatedCommit] = {}
        """By group id, the newest first."""
        self._buffered_size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether so much is held that it should be settled."""
        return self._buffered_size_bytes > BUFFERED_SIZE_MAX_BYTES

    def take(self, data: bytes, start: int, end: int, until: int) -> int:
        """Take in batches that begin before ``until``; return where the first begins that is not for here.

        It may be no commit, of no layout that is known yet, damaged, or not whole.
        """
        known = self._candidates.get
        header, number = HEADER.unpack_from, int.from_bytes
        while start < until and end - start >= SHORTEST:
            base_offset, size, magic, crc = header(data, start)
            stop = start + LOG_OVERHEAD + size
            if stop > end or size < SHORTEST - LOG_OVERHEAD or magic != MAGIC:
                break
            checked = data[start + CHECKED_FROM : stop]
            if crc32c(checked) != crc:
                break
            place = start + (65 if data[start + HEADER_SIZE] < TWO_OCTETS else 66)
            candidate = data[start + COUNT_POSITION : place + 1 + (data[place] >> 1)]
            value = number(checked, "big")
            commit = known(candidate)
            if commit is None:
                beginning = candidate[: place - start - COUNT_POSITION + KEY_START]
                if not self._add(beginning, candidate, checked, value, base_offset):
                    break
            elif commit.template.size == len(checked) and not (commit.value ^ value) & commit.template.same:
                commit.value = value
                commit.base_offset = base_offset
            else:
                beginning = candidate[: place - start - COUNT_POSITION + KEY_START]
                if not self._take_alternative(commit, beginning, checked, value, base_offset):
                    break
            start = stop
        return start

    def _take_alternative(
        self, commit: RepeatedCommit, beginning: bytes, checked: bytes, value: int, base_offset: int
    ) -> bool:
        """Take in a batch whose candidate has a shape that is another one."""
        other = commit.alternative
        alternatives = 1
        while other is not None:
            if other.template.size == len(checked) and not (other.value ^ value) & other.template.same:
                other.value = value
                other.base_offset = base_offset
                return True
            other = other.alternative
            alternatives += 1
        if alternatives >= ALTERNATIVES_MAX:
            return False
        return self._add(beginning, commit.candidate, checked, value, base_offset)

    def _add(self, beginning: bytes, candidate: bytes, checked: bytes, value: int, base_offset: int) -> bool:
        """Make a shape of a batch; False if it has no layout that is known, or its group has none."""
        template = self._template(beginning, checked, value)
        if template is None:
            return False
        group = checked[template.group]
        if self._replay.pending and self._replay.pending.has_group(group.decode()):
            return False
        groups, candidates = self._groups, self._candidates
        groups[group] = candidates[candidate] = RepeatedCommit(
            template, candidate, value, base_offset, candidates.get(candidate), groups.get(group)
        )
        self._buffered_size_bytes += len(checked) + ENTRY_SIZE_BYTES
        return True

    def _template(self, beginning: bytes, checked: bytes, value: int) -> BatchTemplate | None:
        """Return the layout of a batch. One is read when a batch that begins in the same way comes for the second time:
        what never comes again is not worth it."""
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
        template = read_template(checked)
        templates.append(template)
        return template

    def settle(self, group_id: str) -> None:
        """Apply what is held of a group, before something else happens to it."""
        if self._groups:
            newest = self._groups.pop(group_id.encode(), None)
            if newest is not None:
                for commit in _all_of_group(newest):
                    self._candidates.pop(commit.candidate, None)
                    self._buffered_size_bytes -= commit.template.size + ENTRY_SIZE_BYTES
                self._apply(group_id, newest)

    def flush_all(self) -> Iterator[None]:
        """Apply everything that is held, in steps, between which nothing is taken in."""
        groups, self._groups = self._groups, {}
        self._candidates.clear()
        self._buffered_size_bytes = 0
        count = 0
        for group, newest in groups.items():
            count += self._apply(group.decode(), newest)
            if count >= RECORDS_PER_FLUSH_STEP:
                count = 0
                yield

    def _apply(self, group_id: str, newest: RepeatedCommit) -> int:
        """Apply the shapes of a group; return how many records that were."""
        replay = self._replay
        commits = [newest] if newest.sibling is None else sorted(_all_of_group(newest), key=_base_offset)
        count = 0
        for commit in commits:
            template = commit.template
            checked = commit.value.to_bytes(template.size, "big")
            replay.commit(group_id, template.entries(checked, replay.own_deadline))
            count += template.record_count
        return count


def _all_of_group(newest: RepeatedCommit) -> Iterator[RepeatedCommit]:
    commit: RepeatedCommit | None = newest
    while commit is not None:
        yield commit
        commit = commit.sibling


def _base_offset(commit: RepeatedCommit) -> int:
    return commit.base_offset
