"""Options of the data source: names, meanings and validation, with one line for each mistake."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kproto.arrow.reading import DECODERS
from kproto.arrow.schemas import (
    ASSIGNMENT_RECORDS,
    COMMITS,
    GROUP_METADATA,
    LATEST,
    LOG_BATCHES,
    NEVER_NULL,
    SHARE_STATES,
    TRANSACTION_STATES,
    Table,
)
from kproto.errors import UsageError
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from kproto.spark.schemas import COVERAGE, spark_schema
from kproto.spark.source.scan import Scan, scan_arrow_schema, scan_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

VIEWS: dict[str, Table] = {
    "records": COMMITS,
    "latest": LATEST,
    "candidates": COMMITS,
    "batches": LOG_BATCHES,
    "groups": GROUP_METADATA,
    "assignments": ASSIGNMENT_RECORDS,
    "transactions": TRANSACTION_STATES,
    "share_states": SHARE_STATES,
    "coverage": COVERAGE,
}
TOPICS = {"transactions": TRANSACTION_TOPIC, "share_states": SHARE_STATE_TOPIC}
"""The topics of views that are not of the offsets topic."""
SCAN = "scan"
"""The view whose rows are of several tables, as `kproto.spark.source.scan` says."""
STREAMED_VIEWS = ("records", "batches", "groups")
TASK_BYTES = 32 << 20
"""Bytes of segments that one task reads: some seconds of work, beside which the start of a task costs little."""
EARLIEST, LATEST_OFFSET = "earliest", "latest"


class OptionError(UsageError):
    """An option is unknown, or has an invalid value; the text is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one read. Spark's names are in camel case: ``task_bytes`` is ``taskBytes``."""

    path: str
    """A log.dir, the directory of one partition, or one segment; also as a ``file:`` URL. Each worker opens it."""
    view: str = "records"
    """The rows to return:

    - records: a row for each record about one offset (schema `commits`)
    - groups: a row for each record about a group (`group_metadata`)
    - batches: a row for each batch of any topic, from its header (`log_batches`)
    - latest: the offsets that are valid at the end of the log (`latest`); one task reads all of a partition
    - candidates: of the rows of records, the last counted and the last pending one of each key in each task; enough to
      compute latest and expiry in a job that splits partitions
    - assignments: a row for each partition of a member in a record (`assignment_records`)
    - transactions: a row for each record of `__transaction_state` (`transaction_states`)
    - share_states: a row for each record of `__share_group_state` (`share_states`)
    - coverage: counts of what was read, a row for each part of a partition that a task read (`coverage`)
    - scan: rows of several tables, coverage too, from one pass; jobs use it with the option ``scan``
    """
    topic: str | None = OFFSETS_TOPIC
    """The topic whose partitions are read, ``*`` for all. Default: the offsets topic; all topics for view batches,
    `__transaction_state` for view transactions, `__share_group_state` for view share_states."""
    starting_offsets: str | Mapping[str, int] = EARLIEST
    """earliest, latest, or JSON ``{"0": 1200, "orders-3": 0}``: offsets by partition of the offsets topic, or by
    directory. Partitions that are not named are read from the beginning."""
    ending_offsets: str | Mapping[str, int] = LATEST_OFFSET
    """latest, or JSON as of ``startingOffsets``: the first offsets that are not read. Not for streams."""
    task_bytes: int = TASK_BYTES
    """Segments are split and combined to tasks of about this size."""
    decoder: str = "fast"
    """fast or reference (`kproto.arrow`)."""
    check_crc: bool = True
    """Whether checksums are verified. View batches never verifies them."""
    allow_empty: bool = False
    """Whether an empty log or a path without partitions gives no rows instead of an error."""
    pushdown: bool = True
    """Whether filters on group_id, log_partition, topic and partition decide what is read. Needs Spark's
    ``spark.sql.python.filterPushdown.enabled``, which `kproto.spark.register` sets."""
    partitions: int | None = None
    """The partition count of the offsets topic, which decides in which partition a group is looked for. Default: found
    out from the directories and the groups in them."""
    open_transactions: str = "wait"
    """For streams. wait: rows after the first record of an open transaction wait for its end, as in a consumer with
    read_committed isolation, so that each row has its final txn_state. emit: rows are returned at once, and a pending
    one never again with its final state."""
    fail_on_data_loss: bool = True
    """For streams: whether the query fails when offsets that it has not read are gone. false: it goes on; at
    the new end of a log that became shorter."""
    max_offsets_per_trigger: int | None = None
    """For streams: the most offsets that a micro-batch covers, over all partitions."""
    scan: Scan | None = None
    """What view scan returns: JSON of a `kproto.spark.source.scan.Scan`."""

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The topics to read; None: all."""
        return None if self.topic is None else (self.topic,)

    @property
    def _view(self) -> str:
        """The view whose schema the rows have: of a scan into a folder, Spark gets the coverage."""
        return "coverage" if self.scan is not None and self.scan.folder is not None else self.view

    @property
    def _never_null(self) -> frozenset[str]:
        return NEVER_NULL if self.view == "records" else frozenset()

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the view."""
        return VIEWS[self._view].arrow(self._never_null) if self._view in VIEWS else scan_arrow_schema()

    @property
    def schema(self) -> StructType:
        """The schema of the view."""
        return spark_schema(VIEWS[self._view], self._never_null) if self._view in VIEWS else scan_schema()


def read_options(given: Mapping[str, str]) -> Options:
    """Return the options of a read from Spark's strings.

    Raises:
        OptionError: an option is unknown or has an invalid value, or the path is missing.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        known = _READERS.get(name.lower())
        if known is None:
            raise OptionError(f"no option {name!r}; there are {', '.join(known for known, _ in _READERS.values())}")
        written, read = known
        try:
            values[_snake(written)] = read(text)
        except ValueError as error:
            raise OptionError(f"option {written}: {error}") from None
    if "path" not in values:
        raise OptionError('no path given: write .load("DIR"), a log.dir or the directory of a partition')
    if "topic" not in values and values.get("view") == "batches":
        values["topic"] = None
    if "topic" not in values and values.get("view") in TOPICS:
        values["topic"] = TOPICS[values["view"]]
    if (values.get("view") == SCAN) != ("scan" in values):
        raise OptionError("view scan and option scan need each other")
    return Options(**values)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _one_of(*names: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"{text!r} is not one of {', '.join(names)}")
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
        ("view", _one_of(*VIEWS, SCAN)),
        ("scan", Scan.from_json),
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
