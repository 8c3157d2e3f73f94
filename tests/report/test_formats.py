"""The four formats of the report are correct and complete, and names that clients choose cannot break them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kproto_server.observation.observe import Observations
from kproto_server.report import files, html_page, json_file, markdown, phrases, text
from kproto_server.report.model import Report
from kproto_server.requests.context import ConnectionInfo
from tests.report.samples import (
    EACH_SOURCE,
    FINISHED,
    LOG,
    NO_FORWARD_SECRECY,
    conversation,
    everything,
    old_consumer,
    report_of,
)

HOSTILE = "\x1b[2J<script>alert(1)</script>|`x`\n# head\x07\u202e&amp;"


@pytest.fixture
def full() -> Report:
    return report_of(everything(), target="4.0", run=FINISHED)


@pytest.fixture
def hostile() -> Report:
    observations = Observations()
    info = ConnectionInfo("/127.0.0.1", software_name=HOSTILE, software_version=HOSTILE)
    observations.request(info, HOSTILE, 1, 1)
    observations.commit_layout(info, HOSTILE, 3, HOSTILE, 5)
    observations.closed(info, HOSTILE, 3, 1, HOSTILE)
    observations.failed_authentication(info, HOSTILE, HOSTILE, HOSTILE)
    return report_of(observations, target="4.0", run=FINISHED)


@pytest.fixture
def of_log() -> Report:
    return report_of(everything(), target="4.0", sources=LOG, offsets_retention_minutes=None)


class TestRequestLog:
    """The report of `kproto audit`."""

    def test_the_terminal_has_what_was_read(self, of_log: Report) -> None:
        rendered = text.render(of_log)
        assert rendered.endswith(
            "read 2 files: 1,100 lines of 1,200 without a request, 1 request not readable, 60 requests of brokers\n"
            "      left out\n"
            "  a request log has no connections that the broker closed\n"
        )
        assert "  set offsets.retention.minutes to at least 11,521 (here: not known)\n" in rendered

    def test_undecided_versions_are_those_of_a_client_that_must_run(self) -> None:
        observations = Observations()
        info = ConnectionInfo("")
        for api_key, api_version in ((18, 0), (1, 2)):
            observations.request(info, "app", api_key, api_version)
        rendered = text.render(report_of(observations, kafka_version="0.10.0", sources=LOG))
        assert "  what clients sent to it shows no other versions: run the client with kproto run\n" in rendered

    def test_files_have_what_was_read(self, of_log: Report) -> None:
        assert json.loads(json_file.render(of_log))["request_log"] == {
            "files": ["broker-1.log", "<b>`2`.gz"],
            "lines": 1200,
            "lines_without_request": 1100,
            "unreadable_requests": 1,
            "requests_of_brokers": 60,
        }
        assert "- request log: `broker-1.log`, `` <b>`2`.gz ``\n- 1,100 lines of 1,200" in markdown.render(of_log)
        assert "<code>&lt;b&gt;`2`.gz</code><br>1,100 lines of 1,200" in html_page.render(of_log)
        for render in (markdown.render, html_page.render):
            assert "broker: Kafka 2.8 or newer, by the format of its request log" in render(of_log)


class TestTerminal:
    def test_a_report_with_all_its_sections(self, full: Report) -> None:
        assert text.render(full, width=100, saved_as=["out.json", "out.html"]) == (
            "kproto: 1 of 2 clients would break on Kafka 4.0\n"
            "kproto: 1 connection broke: protocol errors\n"
            "  Fetch v1        12x  last served by 3.9; 4.0 serves v4-v17  consumer-1\n"
            "  ListOffsets v0   2x  last served by 3.9; 4.0 serves v1-v10  consumer-1\n"
            "  consumer-1: Java client 0.9.0: use 2.1.0 or newer\n"
            "  Kafka 4.0.0 does not serve JoinGroup v0 and v1 (--target 4.0.0)\n"
            "connections that the broker closed:\n"
            "  not a request  1x  a frame of 3 bytes is too short for a request header  (no client id)\n"
            "failed authentications:\n"
            "  GSSAPI  1x  no user named  billing (apache-kafka-java 4.3.1)\n"
            "  PLAIN   2x  alice          billing (apache-kafka-java 4.3.1)\n"
            "logins:\n"
            "  no SASL  1x  CN=client  TLSv1.2 AES256-SHA  billing (apache-kafka-java 4.3.1)\n"
            "newer software would refuse:\n"
            "  Java 24 and later: the cipher has no forward secrecy  1x  billing (apache-kafka-java 4.3.1)\n"
            "2 clients sent 28 requests:\n"
            "  billing (apache-kafka-java 4.3.1): 4 requests\n"
            "    Metadata v13, OffsetCommit v10, OffsetFetch v10, ApiVersions v4\n"
            "  consumer-1: 24 requests\n"
            "    Fetch v1, ListOffsets v0, Metadata v0, OffsetCommit v2, OffsetFetch v1, FindCoordinator v0\n"
            "newer than 4.0, clients that negotiate step down where they can: OffsetCommit v10, OffsetFetch v10\n"
            "OffsetCommit v2 with retention_time, 4x, 3 overrides\n"
            "  longest retention requested: 8 d 1 ms\n"
            "  set offsets.retention.minutes to at least 11,521 (here: 10,080, too little)\n"
            "errors returned:\n"
            "  OffsetCommit  2x  UNKNOWN_TOPIC_OR_PARTITION (retriable)\n"
            "  OffsetCommit  1x  OFFSET_METADATA_TOO_LARGE\n"
            "whole report: out.json\n"
            "whole report: out.html\n"
        )

    def test_a_report_without_problems(self) -> None:
        assert text.render(report_of(conversation("4.4.0-java-1.1.1-consumer"), target="4.4"), width=80) == (
            "kproto: nothing would break on Kafka 4.4\n"
            "1 client sent 13 requests:\n"
            "  consumer-1: 13 requests\n"
            "    Fetch v7, ListOffsets v2, Metadata v5, OffsetCommit v3, OffsetFetch v3,\n"
            "    FindCoordinator v1, JoinGroup v2, LeaveGroup v1, SyncGroup v1, and 1 more\n"
        )

    def test_a_report_without_clients_names_the_environment_variable(self) -> None:
        rendered = text.render(report_of(Observations()))
        assert rendered == (
            "kproto: no client connected\n  the command finds the broker's address in KAFKA_BOOTSTRAP_SERVERS\n"
        )

    def test_versions_that_the_kafka_version_limits_are_undecided(self) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        observations.request(info, "app", 18, 0)
        observations.request(info, "app", 2, 0)

        assert text.render(report_of(observations, kafka_version="0.10.0", target="4.0")) == (
            "kproto: no request seen that would break on Kafka 4.0; some are undecided\n"
            "  Kafka 4.0.0 does not serve JoinGroup v0 and v1 (--target 4.0.0)\n"
            "1 client sent 2 requests to a broker of Kafka 0.10.0:\n"
            "  app: 2 requests\n"
            "    ListOffsets v0, ApiVersions v0\n"
            "not decided, since Kafka version 0.10.0 was the limit: ListOffsets v0\n"
            "  run again with --kafka-version latest\n"
        )

    @pytest.mark.parametrize("width", [1, 40, 79, 100, 400])
    def test_no_line_is_wider_than_the_terminal(self, full: Report, hostile: Report, width: int) -> None:
        for report in (full, hostile):
            lines = text.render(report, width=width).splitlines()
            assert max(map(len, lines)) <= min(max(width, text.WIDTH_MIN), text.WIDTH_MAX)

    def test_an_api_is_listed_once_with_its_versions(self) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        for api_key, api_version in ((8, 3), (8, 4), (3, 5), (8, 10)):
            observations.request(info, "app", api_key, api_version)

        assert "    Metadata v5, OffsetCommit v3 v4 v10\n" in text.render(report_of(observations))

    @pytest.mark.parametrize(
        ("host", "is_shown"), [("127.0.0.1", False), ("0:0:0:0:0:0:0:1", False), ("10.0.0.1", True)]
    )
    def test_clients_that_break_are_listed_with_their_hosts_on_other_machines(self, host: str, is_shown: bool) -> None:
        observations, info = Observations(), ConnectionInfo(f"/{host}")
        observations.request(info, "app", 1, 1)
        rendered = text.render(report_of(observations, target="4.0"))
        assert "  app: " in rendered
        assert (f"from {host}" in rendered) is is_shown

    def test_both_layouts_of_v4_are_listed(self) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        observations.commit_layout(info, "app", 4, "v4 as released", 60_000)
        observations.commit_layout(info, "app", 4, "v4 of KIP-211", -1)

        rendered = text.render(report_of(observations))
        assert "OffsetCommit v4 as released, with retention_time, 1x, all with an override\n" in rendered
        assert "OffsetCommit v4 of KIP-211, without retention_time, 1x, no override\n" in rendered

    def test_rows_that_break_are_never_hidden_and_clients_above_the_limit_are_counted(self) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        for number in range(40):
            observations.request(info, f"app-{number:02}", 1, 1)

        rendered = text.render(report_of(observations, target="4.0"))
        assert "kproto: 40 of 40 clients would break on Kafka 4.0\n" in rendered
        assert "  and 34 more clients (--report FILE has all)\n" in rendered
        rows = re.findall(r"^  Fetch v1  1x  .*  (app-\d\d)$", rendered, re.M)
        assert rows == [f"app-{number:02}" for number in range(40)]

    @pytest.mark.parametrize("where", [0, 100, 199])
    def test_long_client_ids_are_never_cut_where_they_differ(self, where: int) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        ids = [f"{'x' * where}{letter}{'x' * (199 - where)}" for letter in "ab"]
        for client_id in ids:
            observations.request(info, client_id, 1, 1)

        rendered = text.render(report_of(observations, target="4.0"))
        names = phrases.short_names(ids)
        assert names[ids[0]] != names[ids[1]]
        unwrapped = re.sub(r"\s", "", rendered)
        assert all(name in unwrapped for name in names.values())

    def test_all_reasons_of_closed_connections_are_listed(self) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        for number in range(30):
            observations.closed(info, "app", 3, 1, f"reason {number}.")

        rendered = text.render(report_of(observations))
        assert rendered.startswith("kproto: nothing would break on Kafka 4.4\nkproto: 30 connections broke: protocol")
        assert all(f"reason {number}." in rendered for number in range(30))

    def test_broken_connections_are_not_green(self) -> None:
        observations = conversation("4.4.0-java-1.1.1-consumer")
        assert text.render(report_of(observations), color=True).startswith("\x1b[32mkproto: nothing would break")
        observations.closed(ConnectionInfo("/127.0.0.1"), "", -1, -1, "a frame of 3 bytes")
        rendered = text.render(report_of(observations), color=True)
        assert "\x1b[32m" not in rendered
        assert "\x1b[31mkproto: 1 connection broke: protocol errors\x1b[0m\n" in rendered
        page = html_page.render(report_of(observations))
        assert 'class="banner good"' not in page
        assert '<div class="banner bad" role="status">1 connection broke: protocol errors</div>' in page

    def test_steps_of_the_protocol_are_no_errors(self) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        observations.request(info, "app", 11, 5)
        observations.errors(info, "app", 11, 5, [79, 25])
        observations.errors(info, "app", 18, 4, [35])
        (client,) = report_of(observations).clients
        assert [row.error_code for row in client.errors] == [25]

    def test_colors_are_used_only_on_request(self, full: Report) -> None:
        plain, colored = text.render(full), text.render(full, color=True)
        assert "\x1b" not in plain
        assert "\x1b[31mkproto: 1 of 2 clients would break on Kafka 4.0\x1b[0m" in colored
        assert re.sub(r"\x1b\[\d+m", "", colored) == plain

    def test_a_clients_name_cannot_control_the_terminal(self, hostile: Report) -> None:
        lines = text.render(hostile).split("\n")
        assert all(line.isprintable() for line in lines)


class TestJson:
    def test_the_fields_are_those_that_the_document_lists(self, full: Report) -> None:
        document = (Path(__file__).parents[2] / "server" / "REPORT.md").read_text(encoding="utf-8")
        documented = set(
            re.findall(r"^\| `([a-z_.\[\]]+)` \| (?:array|integer|string|boolean|object|number)", document, re.M)
        )
        of_sources = report_of(everything(), target="4.0", run=FINISHED, sources=EACH_SOURCE)
        assert set(fields(json.loads(json_file.render(full)))) < documented
        assert set(fields(json.loads(json_file.render(of_sources)))) == documented

    def test_each_format_has_what_was_read(self) -> None:
        of_sources = report_of(everything(), target="4.0", sources=EACH_SOURCE)
        rendered = [" ".join(each(of_sources).split()) for each in (text.render, markdown.render, html_page.render)]
        for shown in rendered:
            assert "9,000 packets, 12 connections, 60 requests of brokers left out, 2 connections with TLS not" in shown
            assert "3 gaps of lost packets, 4,380 bytes, 100 bytes of cut requests and responses not read" in shown
            assert "12 samples of DeprecatedRequestsPerSec, 1 sample not readable" in shown
            assert "2 reports merged, 3 other JSON files beside them" in shown

    def test_a_version_that_breaks_is_listed_with_its_client(self, full: Report) -> None:
        found = json.loads(json_file.render(full))
        assert found["would_break"] is True
        assert found["breaks"][1] == {
            "api_key": 2,
            "api": "ListOffsets",
            "api_version": 0,
            "count": 2,
            "first_served_by": "0.8.0",
            "last_served_by": "3.9",
            "target_min_version": 1,
            "target_max_version": 10,
            "client_id": "consumer-1",
            "software_name": None,
            "software_version": None,
            "library": "Java client",
            "library_version": "0.9.0",
            "library_first_release": "2.1.0",
        }
        assert (found["breaking_clients"], found["protocol_errors"]) == (1, 1)
        assert found["other_patch_releases"] == "Kafka 4.0.0 does not serve JoinGroup v0 and v1 (--target 4.0.0)"

    def test_the_run_and_the_advice_are_in_the_file(self, full: Report) -> None:
        found = json.loads(json_file.render(full))
        assert (found["schema"], found["kafka_version"], found["target"]) == (1, "latest", "4.0")
        assert found["run"] == {
            "command": ["java", "-jar", "an app.jar"],
            "exit_code": 0,
            "started_at": "2026-11-01T12:00:00+01:00",
            "duration_seconds": 3.21,
        }
        assert found["retention"] == {
            "largest_override_ms": 691_200_001,
            "advised_offsets_retention_minutes": 11521,
            "offsets_retention_minutes": 10080,
        }

    def test_a_client_has_its_requests_commits_and_errors(self, full: Report) -> None:
        client = json.loads(json_file.render(full))["clients"][2]
        assert client["negotiates"] is False
        assert client["requests"][0]["verdict"] == "breaks"
        assert client["offset_commits"] == [{"api_version": 2, "layout": "v2", "count": 4, "overrides": 3}]
        assert client["errors"][0] == {
            "api_key": 8,
            "api": "OffsetCommit",
            "api_version": 2,
            "error_code": 3,
            "error": "UNKNOWN_TOPIC_OR_PARTITION",
            "retriable": True,
            "count": 2,
        }

    def test_a_frame_that_is_not_a_request_has_no_api(self, full: Report) -> None:
        closed = json.loads(json_file.render(full))["clients"][0]["closed"]
        assert closed == [
            {
                "api_key": None,
                "api": None,
                "api_version": None,
                "reason": "a frame of 3 bytes is too short for a request header",
                "count": 1,
            }
        ]

    def test_failed_authentications_have_mechanism_user_and_count(self, full: Report) -> None:
        assert json.loads(json_file.render(full))["clients"][1]["failed_authentications"] == [
            {"mechanism": "GSSAPI", "user": None, "count": 1},
            {"mechanism": "PLAIN", "user": "alice", "count": 2},
        ]

    def test_logins_have_mechanism_user_and_tls(self, full: Report) -> None:
        assert json.loads(json_file.render(full))["clients"][1]["logins"] == [
            {
                "mechanism": None,
                "user": "CN=client",
                "tls_version": "TLSv1.2",
                "cipher": "AES256-SHA",
                "newer_refuse": [NO_FORWARD_SECRECY],
                "count": 1,
            }
        ]

    def test_names_are_those_that_the_client_sent(self, hostile: Report) -> None:
        assert json.loads(json_file.render(hostile))["clients"][0]["client_id"] == HOSTILE

    def test_a_report_without_a_run_and_overrides_has_nulls(self) -> None:
        found = json.loads(json_file.render(report_of(old_consumer())))
        assert found["run"] is None
        assert found["retention"] is None


def fields(value: object, path: str = "") -> Iterator[str]:
    """Yield the paths of all fields, without those inside ``breaks``, which repeat the fields of requests."""
    if isinstance(value, dict):
        for name, inner in value.items():
            here = f"{path}.{name}" if path else name
            yield here
            if name != "breaks":
                yield from fields(inner, here)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, f"{path}[]")


class TestMarkdown:
    def test_versions_that_break_are_a_table(self, full: Report) -> None:
        assert (
            "## Would break on Kafka 4.0\n\n"
            "| Client | Request | Count | Why | Library |\n"
            "| --- | --- | --: | --- | --- |\n"
            "| consumer-1 | Fetch v1 | 12 | last served by 3.9; 4.0 serves v4-v17 "
            "| Java client 0.9.0: use 2.1.0 or newer |\n"
        ) in markdown.render(full)

    def test_all_sections_are_there(self, full: Report) -> None:
        rendered = markdown.render(full)
        for line in (
            "- command: `java -jar 'an app.jar'`",
            "- exit code 0 after 3.2 s, started 2026-11-01T12:00:00+01:00",
            "- broker: all releases at once",
            "| billing (apache-kafka-java 4.3.1) | OffsetCommit v10 | 1 | newer than the target; first served by 4.2 |",
            "| v2 | with retention\\_time | 4 | 3 overrides |",
            "KIP-211: set offsets.retention.minutes to at least 11,521 (here: 10,080, too little).",
            "| consumer-1 | OffsetCommit v2 | 2 | UNKNOWN\\_TOPIC\\_OR\\_PARTITION (retriable) |",
            "| (no client id) | not a request | 1 | a frame of 3 bytes is too short for a request header |",
        ):
            assert f"{line}\n" in rendered

    def test_a_report_without_breaks_says_so(self) -> None:
        rendered = markdown.render(report_of(old_consumer(), target="3.9"))
        assert "## Would break on Kafka 3.9\n\nNo request seen.\n" in rendered

    def test_a_clients_name_adds_no_markup_and_no_row(self, hostile: Report) -> None:
        rendered = markdown.render(hostile)
        assert "<script>" not in rendered.replace("\\<script", "")
        assert not re.search(r"^# head", rendered, re.M)
        cells = [len(re.findall(r"(?<!\\)\|", line)) for line in rendered.splitlines() if line.startswith("|")]
        assert set(cells) <= {5, 6}

    def test_a_clients_name_is_shown_as_it_is(self) -> None:
        observations = Observations()
        observations.request(ConnectionInfo("/127.0.0.1"), "*a* ~~b~~ &amp;", 3, 1)
        assert "\\*a\\* \\~\\~b\\~\\~ \\&amp;" in markdown.render(report_of(observations))

    def test_a_command_with_backticks_is_quoted_as_code(self) -> None:
        run = type(FINISHED)(("sh", "-c", "echo ``"), 0, "2026-11-01T12:00:00+01:00", 1.0)
        assert "- command: ``` sh -c 'echo ``' ```\n" in markdown.render(report_of(old_consumer(), run=run))


class Page(HTMLParser):
    """The tags, the attributes and the text of a page; ``open`` has the tags that are not closed."""

    VOID = frozenset({"meta", "br", "wbr"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.attributes: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


class TestHtml:
    def test_the_page_is_well_formed(self, full: Report, hostile: Report) -> None:
        for report in (full, hostile, report_of(Observations()), report_of(old_consumer(), target="3.9")):
            assert Page(html_page.render(report)).open == []

    def test_the_page_loads_nothing_from_elsewhere(self, full: Report) -> None:
        page = html_page.render(full)
        assert not re.search(r"https?:|url\(|@import", page)
        assert not {"link", "img", "iframe"} & set(Page(page).tags)
        assert "src" not in Page(page).attributes
        assert not re.search(r'href="(?!#)', page)

    def test_all_sections_are_there(self, full: Report) -> None:
        shown = "".join(Page(html_page.render(full)).words)
        for part in (
            "Kafka clients and Kafka 4.0",
            "java -jar 'an app.jar'",
            "1 of 2 clients would break on Kafka 4.0",
            "last served by 3.9; 4.0 serves v4-v17",
            "apache-kafka-java 4.3.1",
            "does not negotiate versions",
            "3 overrides",
            "set offsets.retention.minutes to at least 11,521",
            "OFFSET_METADATA_TOO_LARGE",
            "a frame of 3 bytes is too short for a request header",
        ):
            assert part in shown

    @pytest.mark.parametrize(
        ("kind", "version", "title", "text"),
        [
            ("removed", 0, "Fetch v0: 0 requests; last served by 3.9", ""),
            ("sent breaks", 1, "Fetch v1: 12 requests; last served by 3.9", "\N{MULTIPLICATION SIGN}12"),
            ("served", 4, "Fetch v4: 0 requests", ""),
            ("future", 18, "Fetch v18: 0 requests; first served by 4.1", ""),
            ("sent other", 10, "OffsetCommit v10: 1 request; first served by 4.2", "1"),
            ("sent ok", 13, "Metadata v13: 1 request", "1"),
        ],
    )
    def test_the_matrix_marks_sent_and_removed_versions(
        self, full: Report, kind: str, version: int, title: str, text: str
    ) -> None:
        cell = f'<td class="{kind}" data-label="v{version}" title="{title}">{text}</td>'
        assert cell in html_page.render(full)

    def test_large_counts_fit_their_cells(self) -> None:
        observations, info = Observations(), ConnectionInfo("/127.0.0.1")
        for api_version, count in ((2, 999), (3, 1000), (4, 9_960), (5, 10_000), (6, 1_250_000), (7, 12_000_000_000)):
            observations.repeated(info, "app", 8, api_version, None, -1).count = count

        page = html_page.render(report_of(observations))
        cells = re.findall(r'<td class="sent ok"[^>]*>([^<]*)</td>', page)
        assert cells == ["999", "1k", "9.9k", "10k", "1.2M", "12G"]

    @pytest.mark.parametrize(
        ("observations", "target", "banner"),
        [(old_consumer(), "3.9", "Nothing would break on Kafka 3.9"), (Observations(), None, "No client connected")],
    )
    def test_the_banner_states_the_result(self, observations: Observations, target: str | None, banner: str) -> None:
        assert f'role="status">{banner}</div>' in html_page.render(report_of(observations, target=target))

    def test_a_clients_name_adds_no_tags(self, hostile: Report) -> None:
        page = html_page.render(hostile)
        assert Page(page).tags.count("script") == 1, "the page's own"
        assert "\x1b" not in page
        assert "<script>alert(1)</script>" in "".join(Page(page).words)


class TestFiles:
    @pytest.mark.parametrize(("name", "begin"), [("r.json", "{"), ("r.md", "# "), ("r.html", "<!DOCTYPE html>")])
    def test_the_suffix_selects_the_format(self, full: Report, name: str, begin: str) -> None:
        assert files.render(full, name).startswith(begin)

    def test_other_suffixes_are_refused(self, full: Report) -> None:
        with pytest.raises(ValueError, match=r"no report format has the suffix '\.txt'"):
            files.render(full, "r.txt")
