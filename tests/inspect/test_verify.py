"""`kproto log verify` accepts recorded logs, and reports each kind of damage with its position."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

import pytest

from kproto.errors import CorruptLog
from kproto.records.batch_header import CONTROL, TRANSACTIONAL
from kproto.records.control import ControlType, build_end_marker
from kproto.records.message_set import build_message_set
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch, read_record_batch, seal
from kproto.records.segment_files import segment_name
from kproto_server.inspect.directory import find_logs
from kproto_server.inspect.progress import LARGE, Progress
from kproto_server.inspect.verify import Verified, verify
from tests.fixture_files import golden_log
from tests.inspect.logs import FIRST_SEGMENT, NOW, OFFSETS, PARTITION_OF_G1, RELEASES, commit, copy_of, partition_folder

each_release = pytest.mark.parametrize("release", RELEASES)


def verified(path: Path, partitions: int | None = None) -> tuple[Verified, list[str]]:
    """Return the counts and the notes of a valid log."""
    notes: list[str] = []
    return verify(find_logs(str(path)), partitions=partitions, note=notes.append, progress=lambda size: None), notes


def violation(path: Path, partitions: int | None = None) -> str:
    """Return the error line of a damaged log."""
    with pytest.raises(CorruptLog) as raised:
        verified(path, partitions)
    return str(raised.value)


class TestRealLogs:
    @pytest.mark.parametrize(
        ("release", "counts"),
        [("2.0.1", Verified(2, 2, 24, 37)), ("2.1.1", Verified(2, 2, 27, 46)), ("4.4.0", Verified(2, 2, 37, 71))],
    )
    def test_are_valid_without_notes(self, release: str, counts: Verified) -> None:
        assert verified(golden_log(release)) == (counts, [])

    @each_release
    def test_are_valid_by_directory_and_by_segment(self, release: str) -> None:
        folder = golden_log(release) / OFFSETS
        assert verified(folder) == verified(folder / FIRST_SEGMENT)

    @each_release
    def test_every_flipped_byte_is_found(self, release: str, tmp_path: Path) -> None:
        folder = copy_of(release, tmp_path) / OFFSETS
        data = (folder / FIRST_SEGMENT).read_bytes()
        for position in range(0, len(data), 3):
            damaged = bytearray(data)
            damaged[position] ^= 0x41
            (folder / FIRST_SEGMENT).write_bytes(damaged)
            assert violation(folder).startswith((f"{OFFSETS}/{FIRST_SEGMENT} at byte ", f"{OFFSETS}/00000"))

    @each_release
    def test_a_flipped_bit_is_reported_with_its_batch(self, release: str, tmp_path: Path) -> None:
        folder = copy_of(release, tmp_path) / OFFSETS
        data = bytearray((folder / FIRST_SEGMENT).read_bytes())
        batch, start = read_record_batch(bytes(data))
        data[start + 70] ^= 1
        (folder / FIRST_SEGMENT).write_bytes(data)
        line = f"{OFFSETS}/{FIRST_SEGMENT} at byte {start}, offset {batch.last_offset + 1}: BadChecksum: "
        assert violation(folder).startswith(line)

    def test_any_cut_of_the_newest_segment_is_a_torn_tail(self, tmp_path: Path) -> None:
        """LF-62: recovery truncates it silently, and rebuilds the index (LF-60)."""
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        data = (folder / FIRST_SEGMENT).read_bytes()
        edges, position = {0}, 0
        while position < len(data):
            position = read_record_batch(data, position)[1]
            edges.add(position)
        for size in range(len(data) - 1, 4400, -5):
            (folder / FIRST_SEGMENT).write_bytes(data[:size])
            if size in edges:
                continue
            edge = max(edge for edge in edges if edge < size)
            notes = verified(folder)[1]
            start = f"torn tail: {OFFSETS}/{FIRST_SEGMENT} at byte {edge}: {size - edge} bytes "
            assert [note for note in notes if note.startswith(start)] == notes

    def test_an_index_entry_after_the_last_batch_is_damage(self, tmp_path: Path) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        segment = folder / FIRST_SEGMENT
        segment.write_bytes(segment.read_bytes()[:325])
        assert violation(folder) == (
            f"{OFFSETS}/00000000000000000000.index at byte 0: "
            "IndexEntry(relative_offset=44, position=4353): after the last batch"
        )

    @pytest.mark.parametrize(
        ("name", "data", "reason"),
        [
            (".index", b"1234567", "at byte 0: 7 bytes of an entry of 8"),
            (".index", bytes.fromhex("0000002c00001102"), "no batch begins there; one begins at 4353"),
            (".index", bytes.fromhex("0000002b00001101"), "the batch there begins with offset 44, not 43"),
            (".index", bytes.fromhex("0000004000001101"), "at byte 0: offset 64 is after the last batch"),
            (".index", bytes.fromhex("0000002c0000110100000010000000ff"), "at byte 8: .* does not rise above"),
            (".index", bytes(8) + bytes.fromhex("0000002c00001101"), "at byte 0: zeros before the entry at byte 8"),
            (".timeindex", bytes(13), "at byte 12: 1 bytes of an entry of 12"),
            (".timeindex", bytes.fromhex("000001a1fb2a332f0000002c"), "the batch of offset 44 has timestamp"),
            (".timeindex", bytes.fromhex("000001a1fb2a332e000000ff"), "at byte 0: .*: after the last batch"),
        ],
    )
    def test_a_broken_index(self, tmp_path: Path, name: str, data: bytes, reason: str) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        (folder / f"00000000000000000000{name}").write_bytes(data)
        assert re.match(rf"{OFFSETS}/0{{20}}\{name} at byte \d+: ", violation(folder))
        assert re.search(reason, violation(folder))

    def test_the_newest_segments_indexes_may_be_preallocated(self, tmp_path: Path) -> None:
        """LF-51."""
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        for name, size in ((".index", 262144), (".timeindex", 262140)):
            path = folder / f"00000000000000000000{name}"
            path.write_bytes(path.read_bytes().ljust(size, b"\0"))
        assert verified(folder)[1] == []

    def test_indexes_may_be_absent(self, tmp_path: Path) -> None:
        """LF-52."""
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        for path in folder.glob("*index"):
            path.unlink()
        assert verified(folder)[1] == []

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("0\n1\n1 0\n", f"{FIRST_SEGMENT} at byte 0, offset 0: leader epoch 0 is not in leader-epoch-checkpoint"),
            ("0\n1\n0 2\n", f"{FIRST_SEGMENT} at byte 0, offset 0: leader epoch 0 begins with offset 2 in"),
            ("0\n2\n0 0\n1 30\n", "offset 29: leader epoch 0 ends before offset 30 in"),
            ("nonsense", "leader-epoch-checkpoint at line 1: does not begin with version 0 and a count"),
        ],
    )
    def test_an_epoch_that_contradicts_the_checkpoint(self, tmp_path: Path, text: str, reason: str) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        (folder / "leader-epoch-checkpoint").write_text(text)
        assert reason in violation(folder)

    def test_the_checkpoint_of_a_partition_without_batches_is_empty(self, tmp_path: Path) -> None:
        """1.1.1 leaves such a partition."""
        folder = partition_folder(tmp_path, {0: b""})
        (folder / "leader-epoch-checkpoint").write_text("")
        assert verified(folder)[0].batches == 0

    def test_without_the_checkpoint_epochs_are_not_checked(self, tmp_path: Path) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        (folder / "leader-epoch-checkpoint").unlink()
        assert verified(folder)[1] == [f"{OFFSETS}: no leader-epoch-checkpoint, so epochs were not checked"]

    def test_a_wrong_name(self, tmp_path: Path) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        (folder / FIRST_SEGMENT).rename(folder / segment_name(3))
        assert violation(folder) == (
            f"{OFFSETS}/{segment_name(3)} at byte 0, offset 0: "
            "BadOffset: the name of the segment says that it begins with offset 3"
        )
        (folder / segment_name(3)).rename(folder / "1.log")
        assert violation(folder) == f"{OFFSETS}/1.log at byte 0: the name of a segment is 20 digits and .log"

    @pytest.mark.parametrize("trailing", [b"x", b"trailing bytes, more than a header has of them, up to the end"])
    def test_trailing_bytes(self, tmp_path: Path, trailing: bytes) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        with open(folder / FIRST_SEGMENT, "ab") as file:
            file.write(trailing)
        assert violation(folder).startswith(f"{OFFSETS}/{FIRST_SEGMENT} at byte 5690, offset 63: ")

    @pytest.mark.parametrize("size", [3, 12, 100, 1 << 20])
    def test_zeros_at_the_end_are_a_torn_tail(self, tmp_path: Path, size: int) -> None:
        folder = copy_of("4.4.0", tmp_path) / OFFSETS
        with open(folder / FIRST_SEGMENT, "ab") as file:
            file.write(bytes(size))
        note = f"torn tail: {OFFSETS}/{FIRST_SEGMENT} at byte 5690: {size} bytes zeros that were never written"
        assert verified(folder)[1] == [note]


class TestPartitionOfAGroup:
    """LF-40."""

    def test_is_checked_if_the_partition_count_is_given(self, tmp_path: Path) -> None:
        data = build_record_batch([commit(0)], partition_leader_epoch=0)
        right = partition_folder(tmp_path, {0: data}, partition=PARTITION_OF_G1)
        wrong = partition_folder(tmp_path, {0: data}, partition=3)
        assert verified(right, 50)[1] == []
        assert violation(wrong, 50) == (
            f"__consumer_offsets-3/{FIRST_SEGMENT} at byte 0, offset 0: "
            "'g1' belongs to partition 42 of 50 (--partitions N sets another count)"
        )

    def test_is_checked_if_the_log_dir_shows_the_count(self, tmp_path: Path) -> None:
        data = build_record_batch([commit(0)], partition_leader_epoch=0)
        for partition in range(50):
            partition_folder(tmp_path, {0: data} if partition == 7 else {}, partition=partition)
        assert "'g1' belongs to partition 42 of 50" in violation(tmp_path)

    def test_is_not_checked_if_the_count_is_unknown(self, tmp_path: Path) -> None:
        data = build_record_batch([commit(0)], partition_leader_epoch=0)
        folder = partition_folder(tmp_path, {0: data}, partition=7)
        note = "the partition count of the topic is unknown, so the partition of each group was not checked"
        assert verified(folder)[1] == [f"__consumer_offsets-7: {note}"]

    def test_of_a_transactional_id_is_checked_too(self, tmp_path: Path) -> None:
        log_dir = copy_of("4.4.0", tmp_path)
        shutil.move(log_dir / "__transaction_state-0", log_dir / "__transaction_state-1")
        assert "'tx-1' belongs to partition 0 of 4" in violation(log_dir)

    def test_a_malformed_checkpoint_is_damage(self, tmp_path: Path) -> None:
        log_dir = copy_of("4.4.0", tmp_path)
        (log_dir / "replication-offset-checkpoint").write_text("0\n1\nt 1\n")
        assert violation(log_dir).startswith("replication-offset-checkpoint at line 3: 't 1' is not a topic, ")

    def test_an_empty_checkpoint_is_valid(self, tmp_path: Path) -> None:
        """A broker that is killed in its first seconds leaves an empty file."""
        log_dir = copy_of("4.4.0", tmp_path)
        (log_dir / "replication-offset-checkpoint").write_text("")
        assert verified(log_dir)[0] == verified(golden_log("4.4.0"))[0]


def batch(*offsets: int, **fields: int) -> bytes:
    return build_record_batch(
        [commit(offset) for offset in offsets],
        **{"partition_leader_epoch": 0, **fields},  # type: ignore[arg-type]
    )


def marker(offset: int) -> bytes:
    return build_end_marker(
        ControlType.COMMIT,
        offset=offset,
        timestamp=NOW,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        partition_leader_epoch=0,
    )


def raw(key: bytes | None, value: bytes | None, **fields: int) -> bytes:
    return build_record_batch(
        [Record(key, value, timestamp=NOW)],
        partition_leader_epoch=0,
        **fields,  # type: ignore[arg-type]
    )


class TestMadeLogs:
    @pytest.mark.parametrize(
        "segments",
        [
            {},
            {0: b""},
            {0: batch(0, 1) + batch(2), 3: batch(3)},
            {0: batch(5, 9, base_offset=2, last_offset=12), 20: batch(30)},  # after compaction
            {0: batch(base_offset=0, last_offset=4), 7: b""},  # a header without records (LF-72)
            {0: batch(0, producer_id=1, producer_epoch=0, flags=TRANSACTIONAL) + marker(1)},
            {0: build_message_set([commit(0), commit(1)], magic=1) + batch(2)},
            {2**40: batch(2**40 + 2**31 - 1)},
        ],
    )
    def test_valid(self, tmp_path: Path, segments: dict[int, bytes]) -> None:
        folder = partition_folder(tmp_path, segments)
        assert verified(folder, 1)[1] == []

    @pytest.mark.parametrize(
        ("segments", "reason"),
        [
            ({0: batch(1) + batch(1)}, f"0.log at byte {len(batch(1))}, offset 1: BadOffset: offsets must rise"),
            (
                {0: batch(0, 1), 1: batch(2)},
                "1.log at byte 0, offset 1: BadOffset: the segment before it ends with offset 1",
            ),
            ({0: batch(2**31)}, "0.log at byte 0, offset 2147483648: BadOffset: more than"),
            ({0: batch(0)[:-1], 1: batch(1)}, "0.log at byte 0, offset 0: Truncated: 104 bytes after the last"),
            ({0: batch(0) + bytes(9), 1: batch(1)}, "0.log at byte 105, offset 1: Truncated: 9 bytes after the"),
            ({0: batch(0, flags=TRANSACTIONAL)}, "offset 0: a transactional batch without a producer id"),
            ({0: raw(b"\0\0\0\1", bytes(6), flags=CONTROL)}, "offset 0: a control batch that is not one end marker"),
            (
                {0: raw(b"\0\0\0\2", bytes(6), flags=CONTROL | TRANSACTIONAL, producer_id=1)},
                "offset 0: BadMarker: control record key: type 2 does not end a transaction",
            ),
            (
                {0: raw(b"\0\0\0\1", b"", flags=CONTROL | TRANSACTIONAL, producer_id=1)},
                "offset 0: BadMarker: EndTxnMarker: 0 bytes, the least is 6",
            ),
            ({0: raw(None, b"")}, "offset 0: record key at byte 0: null"),
            ({0: raw(b"\0\1\0\2g1", None)}, "offset 0: OffsetCommitKey"),
            ({0: raw(commit(0).key, b"\0\5")}, "offset 0: OffsetCommitValue at byte 0: version 5, only 0 to 4"),
            ({0: raw(commit(0).key, b"\0\3")}, "offset 0: OffsetCommitValue"),
        ],
    )
    def test_violations(self, tmp_path: Path, segments: dict[int, bytes], reason: str) -> None:
        assert reason in violation(partition_folder(tmp_path, segments), 1)

    def test_offsets_within_a_batch_must_rise(self, tmp_path: Path) -> None:
        """A batch whose records have other offsets than its header can have a valid checksum."""
        header = read_record_batch(batch(0, 1))[0].header
        payload = read_record_batch(batch(0, 1))[0].payload
        folder = partition_folder(tmp_path, {0: seal(header.replace(last_offset_delta=0), payload)})
        assert "offset 1: BadOffset: a record in a batch of offsets 0 to 0 follows offset 0" in violation(folder, 1)

    def test_unknown_record_types_are_noted(self, tmp_path: Path) -> None:
        """LF-36."""
        folder = partition_folder(tmp_path, {0: raw(b"\x7f\xff", b"?")})
        assert verified(folder, 1)[1] == ["__consumer_offsets-0: records of unknown types were not decoded: 32767"]

    def test_files_of_an_interrupted_compaction_are_noted(self, tmp_path: Path) -> None:
        """LF-63."""
        folder = partition_folder(tmp_path, {0: batch(0)})
        (folder / f"{FIRST_SEGMENT}.swap").write_bytes(b"")
        (folder / f"{segment_name(7)}.deleted").write_bytes(b"")  # of a completed compaction
        note = f"__consumer_offsets-0: files of an interrupted compaction were not read: {FIRST_SEGMENT}.swap"
        assert verified(folder, 1)[1] == [note]

    def test_zeros_in_the_index_of_an_older_segment_are_damage(self, tmp_path: Path) -> None:
        folder = partition_folder(tmp_path, {0: batch(0), 1: batch(1)})
        (folder / "00000000000000000000.index").write_bytes(bytes(8))
        reason = "0.index at byte 0: zeros at the end, and this is not the newest segment"
        assert reason in violation(folder, 1)

    @pytest.mark.parametrize("position", [8, 9, 10, 11])
    def test_a_batch_with_a_size_that_is_too_large_is_no_torn_tail(self, tmp_path: Path, position: int) -> None:
        for number, count in enumerate((1, 2)):
            data = bytearray(b"".join(map(batch, range(count))))
            data[position] |= 0x60
            folder = partition_folder(tmp_path / str(number), {0: bytes(data)})
            assert violation(folder, 1).startswith(f"__consumer_offsets-0/{FIRST_SEGMENT} at byte 0, offset 0: ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "total"), [(io.StringIO(), LARGE), (Terminal(), LARGE - 1)])
def test_no_bar_without_a_terminal_or_for_a_small_log(stream: io.StringIO, total: int) -> None:
    progress = Progress(total, stream)
    progress.add(total)
    progress.clear()
    assert stream.getvalue() == ""


def test_the_bar_is_drawn_at_each_percent_and_removed() -> None:
    stream = Terminal()
    progress = Progress(100_000_000, stream)
    for _ in range(1000):
        progress.add(100_000)
    drawn = stream.getvalue().split("\r")[1:]
    assert len(drawn) == 101
    assert drawn[50] == f"[{'#' * 20}{' ' * 20}]  50%  50 of 100 MB"
    progress.clear()
    progress.clear()
    assert stream.getvalue().split("\r")[1:] == [*drawn, "\x1b[K"]
