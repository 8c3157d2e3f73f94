"""The accidents: what is the case before a consumer starts, and from where on it would neither skip nor repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.scenarios.ground import Ground

RECORDS = 500
COMMITTED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Accident:
    """One thing that happens to a group's offset while no consumer runs."""

    name: str
    what: str
    """A sentence for the user."""
    happen: Callable[[Ground], None]
    resume_at: dict[int, int]
    """By partition, the first record that the group has not seen and could still see."""


def _out_of_range_low(ground: Ground) -> None:
    ground.produce(RECORDS)
    ground.commit(COMMITTED)
    ground.delete_records(before=300)


def _out_of_range_high(ground: Ground) -> None:
    ground.produce(RECORDS)
    ground.commit(900)


def _new_partition(ground: Ground) -> None:
    ground.produce(COMMITTED)
    ground.commit(COMMITTED)
    ground.add_partition()
    ground.produce(50, partition=1)


def _deleted_offsets(ground: Ground) -> None:
    ground.produce(RECORDS)
    ground.commit(COMMITTED)
    ground.delete_offset()


def _expired_offsets(ground: Ground) -> None:
    ground.produce(RECORDS)
    ground.commit(COMMITTED)
    ground.expire_offsets()


def _truncated_log(ground: Ground) -> None:
    ground.produce(RECORDS)
    ground.commit(RECORDS)
    ground.truncate(400)
    ground.produce(200)


ACCIDENTS = {
    accident.name: accident
    for accident in (
        Accident(
            name="out-of-range-low",
            what="The group had committed 100 of 500 records; retention has deleted all before 300 since.",
            happen=_out_of_range_low,
            resume_at={0: 300},
        ),
        Accident(
            name="out-of-range-high",
            what="The group had committed 900; the log, restored from an old copy, ends at 500.",
            happen=_out_of_range_high,
            resume_at={0: 500},
        ),
        Accident(
            name="new-partition",
            what="The group had read all of partition 0; partition 1 came while it was down, and has 50 records.",
            happen=_new_partition,
            resume_at={0: 100, 1: 0},
        ),
        Accident(
            name="deleted-offsets",
            what="The group had committed 100 of 500 records; somebody has deleted its offset.",
            happen=_deleted_offsets,
            resume_at={0: 100},
        ),
        Accident(
            name="expired-offsets",
            what="The group had committed 100 of 500 records, and was down for eight days: its offset has expired.",
            happen=_expired_offsets,
            resume_at={0: 100},
        ),
        Accident(
            name="truncated-log",
            what="The group had read all 500 records; an unclean election cut the log off at 400, and 200 others came.",
            happen=_truncated_log,
            resume_at={0: 400},
        ),
    )
}
