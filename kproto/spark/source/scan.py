"""View ``scan``: the rows of several tables from one pass over a log, which jobs share.

Theory of operation. A data source of Spark has one schema, so a row of a scan is a row of one of several tables, which
`ROW_OF` names. The columns of commits, of which there are most rows, are columns of the scan; each other table is one
column, a struct. What a job does not need is not returned, but decoded, checked and counted: each range that is decoded
has a row of `COVERAGE`. With a ``folder``, these are the only rows, and tasks write the others to files
(`kproto.spark.source.kept`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kproto.arrow.schemas import COMMITS, GROUP_METADATA, LOG_BATCHES
from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.spark.schemas import COVERAGE, spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from kproto.logs.files import PartitionDirectory


ROW_OF = "row_of"
"""The column with the name of the table that a row is of."""
NESTED = (GROUP_METADATA, LOG_BATCHES, COVERAGE)
"""The tables that are columns of a scan."""


@dataclass(frozen=True)
class Scan:
    """What a scan returns beside coverage: the tables are `COMMITS`, `GROUP_METADATA` and `LOG_BATCHES`, by name."""

    after: Mapping[str, Mapping[str, int]]
    """The tables to return, each with the offset in each directory up to which its rows are left out."""
    last_commits: bool = False
    """Whether, of commits, the last counted and the last pending one of each key in each task are enough."""
    markers_only: bool = False
    """Whether, of batches of the offsets topic, the end markers of transactions are enough."""
    groups: tuple[str, ...] = ()
    """The groups whose rows are returned; empty: all."""
    partitions: tuple[int, ...] | None = None
    """The partitions of the offsets topic that are decoded; None: all."""
    headers: bool = False
    """Whether the batches of all partitions that are not decoded are returned, also of other topics."""
    without: tuple[str, ...] = ()
    """The topics of which no batches are returned: the job reads their records by a view of their own."""
    folder: str | None = None
    """The directory below which tasks write the rows as Parquet; None: they return them."""
    days: Mapping[str, str] = field(default_factory=dict)
    """By table, the time whose day, in UTC, decides in which folder a row is written; of others, one has all days."""
    of_groups: pa.Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "of_groups", pa.array(self.groups, pa.string()))

    def to_json(self) -> str:
        """Return the value of the option ``scan``."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "of_groups"})

    @classmethod
    def from_json(cls, text: str) -> Scan:
        """Return what `to_json` wrote.

        Raises:
            ValueError: something else wrote it.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            values |= {name: tuple(values[name]) for name in ("groups", "without")}
            values["partitions"] = None if values["partitions"] is None else tuple(values["partitions"])
            return cls(**values)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{text!r} is no scan of kproto.spark.log_input") from error

    def decodes(self, partition: PartitionDirectory) -> bool:
        """Return whether the records of a partition are decoded."""
        return partition.topic == OFFSETS_TOPIC and (self.partitions is None or partition.number in self.partitions)

    def reads(self, partition: PartitionDirectory) -> bool:
        return self.decodes(partition) or (self.headers and partition.topic not in self.without)


def scan_schema() -> StructType:
    """Return the Spark schema of the view."""
    from pyspark.sql.types import StringType, StructType

    schema = StructType([*StructType().add(ROW_OF, StringType()).fields, *spark_schema(COMMITS).fields])
    for table in NESTED:
        schema = schema.add(table.name, spark_schema(table))
    return schema


def scan_arrow_schema() -> pa.Schema:
    """Return the Arrow schema of the view."""
    nested = [pa.field(table.name, pa.struct(list(table.arrow()))) for table in NESTED]
    return pa.schema([pa.field(ROW_OF, pa.string()), *COMMITS.arrow(), *nested])
