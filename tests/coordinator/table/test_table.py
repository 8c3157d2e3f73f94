"""The packed table equals the reference implementation after any changes (D13)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.table.table import OffsetTable
from tests.coordinator.table.reference_table import ReferenceTable

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import CommitEntries

IDS = [bytes((number,)) * 16 for number in range(3)]
INT64 = st.integers(-(2**63), 2**63 - 1)
GROUP_IDS = st.sampled_from(["", "g", "grüße", "billing", *(f"group-{number}" for number in range(60)), "long" * 80])
NAMES = st.sampled_from(["t", "u", "topic-with-a-long-name", *(f"t{number}" for number in range(30))])
PARTITIONS = st.one_of(
    st.integers(1, 20).map(range),
    st.integers(1, 300).map(range),
    st.lists(st.integers(0, 9), max_size=4),
    st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4),
)
METADATA = st.one_of(st.just(""), st.just(""), st.text(max_size=9), st.sampled_from(["x" * 300, "\ud800", "m" * 5000]))


@st.composite
def commits(draw: st.DrawFn) -> CommitEntries:
    """Return the entries of one commit: mostly similar, sometimes each different."""
    is_alike = draw(st.integers(0, 3)) > 0
    times = st.integers(0, 9)
    epochs = st.sampled_from([-1, 0, 7, 2**31 - 1])
    expiries = st.one_of(st.none(), st.none(), st.integers(0, 9), INT64)
    ids = st.sampled_from([IDS[0], IDS[0], IDS[0], *IDS])
    alike = draw(epochs), draw(st.sampled_from(["", "", "m"])), draw(times), draw(expiries), draw(ids)
    entries = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=6)):
        partitions = []
        first = draw(INT64)
        for record_start, partition in enumerate(draw(PARTITIONS)):
            if is_alike or record_start > 3:
                values = alike
            else:
                values = draw(epochs), draw(METADATA), draw(times), draw(expiries), draw(ids)
            offset = (first + record_start + 2**63) % 2**64 - 2**63
            partitions.append((partition, OffsetAndMetadata(offset, *values)))
        entries.append((name, partitions))
    return entries


class Tables(RuleBasedStateMachine):
    """Both tables, with the same changes."""

    def __init__(self) -> None:
        super().__init__()
        self.packed = OffsetTable()
        self.reference = ReferenceTable()
        self.changed = "g"

    @rule(group_id=GROUP_IDS, entries=commits(), early=st.booleans(), times=st.integers(1, 2))
    def commit(self, group_id: str, entries: CommitEntries, early: bool, times: int) -> None:
        for _ in range(times):
            self.packed.apply(group_id, entries, expires_early=early)
            self.reference.apply(group_id, entries, expires_early=early)
        self.changed = group_id

    @precondition(lambda self: self.reference.groups)
    @rule(data=st.data(), keeps=st.sampled_from([0, 1, 5, 40]))
    def delete(self, data: st.DataObject, keeps: int) -> None:
        group_id = data.draw(st.sampled_from(sorted(self.reference.groups)))
        deleted = [(name, sorted(stored)[keeps:]) for name, stored in self.reference.of_group(group_id).items()]
        deleted += [("unknown's", [1]), ("t", [12345])]
        self.packed.remove(group_id, deleted)
        self.reference.remove(group_id, deleted)
        self.changed = group_id

    @rule(until_ms=st.integers(0, 9), is_left_alone=st.booleans())
    def look(self, until_ms: int, is_left_alone: bool) -> None:
        """An expiration run: groups to check are yielded, and yielded again after `check_again`."""
        groups_to_check = list(chain(*self.packed.groups_to_check(until_ms)))
        named = [group_id for group_id, _ in groups_to_check]
        assert len(set(named)) == len(named)
        for group_id, all_of_it in groups_to_check:
            if all_of_it is not None:
                assert self.reference.is_expired(group_id, until_ms)
                assert {name: set(indexes) for name, indexes in all_of_it} == {
                    name: set(stored) for name, stored in self.reference.of_group(group_id).items()
                }
        assert set(named) >= self.reference.groups_to_check(until_ms)
        for group_id in named:
            if is_left_alone:
                self.reference.check_again(group_id)
            else:
                min_commit_ms = self.reference.earliest(group_id)
                self.packed.check_again(group_id, min_commit_ms)
                self.reference.check_again(group_id, min_commit_ms)

    @invariant()
    def the_group_is_the_same(self) -> None:
        expected = self.reference.of_group(self.changed)
        found = self.packed.of_group(self.changed)
        assert found == expected
        assert self.packed.has(self.changed) is bool(expected)
        for name, stored in expected.items():
            for partition in list(stored)[:3]:
                assert self.packed.of_group(self.changed)[name][partition] == stored[partition]
            assert 777_777 not in found[name]
        assert len(self.packed) == len(self.reference)

    def teardown(self) -> None:
        assert sorted(self.packed.group_ids()) == sorted(self.reference.groups)
        for names in (("t",), ("u",), ("t7", "u"), ("unknown's",), ()):
            assert sorted(self.packed.groups_with(names)) == sorted(self.reference.groups_with(names))
        for group_id, expected in self.reference.groups.items():
            assert self.packed.of_group(group_id) == expected
            self.packed.remove(group_id, [(name, list(stored)) for name, stored in expected.items()])
        assert len(self.packed) == 0
        assert list(self.packed.group_ids()) == []


TestTables = Tables.TestCase
TestTables.settings = settings(max_examples=120, stateful_step_count=25, deadline=None)
