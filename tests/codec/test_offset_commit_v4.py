"""OffsetCommit version by version (OC-3), and the two layouts of version 4 (D1).

Method. The frames are those of OC-3; a real broker of each range accepted its frame. The layout that kproto finds for a
frame of version 4 is compared with a reader written here (`names_in_whole_array`), by property tests and on all small
frames.

Theory. After group, generation and member id, the released layout has eight bytes of retention_time_ms, and KIP-211's
has none; then both have an array of topics. A frame of KIP-211 fits the released layout exactly if its array of topics,
read from its ninth byte on, is again an array of topics that ends where the frame ends. That ninth byte is

- inside or after a name of three or more characters: the count of topics then begins with a letter, so that it
  announces 754,974,720 (``'-' << 24``) topics or more, of at least six bytes each: more than any frame has;
- after a name of two: the count of partitions is read as the count of topics, and partitions as topics, the first of
  which has no name, because the upper half of the partition's number is 0;
- after the first byte of that count, for a name of one: 256 topics or more, which take at least 1,536 bytes.

If both layouts fit, the one that yields topic names that Kafka allows is right. That decides all cases of the second
kind.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import DecodeError
from kproto.headers import read_request_header
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestKip211,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.offset_commit_v4 import decode_v4

RELEASED, KIP_211 = "v4 as released", "v4 of KIP-211"

OC_3 = {
    0: "0000002a00080000000000070001630002673100000001000274310000000100000000000000000000002a00016d",
    1: "00000038000800010000000700016300026731ffffffff000000000001000274310000000100000000000000000000002a"
    "ffffffffffffffff00016d",
    2: "00000038000800020000000700016300026731ffffffff0000ffffffffffffffff00000001000274310000000100000000"
    "000000000000002a00016d",
    3: "00000038000800030000000700016300026731ffffffff0000ffffffffffffffff00000001000274310000000100000000"
    "000000000000002a00016d",
    4: "00000038000800040000000700016300026731ffffffff0000ffffffffffffffff00000001000274310000000100000000"
    "000000000000002a00016d",
    5: "00000030000800050000000700016300026731ffffffff000000000001000274310000000100000000000000000000002a00016d",
    6: "00000034000800060000000700016300026731ffffffff000000000001000274310000000100000000000000000000002a"
    "ffffffff00016d",
    8: "0000002f000800080000000700016300036731ffffffff0100020374310200000000000000000000002affffffff026d000000",
}
"""OC-3: group g1, topic t1, partition 0, offset 42, metadata m, no generation, no member; correlation 7, client c."""

COMMIT = OffsetCommitRequest(
    group_id="g1",
    topics=(
        OffsetCommitRequestTopic(
            name="t1",
            partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=42, committed_metadata="m"),),
        ),
    ),
)
SIMPLE = OffsetCommitRequestKip211(group_id="g1", topics=COMMIT.topics)
LEGAL = "-.09AZ_az"
"""The first and the last character of each range that a topic's name may contain."""
FRAME_MAX = 65_536


def of_kip_211(*topics: OffsetCommitRequestTopic) -> bytes:
    return OffsetCommitRequestKip211(group_id="g1", topics=topics).encode(4)


def topic(name: str, *partitions: tuple[int, int, str | None]) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name=name,
        partitions=tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
            for index, offset, metadata in partitions
        ),
    )


def layout_of(frame: bytes) -> str:
    return decode_v4(frame, 0)[2]


def names_in_whole_array(data: bytes) -> list[str] | None:
    """Return the names if the data is one array of topics of v4, else None; this reader shares no code with kproto."""
    names = []
    try:
        (count,), position = struct.unpack_from(">i", data), 4
        _bounded(count, data)
        for _ in range(count):
            start, position = position + 2, _after_string(data, position, nullable=False)
            names.append(data[start:position].decode())
            (partitions,), position = struct.unpack_from(">i", data, position), position + 4
            _bounded(partitions, data)
            for _ in range(partitions):
                position = _after_string(data, position + 12, nullable=True)
    except (struct.error, ValueError):
        return None
    return names if position == len(data) else None


def are_allowed(names: Iterable[str]) -> bool:
    """Whether there are names and Kafka allows all of them."""
    listed = list(names)
    return bool(listed) and all(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) for name in listed)


def _bounded(count: int, data: bytes) -> None:
    if not 0 <= count <= len(data):
        raise ValueError(count)


def _after_string(data: bytes, position: int, *, nullable: bool) -> int:
    (size,), position = struct.unpack_from(">h", data, position), position + 2
    if size < 0:
        if nullable:
            return position
        raise ValueError(size)
    if position + size > len(data):
        raise ValueError(size)
    data[position : position + size].decode()
    return int(position + size)


class TestFramesOfEveryVersion:
    @pytest.mark.parametrize("version", OC_3)
    def test_every_version_of_the_frame_has_the_same_commit(self, version: int) -> None:
        """OC-3, OC-5: a field that the version lacks has its default."""
        frame = bytes.fromhex(OC_3[version])[4:]
        header = read_request_header(frame)
        assert tuple(header) == (8, version, 7, "c", 12 if version == 8 else 11)
        assert OffsetCommitRequest.decode(frame[header.body_position :], version) == COMMIT

    @pytest.mark.parametrize("version", OC_3)
    def test_the_commit_is_encoded_to_these_bytes(self, version: int) -> None:
        """OC-3."""
        frame = bytes.fromhex(OC_3[version])
        assert int.from_bytes(frame[:4]) == len(frame) - 4
        position = 4 + read_request_header(frame[4:]).body_position
        assert COMMIT.encode(version) == frame[position:]

    def test_version_4_as_released_has_the_retention_time(self) -> None:
        """OC-3: eight bytes more than v5."""
        frame = bytes.fromhex(OC_3[4])[4:]
        assert decode_v4(frame, 11) == (COMMIT, len(frame), RELEASED)
        assert len(OC_3[4]) - len(OC_3[5]) == 2 * 8

    def test_version_4_of_kip_211_has_the_layout_of_version_5(self) -> None:
        """D1: the layout of v4 in KIP-211 was released as v5 (OC-3)."""
        body = bytes.fromhex(OC_3[5])[15:]
        assert SIMPLE.encode(4) == body
        frame = bytes.fromhex("0008000400000007000163") + body
        assert decode_v4(frame, 11) == (COMMIT, len(frame), KIP_211)


class TestFallback:
    def test_bytes_after_the_released_layout_are_ignored(self) -> None:
        """BA-7: the returned position is before them."""
        body = COMMIT.encode(4)
        assert decode_v4(body + b"\0\1\2", 0) == (COMMIT, len(body), RELEASED)

    def test_bytes_after_the_layout_of_kip_211_are_refused_if_the_released_one_does_not_fit(self) -> None:
        body = of_kip_211(topic("topic", (0, 1, "")))
        assert layout_of(body) == KIP_211
        with pytest.raises(DecodeError, match=r"OffsetCommitRequest\.topics"):
            decode_v4(body + b"\0", 0)

    @pytest.mark.parametrize("layout", [OffsetCommitRequest, OffsetCommitRequestKip211])
    def test_a_truncated_frame_is_refused(
        self, layout: type[OffsetCommitRequest] | type[OffsetCommitRequestKip211]
    ) -> None:
        body = layout(group_id="g1", member_id="m-1", topics=(topic("topic", (0, 1, "some metadata")),)).encode(4)
        for size in range(len(body)):
            with pytest.raises(DecodeError, match=r"^OffsetCommitRequest\."):
                decode_v4(body[:size], 0)

    @given(st.integers(-1, 2**32 - 1), st.binary(max_size=80))
    def test_no_bytes_after_a_usual_retention_make_it_kip_211s(self, retention_time_ms: int, more: bytes) -> None:
        """KIP-211's count of topics would be -1 or 0: invalid, or the array would end four bytes too early."""
        body = COMMIT.replace(retention_time_ms=retention_time_ms).encode(4)
        assert layout_of(body + more) == RELEASED

    def test_bytes_after_a_retention_of_50_days_can_make_it_kip_211s(self) -> None:
        """2**32 ms and more: one topic. The frame fits KIP-211's layout exactly, and the released one does not."""
        nameless = OffsetCommitRequest(group_id="g1", retention_time_ms=0x1_0002_7431, topics=(topic(""),))
        trailing = bytes.fromhex("00000000000a0000")
        assert nameless.encode(4) + trailing == of_kip_211(topic("t1", (0, 10, "")))
        assert layout_of(nameless.encode(4) + trailing) == KIP_211


def topics(
    names: st.SearchStrategy[str],
    metadata: st.SearchStrategy[str],
    numbers: st.SearchStrategy[int],
    offsets: st.SearchStrategy[int],
    size_max: int,
) -> st.SearchStrategy[list[OffsetCommitRequestTopic]]:
    partitions = st.lists(st.tuples(numbers, offsets, st.none() | metadata), max_size=size_max)
    return st.lists(st.builds(lambda name, drawn: topic(name, *drawn), names, partitions), max_size=size_max)


int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
any_topics = topics(st.text(max_size=9), st.text(max_size=9), int32, int64, 3)
tiny = st.integers(0, 3)
NARROW = st.text("\0\1\2a", max_size=9)
narrow_topics = topics(NARROW, NARROW, tiny, tiny, 3)
"""Names and metadata whose bytes are small counts and lengths, which random frames contain too rarely."""
real_topics = topics(
    st.text(LEGAL, min_size=1, max_size=3) | st.text(LEGAL, min_size=1, max_size=249),
    st.text(max_size=40),
    st.sampled_from([0, 1, 65_535]) | st.integers(0, 65_535),
    tiny | st.integers(-(2**48), 2**48 - 1),
    6,
)
"""Possible commits of a KIP-211 client: names that Kafka allows, at most 65,536 partitions, 2**48 offsets."""
members = st.sampled_from([(-1, ""), (0, ""), (7, "member-1"), (-7, "\0\1")]) | st.tuples(int32, st.text(max_size=9))


def can_be_ambiguous(request: OffsetCommitRequestKip211) -> bool:
    """Whether a real commit of KIP-211, in a frame of at most 64 KiB, may fit both layouts."""
    first = request.topics[0]
    return len(first.name) == 1 and len(first.partitions) > 0 and len(request.encode(4)) >= 256 * 6


class TestNoFrameIsReadAsTheOtherLayout:
    @given(members, int64, real_topics.filter(bool), st.text(max_size=9))
    def test_a_real_released_frame_is_always_read_as_released(
        self, member: tuple[int, str], retention: int, commits: list[OffsetCommitRequestTopic], group_id: str
    ) -> None:
        self.assert_released(member, retention, commits, group_id)

    @given(members, st.integers(-1, 2**32 - 1), any_topics | narrow_topics, st.text(max_size=9))
    def test_any_released_frame_with_a_usual_retention_is_read_as_released(
        self, member: tuple[int, str], retention: int, commits: list[OffsetCommitRequestTopic], group_id: str
    ) -> None:
        """For any topic names: KIP-211's layout would have -1 or no topics."""
        self.assert_released(member, retention, commits, group_id)

    def assert_released(
        self, member: tuple[int, str], retention: int, commits: list[OffsetCommitRequestTopic], group_id: str
    ) -> None:
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=member[0],
            member_id=member[1],
            retention_time_ms=retention,
            topics=tuple(commits),
        )
        body = request.encode(4)
        assert decode_v4(body, 0) == (request, len(body), RELEASED)

    @given(members, real_topics.filter(bool), st.text(max_size=9))
    def test_a_real_frame_of_kip_211_is_read_as_such_unless_it_can_be_ambiguous(
        self, member: tuple[int, str], commits: list[OffsetCommitRequestTopic], group_id: str
    ) -> None:
        request = OffsetCommitRequestKip211(
            group_id=group_id, generation_id_or_member_epoch=member[0], member_id=member[1], topics=tuple(commits)
        )
        body = request.encode(4)
        assert len(body) <= FRAME_MAX
        found, end, layout = decode_v4(body, 0)
        if layout == RELEASED:
            assert can_be_ambiguous(request)
            return
        expected = (group_id, *member, request.topics, -1, len(body))
        assert expected == (
            found.group_id, found.generation_id_or_member_epoch, found.member_id, found.topics,
            found.retention_time_ms, end,
        )  # fmt: skip

    @given(members, any_topics | narrow_topics)
    def test_a_frame_of_kip_211_is_read_as_released_only_if_that_yields_better_names(
        self, member: tuple[int, str], commits: list[OffsetCommitRequestTopic]
    ) -> None:
        request = OffsetCommitRequestKip211(
            group_id="g1", generation_id_or_member_epoch=member[0], member_id=member[1], topics=tuple(commits)
        )
        body = request.encode(4)
        array = body[2 + 2 + 4 + 2 + len(member[1].encode()) :]
        other = names_in_whole_array(array[8:])
        is_kip_211 = other is None or (not are_allowed(other) and are_allowed(each.name for each in commits))
        assert layout_of(body) == (KIP_211 if is_kip_211 else RELEASED)

    def test_an_impossible_name_may_contain_the_other_layout(self) -> None:
        """No topic can have such a name: a count of one, an empty name, and half a count."""
        assert layout_of(of_kip_211(topic("aa\0\0\0\1\0\0"))) == RELEASED


def one_topic(
    names: Iterable[str], numbers: Iterable[tuple[int, ...]], offsets: range, metadata: Iterable[str | None]
) -> Iterator[OffsetCommitRequestTopic]:
    commits = list(itertools.product(offsets, metadata))
    for name, chosen in itertools.product(names, numbers):
        for values in itertools.product(commits, repeat=len(chosen)):
            yield topic(name, *((index, *value) for index, value in zip(chosen, values, strict=True)))


def ambiguous(requests: Iterable[tuple[OffsetCommitRequestTopic, ...]]) -> tuple[int, int, list[str]]:
    """Return (count of requests, count of those that fit both layouts, those that are read as released)."""
    count, both, found = 0, 0, []
    for request in requests:
        count += 1
        body = of_kip_211(*request)
        both += names_in_whole_array(body[10 + 8 :]) is not None
        if layout_of(body) == RELEASED:
            found.append(", ".join(_text_of(each) for each in request))
    return count, both, found


def _text_of(each: OffsetCommitRequestTopic) -> str:
    partitions = (f"{p.partition_index}@{p.committed_offset}{p.committed_metadata!r}" for p in each.partitions)
    return f"{each.name}: {' '.join(partitions)}".rstrip()


class TestEverySmallFrame:
    """None of these commits of KIP-211 is read as released; 24 of them fit both layouts."""

    def test_one_topic_with_up_to_two_partitions(self) -> None:
        names = ["t", "t1", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefghijkl"]
        requests = one_topic(names, [(), (0,), (1,), (0, 1), (1, 0), (2, 3)], range(6), [None, "", "m", "mm"])
        assert ambiguous((each,) for each in requests) == (8 * (1 + 2 * 24 + 3 * 24**2), 7, [])

    def test_one_topic_with_three_partitions(self) -> None:
        """Those that fit both have partitions 0, 1 and 10, the first with offset 0."""
        numbers = [(0, *others) for others in itertools.permutations(range(1, 13), 2)]
        assert ambiguous((each,) for each in one_topic(["t1"], numbers, range(4), [""])) == (132 * 4**3, 16, [])

    def test_two_topics(self) -> None:
        requests = list(one_topic(["t", "t1", "abc"], [(), (0,), (1,), (0, 1)], range(3), ["", "m"]))
        assert ambiguous(itertools.product(requests, repeat=2)) == ((3 * (1 + 2 * 6 + 6**2)) ** 2, 0, [])

    @pytest.mark.parametrize("size", [1606, 1607, 1608])
    def test_a_name_of_one_character_and_metadata_of_nul_characters(self, size: int) -> None:
        """Of all sizes of such metadata below 2000, only 1607 yields 256 topics without names in the released
        layout."""
        body = of_kip_211(topic("a", (0, 0, "\0" * size)))
        assert layout_of(body) == KIP_211
        assert (names_in_whole_array(body[18:]) is not None) == (size == 1607)
