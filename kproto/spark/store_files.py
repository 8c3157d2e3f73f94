"""The files of tables in an object store, as the workers write and read them."""

from __future__ import annotations

import json
import tempfile
import uuid
from functools import partial
from io import BytesIO
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kproto.logs.locations import location
from kproto.logs.remote import WRITE_BYTES, RemotePath
from kproto.spark.source.counted import CountedRows
from kproto.spark.source.kept import OPEN_MAX
from kproto.spark.store_manifest import DataFile
from kproto.spark.tables import DATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto.arrow.schemas import Table
    from kproto.spark.tables import Growing

    Batches = Iterator[pa.RecordBatch]


def read_files(batches: Batches, schema: pa.Schema) -> Batches:
    """Yield the rows of the files that rows with their `uri` name."""
    for batch in batches:
        yield from _read(batch["uri"].to_pylist(), schema)


def table_of_files(uris: Iterable[str], schema: pa.Schema) -> pa.Table:
    """Return the rows of files."""
    return pa.Table.from_batches(_read(uris, schema), schema)


def _read(uris: Iterable[str], schema: pa.Schema) -> Batches:
    for uri in uris:
        file = pq.ParquetFile(BytesIO(location(uri).read_bytes()))
        for batch in file.iter_batches():
            names = set(batch.schema.names)
            columns = [
                batch[one.name].cast(one.type) if one.name in names else pa.nulls(len(batch), one.type)
                for one in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def write_files(batches: Batches, folder: str, version: int, table: Table, grown: Growing | None) -> Batches:
    """Write rows to one file for each date, or to one if they have none; yield each `DataFile` as JSON.

    Of more dates than `OPEN_MAX`, one may have several files.
    """
    schema = table.arrow()
    files: dict[str, _OpenFile] = {}
    for batch in batches:
        for below, rows in _by_date(batch):
            if below not in files:
                if len(files) == OPEN_MAX:
                    yield _uploaded(files, folder, version)
                    files = {}
                files[below] = _OpenFile(schema, grown)
            files[below].add(rows)
    if files:
        yield _uploaded(files, folder, version)


def _uploaded(files: Mapping[str, _OpenFile], folder: str, version: int) -> pa.RecordBatch:
    made = (file.upload(folder, f"{below}{version:020}-{uuid.uuid4()}.parquet") for below, file in files.items())
    return pa.RecordBatch.from_pydict({"file": [json.dumps(one) for one in made]})


def _by_date(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield rows with the folder that they belong to."""
    if DATE not in batch.schema.names:
        yield "", batch
        return
    for day in batch[DATE].unique():
        yield f"{DATE}={day.as_py().isoformat()}/", batch.filter(pc.equal(batch[DATE], day))


class _OpenFile:
    """A file that is being made, on this machine: it is not in memory as a whole."""

    def __init__(self, schema: pa.Schema, grown: Growing | None) -> None:
        self._schema = schema
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # `upload` closes it
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")
        self._rows = 0
        self._counted = None if grown is None else CountedRows(grown.partition, grown.last)

    def add(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows.select(self._schema.names).cast(self._schema))
        self._rows += len(rows)
        if self._counted is not None:
            self._counted.add(rows)

    def upload(self, folder: str, path: str) -> DataFile:
        """End the file, and make it appear in the store."""
        with self._file:
            self._writer.close()
            size = self._file.tell()
            self._file.seek(0)
            target = location(f"{folder}/{path}")
            assert isinstance(target, RemotePath), "these tables are in stores"
            target.write(iter(partial(self._file.read, WRITE_BYTES), b""))
        found = {} if self._counted is None else self._counted.by_partition
        return DataFile(path, size, self._rows, [[*key, mark] for key, (mark, _) in sorted(found.items())])
