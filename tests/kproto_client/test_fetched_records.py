"""The records that an async consumer has fetched ahead, without threads: deliveries, revocations, positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from kproto.client import fetched_records
from kproto.client.fetched_records import FetchedRecords

A, B = ("t", 0), ("t", 1)


@dataclass(frozen=True)
class FakeMessage:
    """confluent-kafka's `Message`, which older releases cannot create in Python."""

    at: tuple[str, int]
    number: int
    code: int | None = None
    size: int = 1

    def topic(self) -> str:
        return self.at[0]

    def partition(self) -> int:
        return self.at[1]

    def offset(self) -> int:
        return self.number

    def leader_epoch(self) -> None:
        return None

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def __len__(self) -> int:
        return self.size


@pytest.fixture(autouse=True)
def fake_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("error", "topic", "partition"):
        monkeypatch.setattr(fetched_records, f"{name.upper()}_OF", getattr(FakeMessage, name))


def messages(*at: tuple[tuple[str, int], int], **fields: Any) -> list[Message]:
    return [FakeMessage(partition, number, **fields) for partition, number in at]  # type: ignore[misc]


def fetched(*at: tuple[tuple[str, int], int]) -> FetchedRecords:
    records = FetchedRecords()
    records.add(messages(*at))
    return records


def at(records: list[Message]) -> list[tuple[int | None, int | None]]:
    return [(each.partition(), each.offset()) for each in records]


def positions(records: FetchedRecords) -> list[tuple[int, int]]:
    return [(each.partition, each.offset) for each in records.take_finished()]


def test_only_finished_records_have_positions_to_store() -> None:
    records = fetched((A, 0), (A, 1), (B, 7), (B, 8))
    assert at(records.take(3)) == [(0, 0), (0, 1), (1, 7)]
    assert {key: each.offset for key, each in records.delivered().items()} == {A: 2, B: 8}
    assert positions(records) == []
    assert records.is_processing({B})
    records.finish()
    assert not records.is_processing({A, B})
    assert positions(records) == [(0, 2), (1, 8)]
    assert positions(records) == []
    assert records.take_one() is not None
    records.finish()
    assert positions(records) == [(1, 9)]
    assert {key: each.offset for key, each in records.delivered().items()} == {A: 2, B: 9}


def test_a_revoked_partition_delivers_nothing_and_its_current_record_stays_unfinished() -> None:
    records = fetched((A, 0), (B, 7), (A, 1), (B, 8))
    records.take(2)
    records.drop({A})
    assert records.is_processing({A})
    records.forget({A})
    assert list(records.delivered()) == [B]
    records.finish()
    assert positions(records) == [(1, 8)]
    assert at(records.take(9)) == [(1, 8)]


def test_records_of_a_paused_partition_wait_for_resume_in_their_order() -> None:
    records = fetched((A, 0), (B, 7), (A, 1))
    records.pause({A})
    records.add(messages((A, 2), (B, 8)))
    assert at(records.take(9)) == [(1, 7), (1, 8)]
    records.resume({A})
    assert at(records.take(9)) == [(0, 0), (0, 1), (0, 2)]
    records.pause({A})
    records.sought(A)
    assert list(records.paused) == [A]
    assert A not in records.delivered()


def test_an_exception_is_raised_in_its_place() -> None:
    records = fetched((A, 0), (A, 1))
    records.add(messages((A, 2), code=KafkaError._PARTITION_EOF))
    records.add(messages((A, 2), code=KafkaError.TOPIC_AUTHORIZATION_FAILED))
    records.add(messages((A, 3)))
    assert records.has(100)
    assert at(records.take(9)) == [(0, 0), (0, 1)]
    with pytest.raises(KafkaException):
        records.take(9)
    assert not records.has(2)
    assert at(records.take(9)) == [(0, 3)]
    assert records.take_one() is None


def test_one_record_before_an_exception_is_returned_alone() -> None:
    records = fetched((A, 0))
    records.add_exception(ValueError())
    assert at(records.take(9)) == [(0, 0)]
    with pytest.raises(ValueError):
        records.take_one()
    assert len(records) == 0


def test_large_records_leave_less_room() -> None:
    """About 16 MiB are fetched ahead, but as many records as a request needs."""
    records = FetchedRecords()
    assert records.room() == fetched_records.RECORDS_MAX
    records.add(messages((A, 0), (A, 1), size=1 << 20))
    assert records.room() == 13
    assert records.room(500) == 498
    assert records.is_low
    records.drop_all()
    records.add(messages((A, 2), size=1 << 30))
    assert records.room() == 0
    assert records.is_low is False


def test_positions_are_noted_while_nobody_stores_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delivered records are not kept: only their positions are."""
    monkeypatch.setattr(fetched_records, "UNSORTED_MAX", 10)
    records = fetched(*((A, number) for number in range(100)))
    for _ in range(100):
        assert records.take_one() is not None
        records.finish()
        assert len(records._unsorted) <= 10
    assert records.delivered()[A].offset == 100


def test_everything_is_dropped_by_a_new_assignment() -> None:
    records = fetched((A, 0), (A, 1), (B, 0))
    records.pause({B})
    records.take_one()
    records.add_exception(ValueError())
    records.forget_all()
    records.finish()
    assert positions(records) == []
    assert records.take(9) == []
    assert not records.delivered()
    assert not records.paused
