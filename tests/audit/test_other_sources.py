"""`kproto audit` of brokers' metrics and of other reports, and where clients come from.

Method. The reports are written by `kproto audit` from recorded request logs. The metrics have the names that the JMX
exporter gives without rules, and with those of common charts.
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from kproto_server.audit.log_lines import logged_request
from kproto_server.audit.report_files import ReportFiles
from kproto_server.commandline import cli
from kproto_server.observation.merging import merged
from kproto_server.report import json_file
from tests.audit.recorded import log_of
from tests.fixture_files import FIXTURES
from tests.report.samples import everything, report_of

PLAIN = """# HELP kafka_network_RequestMetrics_Count Attribute exposed for management
# TYPE kafka_network_RequestMetrics_Count untyped
kafka_network_RequestMetrics_Count{name="RequestsPerSec",request="Produce",version="9",} 7.0
kafka_network_RequestMetrics_Count{name="DeprecatedRequestsPerSec",request="ListOffsets",version="0",\
clientSoftwareName="unknown",clientSoftwareVersion="unknown",} 12.0
kafka_network_RequestMetrics_OneMinuteRate{name="DeprecatedRequestsPerSec",request="ListOffsets",version="0",\
clientSoftwareName="unknown",clientSoftwareVersion="unknown",} 0.4
kafka_network_RequestMetrics_Count{name="DeprecatedRequestsPerSec",request="Fetch",version="3",\
clientSoftwareName="old-client",clientSoftwareVersion="1.0",} 1.5E3
"""
RULES = """# TYPE kafka_network_requestmetrics_deprecatedrequests_total counter
kafka_network_requestmetrics_deprecatedrequests_total{request="LIST_OFFSETS",version="0"} 30 1700000000000
kafka_network_requestmetrics_deprecatedrequests_total{request="Fetch",version="3",clientsoftwarename="old-client",\
clientsoftwareversion="1.0"} 0
kafka_network_requestmetrics_deprecatedrequests_total{request="Nothing",version="3"} 5
kafka_network_requestmetrics_deprecatedrequests_oneminuterate{request="ListOffsets",version="0"} 5
"""


def audited(folder: Path, *words: str) -> dict[str, Any]:
    report = folder / "audited"
    report.mkdir(exist_ok=True)
    path = report / "report.json"
    assert cli.main(["audit", *words, "--quiet", "--report", str(path)]) == 0
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_counts_of_deprecated_requests_would_break(tmp_path: Path) -> None:
    files = [tmp_path / "plain.prom", tmp_path / "rules.prom"]
    for path, text in zip(files, (PLAIN, RULES), strict=True):
        path.write_text(text)
    report = audited(tmp_path, *map(str, files), "--target", "4.0")
    assert [(row["software_name"], row["api"], row["api_version"], row["count"]) for row in report["breaks"]] == [
        (None, "ListOffsets", 0, 42),
        ("old-client", "Fetch", 3, 1500),
    ]
    assert report["metrics"] == {"files": list(map(str, files)), "samples": 4, "unreadable_samples": 1}


def test_counts_that_jmx_tool_writes_would_break(tmp_path: Path) -> None:
    """With rates, and with the two attributes that it adds unless it is given the names of attributes."""
    written = FIXTURES / "metrics/3.9.2.properties"
    path = tmp_path / "jmx.properties"
    others = (":OneMinuteRate=0.4", ":EventType=requests", ":RateUnit=SECONDS")
    path.write_text("".join(written.read_text().replace(":Count=2", other) for other in (":Count=2", *others)))
    report = audited(tmp_path, str(path), "--target", "4.0")
    assert [(row["software_name"], row["api"], row["api_version"], row["count"]) for row in report["breaks"]] == [
        ("old-client", "ListOffsets", 0, 2)
    ]
    assert report["metrics"] == {"files": [str(path)], "samples": 1, "unreadable_samples": 0}


def test_a_directory_of_reports_is_one_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = tmp_path / "reports"
    for name, release in (("one", "3.9.2"), ("two/deep", "3.9.2"), ("three", "2.0.1")):
        path = reports / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        words = ["--kafka-version", "2.0"] if release == "2.0.1" else []
        assert cli.main(["audit", *words, str(log_of(release)), "--quiet", "--report", str(path)]) == 0
    (reports / "package.json").write_text('{"name": "no report"}')
    whole = audited(tmp_path, str(reports))
    both = audited(tmp_path, str(reports / "one.json"), str(reports / "two/deep.json"))
    single = json.loads((reports / "one.json").read_text())
    assert whole["kafka_version"] == "2.0"
    assert both["kafka_version"] == "latest"
    assert (len(whole["reports"]["files"]), whole["reports"]["other_files"]) == (3, 1)

    def rows(report: dict[str, Any]) -> list[tuple[str, str, int, str, int]]:
        return [
            (client["client_id"], row["api"], row["api_version"], row["verdict"], row["count"])
            for client in report["clients"]
            for row in client["requests"]
        ]

    assert rows(both) == [(*row[:-1], 2 * row[-1]) for row in rows(single)]
    for ours, theirs in zip(both["clients"], single["clients"], strict=True):
        for name in ("errors", "offset_commits"):
            assert [row["count"] for row in ours[name]] == [2 * row["count"] for row in theirs[name]]
        for name in ("hosts", "principals", "largest_retention_ms", "negotiates", "library"):
            assert ours[name] == theirs[name]


def test_each_count_of_a_report_is_read_and_added() -> None:
    files = ReportFiles()
    report = json_file.render(report_of(everything())).encode()
    files.read(BytesIO(report))
    assert merged(files.clients) == everything().snapshot()
    files.read(BytesIO(report))
    for both, one in zip(merged(files.clients).clients, everything().snapshot().clients, strict=True):
        for name in ("requests", "errors", "commits", "closed", "failed_authentications", "logins"):
            counts = [row.count for row in getattr(both, name)]
            assert counts == [2 * row.count for row in getattr(one, name)]
        assert (both.hosts, both.largest_retention_ms) == (one.hosts, one.largest_retention_ms)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"schema": 1}', "no report of kproto in JSON"),
        ('{"schema": 99, "clients": []}', "a report of schema 99; this kproto reads 1"),
        ('{"schema": 1, "kafka_version": "latest", "clients": [{}]}', "a report that lacks fields, or has others"),
        ("{", "no report of kproto in JSON"),
    ],
)
def test_a_file_that_is_no_report_is_one_line(
    content: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    assert cli.main(["audit", str(path)]) == 2
    assert capsys.readouterr().err == f"kproto audit: can't read {str(path)!r}: {error}\n"
    assert cli.main(["audit", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "kproto audit: no report: 1 JSON files in the directory are others\n"


def test_a_directory_or_metrics_with_nothing_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.prom"
    path.write_text("# HELP up\nup 1\n")
    assert cli.main(["audit", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"kproto audit: no count of DeprecatedRequestsPerSec in {str(path)!r}")
    assert cli.main(["audit", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"kproto audit: no report in {str(tmp_path)!r}")


class TestOrigins:
    @pytest.mark.parametrize(
        ("connection", "host"),
        [
            ("127.0.0.1:22551-10.0.0.2:33296", "10.0.0.2"),
            ("127.0.0.1:22551-10.0.0.2:33296-0", "10.0.0.2"),
            ("127.0.0.1:22551-10.0.0.2:33296-1-5", "10.0.0.2"),
            ("0:0:0:0:0:0:0:1:9092-fe80:0:0:0:0:0:0:2:40000-0", "fe80:0:0:0:0:0:0:2"),
        ],
    )
    def test_a_connection_has_the_clients_host(self, connection: str, host: str) -> None:
        lines = log_of("4.4.0").read_text().splitlines()
        request = next(found for line in lines if (found := logged_request(line)) is not None)
        assert request._replace(connection=connection).client_host == host

    def test_the_report_names_hosts_and_principals(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        text = log_of("2.0.1").read_text()
        path = tmp_path / "kafka-request.log"
        path.write_text(text + text.replace("-127.0.0.1:", "-10.0.0.2:").replace("User:ANONYMOUS", "User:CN=a,OU=b"))
        report = audited(tmp_path, "--kafka-version", "2.0", str(path))
        for client in report["clients"]:
            assert client["hosts"] == ["10.0.0.2", "127.0.0.1"]
            assert client["principals"] == ["User:ANONYMOUS", "User:CN=a,OU=b"]
        files = [tmp_path / f"report{suffix}" for suffix in (".md", ".html")]
        words = [word for file in files for word in ("--report", str(file))]
        assert cli.main(["audit", "--kafka-version", "2.0", str(path), *words]) == 0
        for shown in (capsys.readouterr().err, *(file.read_text() for file in files)):
            assert "from 10.0.0.2 as User:CN=a,OU=b" in " ".join(shown.split())
