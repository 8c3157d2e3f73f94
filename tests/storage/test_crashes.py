"""Random histories on a disk that forgets, tears, fails and fills up: what was acknowledged is there, in its order.

Each history is made of rounds, some of whose writes and syncs fail, with syncs in the background, new segments, and
ends by kill -9 or power loss. What is found afterwards must be, of each partition: everything acknowledged, in its
order, each batch whole or not there, and nothing that was never written. Then the next history begins there.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from kproto_server.storage.durable_log import Durability, Round
from kproto_server.storage.log_dir import LogDir
from tests.storage.faulty_disk import FaultyDisk
from tests.storage.written import TOPIC, batch, log_values, new_log_dir

PARTITIONS = 3
OPTIONS = {"journal_size_bytes": 4096, "segment_bytes": 700}
HISTORIES = 50
LIVES = 4


class History:
    """One data directory through several crashes."""

    def __init__(self, seed: int, durability: Durability) -> None:
        self.random = Random(seed)  # noqa: S311 - a history has to come again
        self.durability: Durability = durability
        self.disk = FaultyDisk()
        self.number = 0
        self.written: list[list[list[bytes]]] = [[] for _ in range(PARTITIONS)]
        """What may be there: of each partition, all that was ever appended and not told to be refused."""
        self.acknowledged: list[list[list[bytes]]] = [[] for _ in range(PARTITIONS)]
        self.log_dir = new_log_dir(self.disk, PARTITIONS, durability=durability, **OPTIONS)

    def live(self) -> None:
        """Some rounds, until the process ends, in the middle of anything."""
        durable = self.log_dir.durable
        in_background = None
        for _ in range(self.random.randrange(25)):
            begun: Round[tuple[int, list[bytes]]] | None
            self._append()
            begun = durable.begin()
            if begun is None:
                continue
            self._append()
            if self.random.random() < 0.1:
                return
            if begun.needs_sync:
                begun.sync()
            if self.random.random() < 0.1:
                return
            for (partition, content), error in durable.finish(begun):
                if error == 0:
                    self.acknowledged[partition].append(content)
            in_background = in_background or durable.background()
            if in_background is not None and self.random.random() < 0.5:
                in_background.run()
                if self.random.random() < 0.7:
                    durable.end_background()
                    in_background = None

    def _append(self) -> None:
        for _ in range(self.random.randrange(4)):
            partition = self.random.randrange(PARTITIONS)
            content = [
                b"%d " % self.number * self.random.choice((1, 1, 10, 60)) for _ in range(self.random.choice((1, 3)))
            ]
            self.number += 1
            log = self.log_dir.logs[TOPIC, partition]
            if self.log_dir.durable.append(log, *batch(*content), (partition, content)) == 0:
                self.written[partition].append(content)

    def crash(self, *, loses_power: bool) -> None:
        self.disk = self.disk.after_power_loss(self.random) if loses_power else self.disk.after_kill()
        self.log_dir = LogDir(self.disk, durability=self.durability, **OPTIONS)  # type: ignore[arg-type]

    def check(self, *, loses_power: bool) -> None:
        for partition in range(PARTITIONS):
            found = log_values(self.disk, self.log_dir.logs[TOPIC, partition])
            assert is_part_of(found, self.written[partition]), "nothing is invented, and the order is kept"
            if self.durability == "fsync" or not loses_power:
                assert is_part_of(self.acknowledged[partition], found), "nothing acknowledged is lost"
            self.written[partition] = list(found)  # type: ignore[arg-type]  # no tombstones here
            self.acknowledged[partition] = list(found)  # type: ignore[arg-type]


def is_part_of(some: Sequence[Sequence[bytes | None]], everything: Sequence[Sequence[bytes | None]]) -> bool:
    """Whether these are there, in this order."""
    rest = iter(everything)
    return all(one in rest for one in some)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_power_loss_in_fsync_mode(seed: int) -> None:
    history = History(seed, "fsync")
    for _ in range(LIVES):
        history.live()
        loses_power = history.random.random() < 0.7
        history.crash(loses_power=loses_power)
        history.check(loses_power=loses_power)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_kill_in_os_mode(seed: int) -> None:
    history = History(seed, "os")
    for _ in range(LIVES):
        history.live()
        history.crash(loses_power=False)
        history.check(loses_power=False)
