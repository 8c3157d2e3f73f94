"""Logs in stores: a server of S3 in a process of its own, and fsspec's store in memory, which counts requests."""

from __future__ import annotations

import gc
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.errors import MissingPackage
from kproto.logs import remote
from kproto.logs.files import find_partitions, survey, with_listings
from kproto.logs.locations import location, open_file
from kproto.logs.ranges import OffsetRange, RangeBlocks
from kproto.logs.remote import RemotePath, StoreError
from kproto.spark.cli import main as spark_main
from kproto.spark.commands import JOBS
from kproto.spark.engine import EMBEDDED, using
from kproto.spark.source.options import Options
from kproto.spark.source.plan import parts_to_read
from kproto.spark.source.pruning import Wanted
from kproto_server.commandline.cli import main
from tests.arrow.living_log import LivingLog
from tests.fixture_files import GOLDEN
from tests.requirements import need_package
from tests.stores.s3_server import BUCKET, bucket, configure, environment, s3_server, upload

RECORDED = GOLDEN / "logs" / "2.0.1"

NEEDED = {"what-if": ("--retention-minutes", "1440")}
"""Options that a job needs."""

Output = tuple[int, str, str]


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with s3_server() as port:
        files = bucket(port)
        files.mkdir(BUCKET)
        upload(files, RECORDED, f"{BUCKET}/broker/logs")
        yield port


@pytest.fixture
def s3(server: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Configure fsspec as the environment of a new process would."""
    configure(monkeypatch, environment(server))
    return server


@pytest.fixture
def output_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., Output]:
    def run(*words: str, command: Callable[[list[str]], int] = main) -> Output:
        capsys.readouterr()
        with using(EMBEDDED):
            code = command(list(words))
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(("scheme", "words"), [("s3", "dump"), ("s3a", "verify"), ("s3a", "retention")])
def test_commands_print_of_an_object_store_what_they_print_of_the_same_files(
    s3: int, output_of: Callable[..., Output], words: str, scheme: str
) -> None:
    code, out, err = output_of("log", *words.split(), str(RECORDED))
    assert out
    uri = f"{scheme}://{BUCKET}/broker/logs"
    assert output_of("log", *words.split(), uri) == (code, out, err.replace(str(RECORDED), uri))


@pytest.mark.parametrize("job", sorted(JOBS.keys() - {"share-partitions"}))  # brokers of 2.0 have no share groups
def test_jobs_have_the_same_rows_from_an_object_store(s3: int, output_of: Callable[..., Output], job: str) -> None:
    words = (job, *NEEDED.get(job, ()), "--format", "jsonl", "--engine", EMBEDDED)
    code, rows, _ = output_of(*words, str(RECORDED), command=spark_main)
    assert code == 0
    assert output_of(*words, f"s3://{BUCKET}/broker/logs", command=spark_main)[:2] == (0, rows)


def test_a_page_and_rows_are_read_from_and_written_to_an_object_store(
    s3: int, output_of: Callable[..., Output], tmp_path: Path
) -> None:
    uri, made = f"s3://{BUCKET}/broker/logs", RemotePath(f"s3://{BUCKET}/made")
    code, _, err = output_of("log", "report", uri, "-o", str(made / "page.html"))
    assert code == 0, err
    assert uri in (made / "page.html").read_text("utf-8")
    for words in (("latest", "--format", "csv"), ("watch", "--format", "json")):
        printed = output_of(*words, uri, command=spark_main)[:2]
        assert output_of(*words, uri, "-o", str(made / words[0]), command=spark_main)[0] == printed[0]
        assert (made / words[0]).read_text("utf-8") == printed[1]
    files = [tmp_path / "remote.arrow", tmp_path / "local.arrow"]
    for source, file in zip((uri, str(RECORDED)), files, strict=True):
        assert output_of("log", "export", source, "--output", str(file))[0] == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("tables", "-o", "https://host/x"), "https://host/x: only directories and object stores can be written"),
        (("latest", "--format", "parquet", "-o", "gs://b/x"), "gs://b/x: rows in Parquet go to local directories only"),
        (("report", "-o", "https://host/x"), "https://host/x: only directories and object stores can be written"),
    ],
)
def test_what_is_not_written_to_a_store_is_refused_in_one_line(
    output_of: Callable[..., Output], words: tuple[str, ...], line: str
) -> None:
    code, out, err = output_of(*words, str(RECORDED), command=spark_main)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("s3://no-bucket/logs", "no such file or directory"),
        (f"s3://{BUCKET}/nothing", "no such file or directory"),
        (f"s3://{BUCKET}/broker", "no segments and no directories like __consumer_offsets-0"),
        (f"s3://{BUCKET}/broker/logs/__consumer_offsets-0/leader-epoch-checkpoint", "not a segment"),
        ("gs://bucket/logs", "gs:// needs the package gcsfs (pip install gcsfs)"),
        ("abfs://bucket/logs", "abfs:// needs the package adlfs (pip install adlfs)"),
        ("nowhere://bucket/logs", "Protocol not known: nowhere"),
    ],
)
def test_a_uri_without_a_log_is_an_error_in_one_line(
    s3: int, output_of: Callable[..., Output], path: str, reason: str
) -> None:
    for command in ("dump", "retention") if not path.startswith("nowhere") else ("dump",):
        code, out, err = output_of("log", command, path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert reason in err


def test_a_store_that_cannot_be_reached_is_an_error_in_one_line(
    s3: int, monkeypatch: pytest.MonkeyPatch, output_of: Callable[..., Output]
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    configure(monkeypatch, environment(1))
    code, out, err = output_of("log", "dump", f"s3://{BUCKET}/broker/logs")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"kproto log dump: s3://{BUCKET}/broker/logs: Could not connect to the endpoint URL" in err


def test_wrong_credentials_are_an_error_in_one_line(s3: int, output_of: Callable[..., Output]) -> None:
    checked_after(s3, "0")
    try:
        code, out, err = output_of("log", "dump", f"s3://{BUCKET}/broker/logs")
    finally:
        checked_after(s3, "inf")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"kproto log dump: s3://{BUCKET}/broker/logs: ")
    assert "Forbidden" in err or "Access" in err


def checked_after(port: int, requests: str) -> None:
    """Make the server check credentials, of which it knows none, after so many requests."""
    url, headers = f"http://127.0.0.1:{port}/moto-api/reset-auth", {"Content-Type": "text/plain"}
    with urlopen(Request(url, requests.encode(), headers)) as response:
        response.read()


def test_a_copy_in_an_object_store_is_continued(
    s3: int, monkeypatch: pytest.MonkeyPatch, output_of: Callable[..., Output], tmp_path: Path
) -> None:
    log = LivingLog(tmp_path / "log" / "__consumer_offsets-0")
    log.filled(2, batches=20)
    (tmp_path / "log" / "meta.properties").write_text("cluster.id=abc\n")
    uri = f"s3://{BUCKET}/copy"

    def collect() -> int:
        code, out, err = output_of("log", "collect", str(tmp_path / "log"), "--to", uri)
        assert (code, err) == (0, "")
        return int(out.split()[0])

    sizes = [path.stat().st_size for path in sorted(log.directory.glob("*.log"))]
    assert collect() == sum(sizes)
    assert output_of("log", "dump", uri)[1] == output_of("log", "dump", str(tmp_path / "log"))[1]
    assert collect() == 0
    log.append()
    log.append(size=50)  # a broker that is still writing
    assert collect() > sizes[-1]
    assert read(uri) == log.next_offset
    log.path(0).unlink()
    assert collect() == 0
    assert find_partitions(uri)[0].segments()[0].base_offset > 0


def test_an_interrupted_upload_leaves_the_object_as_it_was(s3: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "WRITE_BYTES", 5 << 20)
    path = RemotePath(f"s3://{BUCKET}/whole")
    path.write([b"old"])

    def pieces() -> Iterator[bytes]:
        for _ in range(7):
            yield bytes(1 << 20)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        path.write(pieces())
    assert path.read_bytes() == b"old"
    path.write(bytes(1 << 20) for _ in range(7))
    assert path.stat().st_size == 7 << 20
    path.unlink()
    assert not path.exists()


def test_of_two_writers_of_one_object_the_store_lets_one_create_it(s3: int) -> None:
    path = RemotePath(f"s3://{BUCKET}/manifest.json")
    assert path.create(b"first")
    assert not path.create(b"second")
    assert path.create(b"first"), "a request that a client repeats"
    assert path.read_bytes() == b"first"


@pytest.mark.parametrize(
    ("destination", "reason"),
    [
        (f"s3://{BUCKET}/broker/logs", "is not empty, and no copy of a log.dir"),
        ("s3://no-bucket/x", "s3://no-bucket/x/"),
    ],
)
def test_a_place_that_cannot_have_a_copy_is_refused(
    s3: int, output_of: Callable[..., Output], destination: str, reason: str
) -> None:
    code, out, err = output_of("log", "collect", str(RECORDED), "--to", destination)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


def test_a_log_is_read_from_the_directories_that_a_web_server_lists(output_of: Callable[..., Output]) -> None:
    need_package("aiohttp")
    handler = partial(QuietHandler, directory=str(RECORDED.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        thread = Thread(target=web.serve_forever)
        thread.start()
        try:
            uri = f"http://127.0.0.1:{web.server_port}"
            assert output_of("log", "dump", f"{uri}/2.0.1") == output_of("log", "dump", str(RECORDED))
            code, out, err = output_of("log", "dump", f"{uri}/none")
        finally:
            web.shutdown()
            thread.join()
    assert (code, out, err) == (2, "", f"kproto log dump: {uri}/none: no such file or directory\n")


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Log nothing."""


class Counted:
    """fsspec's store in memory, whose requests are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from fsspec.implementations.memory import MemoryFileSystem

        self.files: Any = MemoryFileSystem()
        self.uri = f"memory://{uuid.uuid4()}"
        self.listings: list[str] = []
        self.ranges: list[tuple[int, int]] = []
        self.after_range: Callable[[], None] = lambda: None
        ls, cat_file = MemoryFileSystem.ls, MemoryFileSystem.cat_file

        def listing(files: Any, path: str, detail: bool = True, **options: Any) -> Any:
            self.listings.append(path)
            return ls(files, path, detail=detail, **options)

        def range_of(files: Any, path: str, start: int | None = None, end: int | None = None, **options: Any) -> Any:
            data = cat_file(files, path, start=start, end=end, **options)
            if start is not None and end is not None:
                self.ranges.append((start, end))
                self.after_range()
            return data

        monkeypatch.setattr(MemoryFileSystem, "ls", listing)
        monkeypatch.setattr(MemoryFileSystem, "cat_file", range_of)

    def put(self, directory: Path) -> str:
        """Copy a partition; return the URI of its log.dir."""
        for path in directory.iterdir():
            self.files.pipe_file(f"{self.uri}/{directory.name}/{path.name}", path.read_bytes())
        self.listings.clear()
        return self.uri


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Counted:
    need_package("fsspec")
    return Counted(monkeypatch)


@pytest.fixture
def log(tmp_path: Path) -> LivingLog:
    return LivingLog(tmp_path / "__consumer_offsets-0")


def read(uri: str) -> int:
    (partition,) = find_partitions(uri)
    reader = RangeReader(OffsetRange(partition, 0, None), View.COMMITS)
    return sum(len(decoded.rows) for decoded in reader if decoded.rows is not None)


def test_segments_are_read_by_ranges(log: LivingLog, store: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "READ_AHEAD_BYTES", 1 << 10)
    log.filled(2, batches=50)
    uri = store.put(log.directory)
    assert read(uri) == read(str(log.directory.parent))
    sizes = [path.stat().st_size for path in log.directory.glob("*.log")]
    assert min(sizes) > 4 << 10
    assert max(end - start for start, end in store.ranges) == 1 << 10
    assert sum(end - start for start, end in store.ranges) <= sum(sizes) + len(sizes) * (1 << 10)


def test_a_range_begins_near_its_offset(log: LivingLog, store: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PAGE_BYTES", 1 << 10)
    monkeypatch.setattr(remote, "READ_AHEAD_BYTES", 1 << 10)
    log.filled(1, batches=200)
    (partition,) = find_partitions(store.put(log.directory))
    blocks = list(RangeBlocks(OffsetRange(partition, 1900, None)))
    assert blocks[0].position > log.path(0).stat().st_size * 0.8
    assert sum(end - start for start, end in store.ranges) < log.path(0).stat().st_size / 2


def test_a_plan_and_a_task_list_each_directory_once(log: LivingLog, store: Counted) -> None:
    log.filled(5)
    uri = store.put(log.directory)
    parts = list(parts_to_read(Options(path=uri, task_bytes=1), Wanted()))
    assert len(parts) == 5
    partition = [path for path in store.listings if path.endswith("__consumer_offsets-0")]
    assert len(partition) == 1, store.listings
    (without_listing,) = find_partitions(uri)  # as a worker gets it
    store.listings.clear()
    assert [block.position for block in RangeBlocks(parts[2].range._replace(partition=without_listing))]
    assert len(store.listings) == 1


@pytest.mark.parametrize("job", ["lag", "check", "assignments", "report"])
def test_a_command_lists_each_directory_once(
    store: Counted, output_of: Callable[..., Output], tmp_path: Path, job: str
) -> None:
    for directory in (path for path in RECORDED.iterdir() if path.is_dir()):
        uri = store.put(directory)
    words = (job, uri, "--engine", EMBEDDED, "-o", str(tmp_path / job))
    assert output_of(*words, command=spark_main)[0] == 0
    listings = Counter(store.listings)
    assert "__consumer_offsets-0" in {path.rpartition("/")[2] for path in listings}
    assert set(listings.values()) == {1}, listings


def test_partitions_are_listed_at_the_same_time_and_know_their_sizes(log: LivingLog, store: Counted) -> None:
    log.filled(2)
    uri = store.put(log.directory)
    (partition,) = with_listings(find_partitions(uri))
    store.listings.clear()
    sizes = [size for _, size in partition.sizes()]
    assert sizes == [size for _, size in log.partition.sizes()]
    assert store.listings == []
    assert survey([partition]).size == sum(sizes)


def test_reading_goes_on_in_a_file_that_replaced_the_one_being_read(
    log: LivingLog, store: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "READ_AHEAD_BYTES", 2 << 10)
    monkeypatch.setattr("kproto.logs.blocks.BLOCK_SIZE", 1 << 10)
    log.filled(1, batches=50)
    uri = store.put(log.directory)
    log.append()
    name = f"{uri}/{log.directory.name}/{log.path(0).name}"

    def replace() -> None:
        if len(store.ranges) == 2:
            store.files.pipe_file(name, log.path(0).read_bytes())

    store.after_range = replace
    (partition,) = find_partitions(uri)
    blocks = list(RangeBlocks(OffsetRange(partition, 0, None)))
    offsets = [offset for block in blocks for offset in (len(block.starts),)]
    assert sum(offsets) == 51


def test_a_segment_that_is_removed_while_it_is_read_is_missed_by_nobody(
    log: LivingLog, store: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.filled(2)
    uri = store.put(log.directory)
    (partition,) = find_partitions(uri)
    blocks = iter(RangeBlocks(OffsetRange(partition, 0, None)))
    first = next(blocks)
    store.files.rm(f"{uri}/{log.directory.name}/{log.path(0).name}")
    assert [block.base_offset for block in (first, *blocks)] == [0, log.partition.segments()[1].base_offset]


def test_a_server_that_ignores_ranges_is_an_error(
    log: LivingLog, store: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    log.filled(1, batches=50)
    path = location(f"{store.put(log.directory)}/{log.directory.name}/{log.path(0).name}")
    data = log.path(0).read_bytes()
    monkeypatch.setattr(MemoryFileSystem, "cat_file", lambda *_arguments, **_options: data)
    monkeypatch.setattr(remote, "READ_AHEAD_BYTES", 1 << 10)
    with open_file(path) as file, pytest.raises(StoreError, match="the server ignores ranges"):
        file.read(100)


def test_a_file_of_a_store_is_read_as_a_local_one(tmp_path: Path, store: Counted) -> None:
    data = bytes(range(256)) * 40
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "x.log").write_bytes(data)
    path = location(f"{store.put(folder)}/f/x.log")
    for opened in (open_file(path), open_file(folder / "x.log")):
        with opened as file:
            assert file.size == len(data)
            assert file.seek(100) == 100
            assert file.read(10) == data[100:110]
            assert file.pread(20, 5) == data[5:25]
            assert file.read(len(data)) == data[110:]
            assert file.read(1) == b""
            assert file.pread(20, len(data) - 5) == data[-5:]
            assert file.pread(20, len(data)) == b""


def test_paths_of_a_store_are_like_those_of_this_machine(store: Counted) -> None:
    path = RemotePath(f"{store.uri}/a/00.log/")
    assert (path.name, path.suffix, path.parent.name) == ("00.log", ".log", "a")
    assert path.with_suffix(".index").name == "00.index"
    assert not path.exists()
    store.files.pipe_file(f"{store.uri}/a/00.log", b"x")
    assert (path.exists(), path.is_file(), path.is_dir(), path.parent.is_dir()) == (True, True, False, True)
    assert [entry.name for entry in path.parent.iterdir()] == ["00.log"]


def test_a_missing_fsspec_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(remote, "import_module", missing)
    with pytest.raises(MissingPackage, match=re.escape("s3:// needs the package fsspec (pip install fsspec)")):
        find_partitions("s3://bucket/logs")


def test_settings_of_hdfs_are_its_own(log: LivingLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """hdfs-native takes each option of fsspec for a setting of Hadoop, and those are strings; without it, fsspec takes
    pyarrow, which needs a Java and a `libhdfs` that are not there.
    """
    need_package("fsspec")
    from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

    problems: list[str] = []
    stored: dict[str, Any] = {}
    freed: list[object] = []
    monkeypatch.setattr(remote, "_of_hdfs", {})

    class OfHadoop(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
        protocol = "hdfs"

        def __init__(self, **settings: str) -> None:
            if problems:
                raise OSError(problems[0])
            assert all(isinstance(value, str) for value in settings.values())
            super().__init__()
            self.store: dict[str, Any] = stored

        def __del__(self) -> None:
            freed.append(self)

    monkeypatch.setitem(fsspec_registry(), "hdfs", OfHadoop)
    log.filled(1)
    for path in log.directory.iterdir():
        stored[f"hdfs://logs/{log.directory.name}/{path.name}"] = MemoryFile(data=path.read_bytes())
    assert read("hdfs://logs") == 30
    OfHadoop.clear_instance_cache()  # as fsspec does in a forked process
    gc.collect()
    assert not freed
    problems.append("Unable to load libjvm")
    line = "hdfs://logs: Unable to load libjvm: pip install hdfs-native, which needs neither Java nor libhdfs"
    with pytest.raises(StoreError, match=re.escape(line)):
        find_partitions("hdfs://logs")


def fsspec_registry() -> Any:
    from fsspec.registry import _registry

    return _registry
