"""Options of the data source: their names, what they mean, and refusing everything else in one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kproto.errors import UsageError
from kproto.spark.decode.files import OFFSETS_TOPIC
from kproto.spark.decode.reading import DECODERS
from kproto.spark.schemas import COMMITS, COVERAGE, GROUP_METADATA, LATEST, LOG_BATCHES, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VIEWS: dict[str, Table] = {
    "records": COMMITS,
    "latest": LATEST,
    "candidates": COMMITS,
    "batches": LOG_BATCHES,
    "groups": GROUP_METADATA,
    "coverage": COVERAGE,
}
STREAMED_VIEWS = ("records", "batches", "groups")
TASK_BYTES = 32 << 20
"""Bytes of segments that one task reads: some seconds of work, so that starting it costs little beside it."""
EARLIEST, LATEST_OFFSET = "earliest", "latest"


class OptionError(UsageError):
    """An option that does not exist, or has a value that it can't have; the text is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is asked of the source. Names in Spark are in camel case: ``task_bytes`` is ``taskBytes``."""

    path: str
    """A log.dir, the directory of one partition, or one segment; ``file:`` URLs too. Each worker has to see it."""
    view: str = "records"
    """records: a row for each record about an offset (schema `commits`). groups: for each record about a group
    (`group_metadata`). batches: for each batch of any topic, by its header (`log_batches`). latest: the offsets that
    there are at the end of the log (`latest`); one task reads all of a partition. candidates: rows of records, of each
    key the last one of each task: what is needed to get latest by a job that splits partitions. coverage: what was
    read, for each task's part of a partition (`coverage`)."""
    topic: str | None = OFFSETS_TOPIC
    """Whose partitions are read; by default the offsets topic, of view batches all. ``*``: all."""
    starting_offsets: str | Mapping[str, int] = EARLIEST
    """earliest, latest, or JSON ``{"0": 1200, "orders-3": 0}``: offsets by partition of the topic, or by directory;
    partitions that are not named are read from the beginning."""
    ending_offsets: str | Mapping[str, int] = LATEST_OFFSET
    """latest, or JSON as of ``startingOffsets``: the first offsets that are not read. Not of streams."""
    task_bytes: int = TASK_BYTES
    """Segments are cut and put together to tasks of about so many bytes."""
    decoder: str = "fast"
    """fast or plain (`kproto.spark.decode`)."""
    check_crc: bool = True
    """Whether checksums are held against the content. View batches never does."""
    allow_empty: bool = False
    """Whether a log without a single byte, or a path without partitions, is no error."""
    pushdown: bool = True
    """Whether filters on group_id, log_partition, topic and partition decide what is read. Needs Spark's
    ``spark.sql.python.filterPushdown.enabled``, which `kproto.spark.register` sets."""
    partitions: int | None = None
    """How many partitions the offsets topic has; by default what the directories and their groups tell. Decides in
    which partition a group is looked for."""
    open_transactions: str = "wait"
    """Of streams. wait: what follows the first record of a transaction without end stays for a later batch, as for a
    consumer that reads committed records, so that each row has its final txn_state. emit: rows are as they are found,
    and a pending one is never told of again."""
    fail_on_data_loss: bool = True
    """Of streams: whether the query ends when offsets that were not read yet are gone. false: it goes on with what
    there is."""
    max_offsets_per_trigger: int | None = None
    """Of streams: offsets that a micro-batch covers at most, over all partitions."""

    @property
    def table(self) -> Table:
        """The schema of the view."""
        return VIEWS[self.view]


def read_options(given: Mapping[str, str]) -> Options:
    """Return the options that Spark was given.

    Raises:
        OptionError: one is not known, has no such value, or the path is missing.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        known = _READERS.get(name.lower())
        if known is None:
            raise OptionError(f"there is no option {name!r}: {', '.join(known for known, _ in _READERS.values())}")
        written, read = known
        try:
            values[_snake(written)] = read(text)
        except ValueError as error:
            raise OptionError(f"option {written}: {error}") from None
    if "path" not in values:
        raise OptionError('no path: spark.read.format("kproto").load("DIR"), a log.dir or the directory of a partition')
    if "topic" not in values and values.get("view") == "batches":
        values["topic"] = None
    return Options(**values)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"{text!r} is none of {', '.join(names)}")
        return text

    return read


def _flag(text: str) -> bool:
    return _one_of("true", "false")(text.lower()) == "true"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number above 0")
    return int(text)


def _offsets(*words: str) -> Callable[[str], str | Mapping[str, int]]:
    def read(text: str) -> str | Mapping[str, int]:
        if text in words:
            return text
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            found = None
        is_offset = isinstance(found, dict) and all(type(value) is int and value >= 0 for value in found.values())
        if not is_offset:
            raise ValueError(f'{text!r} is neither {" nor ".join(words)} nor JSON like {{"0": 12}}')
        return dict(found)

    return read


def _topic(text: str) -> str | None:
    return None if text == "*" else text


_READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    name.lower(): (name, read)
    for name, read in (
        ("path", str),
        ("view", _one_of(*VIEWS)),
        ("topic", _topic),
        ("startingOffsets", _offsets(EARLIEST, LATEST_OFFSET)),
        ("endingOffsets", _offsets(LATEST_OFFSET)),
        ("taskBytes", _count),
        ("decoder", _one_of(*DECODERS)),
        ("checkCrc", _flag),
        ("allowEmpty", _flag),
        ("pushdown", _flag),
        ("partitions", _count),
        ("openTransactions", _one_of("wait", "emit")),
        ("failOnDataLoss", _flag),
        ("maxOffsetsPerTrigger", _count),
    )
}
