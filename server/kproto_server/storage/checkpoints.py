"""The small text files of a data directory, in Kafka's form (LF-53 to LF-55): a version, a count, then lines."""

from __future__ import annotations

VERSION = "0"
RECOVERY_POINTS = "kproto.recovery"
"""Not by Kafka's name: a real broker would take indexes for right that it finds below these offsets."""
CLEANER_POINTS = "cleaner-offset-checkpoint"
FIRST_EPOCH = b"0\n1\n0 0\n"
"""A partition whose every batch has leader epoch 0."""

Offsets = dict[tuple[str, int], int]


def write_offsets(offsets: Offsets) -> bytes:
    """Return a checkpoint of an offset for each partition."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    return "\n".join([VERSION, str(len(lines)), *lines, ""]).encode()


def read_offsets(data: bytes) -> Offsets:
    """Read such a checkpoint; what is not of its form says nothing, as its offsets only save work."""
    found: Offsets = {}
    for line in data.decode("utf-8", "replace").splitlines()[2:]:
        words = line.split()
        if len(words) == 3 and words[1].isdigit() and words[2].isdigit():
            found[words[0], int(words[1])] = int(words[2])
    return found


def newest_epoch(data: bytes) -> int:
    """Return the last leader epoch of a ``leader-epoch-checkpoint``; -1 if it has none."""
    epochs = [line.split()[0] for line in data.decode("utf-8", "replace").splitlines()[2:] if line.strip()]
    return max((int(epoch) for epoch in epochs if epoch.isdigit()), default=-1)
