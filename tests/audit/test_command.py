"""`kproto audit`: the files that it reads, its report, its errors and exit codes.

Method. Each test runs `kproto audit` as a process.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tests.audit.recorded import log_of
from tests.commandline.commands import KPROTO, LIMIT_S, kproto

OLD, NEW = log_of("2.0.1"), log_of("3.9.2")
OLD_RELEASE = ("--kafka-version", "2.0")
BREAKS = "kproto: 1 of 6 clients would break on Kafka 4.4\n"


def test_the_report_has_the_client_that_would_break_and_what_was_read() -> None:
    done = kproto("audit", *OLD_RELEASE, str(OLD))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(BREAKS)
    assert (
        "ListOffsets v0  1x  last served by 3.9; 4.4 serves v1-v11; the client does not negotiate"
        in " ".join(done.stderr.split("\n"))
        or "ListOffsets v0  1x  last served by 3.9; 4.4 serves v1-v11  archive" in done.stderr
    )
    assert "set offsets.retention.minutes to at least 2,880 (here: not known)" in done.stderr
    assert "read 1 file: " in done.stderr
    assert "a request log has no connections that the broker closed" in done.stderr


@pytest.mark.parametrize(("target", "exit_code"), [("3.9", 0), ("4.0", 1)])
def test_options_stand_before_and_behind_the_files(target: str, exit_code: int) -> None:
    assert kproto("audit", "--target", target, str(NEW), "--fail-on-removed").returncode == exit_code


def test_reports_are_written_as_kproto_run_writes_them(tmp_path: Path) -> None:
    files = [tmp_path / f"report{suffix}" for suffix in (".json", ".md", ".html")]
    options = [word for file in files for word in ("--report", str(file))]
    done = kproto("audit", str(NEW), str(NEW), *options, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    report = json.loads(files[0].read_text())
    assert report["request_log"]["files"] == [str(NEW)] * 2
    assert report["request_log"]["lines"] == 2 * len(NEW.read_text().splitlines())
    assert report["run"] is None
    assert report["retention"]["offsets_retention_minutes"] is None
    assert {request["count"] for client in report["clients"] for request in client["requests"]} == {2}
    assert "requests of brokers left out" in files[1].read_text()
    assert str(NEW) in files[2].read_text()


def test_compressed_files_and_standard_input_are_read(tmp_path: Path) -> None:
    compressed = tmp_path / "kafka-request.log.gz"
    compressed.write_bytes(gzip.compress(NEW.read_bytes()))
    texts = [kproto("audit", str(path)).stderr for path in (NEW, compressed)]
    done = subprocess.run(
        [*KPROTO, "audit", "-"], input=NEW.read_bytes(), capture_output=True, timeout=LIMIT_S, check=True
    )
    assert len({*texts, done.stderr.decode()}) == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "no file given: write kproto audit FILE"),
        (("missing.log",), "can't read 'missing.log': No such file or directory"),
        (("{empty}",), "no request in '{empty}': a request log has lines with 'Completed request:' "
         "(kafka.request.logger at DEBUG or TRACE)"),
        (("{new}", "{empty}"), "no request in '{empty}': a request log has lines with 'Completed request:' "
         "(kafka.request.logger at DEBUG or TRACE)"),
        (("{old}",), "'{old}' is of a Kafka older than 2.8: give its release, for example --kafka-version 2.0"),
        (("{brokers}",), "no request of a client: all 1 requests are of brokers"),
        (("{cut}",), "can't read '{cut}': not a whole gzip file"),
        (("{text}",), "can't read '{text}': not a whole gzip file"),
        (("--fail-on-protocol-error", "{new}"), "no option '--fail-on-protocol-error'"),
    ],
    ids=range(9),
)  # fmt: skip
def test_errors_are_one_line(words: tuple[str, ...], error: str, tmp_path: Path) -> None:
    names = {"old": str(OLD), "new": str(NEW)}
    names |= {name: str(tmp_path / name) for name in ("empty", "brokers", "cut.gz", "text.gz")}
    names["cut"], names["text"] = names.pop("cut.gz"), names.pop("text.gz")
    Path(names["empty"]).write_text("[2026-11-23 21:00:00,000] INFO started (kafka.server.KafkaServer)\n")
    lines = NEW.read_text().splitlines(keepends=True)
    Path(names["brokers"]).write_text(next(line for line in lines if "BROKER_HEARTBEAT" in line))
    Path(names["cut"]).write_bytes(gzip.compress(NEW.read_bytes())[:-100])
    Path(names["text"]).write_bytes(NEW.read_bytes())
    done = kproto("audit", *(word.format(**names) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kproto audit: {error.format(**names)}")
    assert done.stderr.count("\n") == 1
