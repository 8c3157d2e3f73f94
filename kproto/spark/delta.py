"""Tables in Delta: an append is a transaction with a number, ``version + 1`` of one application id.

Delta commits a number once. A second run with the same number is skipped, or fails on a conflict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.spark.atomic_tables import AtomicTables
from kproto.spark.java import java_of
from kproto.spark.tables import GROWING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kproto.arrow.schemas import Table

APPLICATION = "kproto.tables"
CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "Concurrent", "ChangedException")
"""Parts of the errors of Delta when another run committed first."""


class DeltaTables(AtomicTables):
    """Delta tables below a path or URI."""

    metadata_folder = "_delta_log"

    def version(self, name: str) -> int | None:
        if not java_of(self.spark).io.delta.tables.DeltaTable.isDeltaTable(self.folder(name)):
            return None
        return int(self._history(name)[0]["version"])

    def rows(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.folder(name))

    def notes(self, name: str) -> list[str]:
        return [row["userMetadata"] for row in self._history(name) if row["userMetadata"]]

    def size(self) -> tuple[int, int]:
        details = [
            self.spark.sql(f"DESCRIBE DETAIL delta.`{self.folder(grown.name)}`").collect()[0] for grown in GROWING
        ]
        return sum(row["numFiles"] for row in details), sum(row["sizeInBytes"] for row in details)

    def append(self, table: Table, rows: DataFrame, version: int | None, note: str) -> int:
        writer = rows.write.format("delta").mode("append").partitionBy("date").option("userMetadata", note)
        number = 0 if version is None else version + 1
        writer = writer.option("txnAppId", APPLICATION).option("txnVersion", str(number)).option("mergeSchema", "true")
        try:
            writer.save(self.folder(table.name))
        except Exception as error:
            if any(name in str(error) for name in CONFLICTS):
                raise self.taken(table.name) from None
            raise
        for row in self._history(table.name):
            if row["userMetadata"] == note:
                return int(row["operationMetrics"].get("numOutputRows", 0))
        raise self.taken(table.name)

    def replace(self, table: Table, rows: DataFrame) -> int:
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.save(self.folder(table.name))
        return self.rows(table.name).count()

    def compact(self, name: str) -> int:
        metrics = self.spark.sql(f"OPTIMIZE delta.`{self.folder(name)}`").collect()[0]["metrics"]
        return int(metrics["numFilesRemoved"]) - int(metrics["numFilesAdded"])

    def _history(self, name: str) -> list[Any]:
        """Return the newest commits of a table, the newest first."""
        return self.spark.sql(f"DESCRIBE HISTORY delta.`{self.folder(name)}` LIMIT 20").collect()
