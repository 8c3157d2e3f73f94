"""`kproto proxy`: its options, files, errors and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kproto.messages.k02_list_offsets import ListOffsetsRequest
from kproto.messages.k03_metadata import MetadataRequest
from kproto_server.broker.broker import Broker
from kproto_server.commandline import cli, parsing
from kproto_server.network.listening import reserve
from tests.commandline.commands import LIMIT_S, kproto_started
from tests.network.raw_client import RawClient
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "no cluster given: write --upstream HOST:PORT"),
        (("--upstream", "broker"), "--upstream can't be 'broker': write --upstream HOST:PORT"),
        (("--upstream", "::1:9092"), "--upstream can't be '::1:9092': write --upstream HOST:PORT"),
        (("--upstream", "a..b:1"), "--upstream can't be 'a..b:1': 'a..b' is no host name"),
        (("--upstream", f"{64 * 'a'}:1"), "--upstream can't be 'a"),
        (("--upstream", "\N{SNOWMAN}:1"), "--upstream: can't connect to \N{SNOWMAN}:1: it is no host name"),
        (("--upstream", "b:0"), "--upstream can't be '0': give a whole number from 1 to 65535"),
        (("--upstream", "b:1", "--tls", "auto", "--set", "a=b"), "--set: 'a' is no setting of TLS, "),
        (("--upstream", "b:1", "--set", "ssl.client.auth=required"), "--set: ssl.client.auth needs --tls auto"),
        (("--upstream", "b:1", "--tls", "auto", "--set", "ssl.client.auth=x"), "--set: ssl.client.auth cannot be 'x'"),
        (("--upstream", "b:1", "--tls", "right"), "--tls: no kind of certificate 'right': give one of auto, "),
        (("--upstream", "b:1", "--tls-dir", "d"), "--tls-dir: a directory for the files of TLS needs TLS"),
        (("--upstream", "b:1", "--sasl", "PLAIN"), "no option '--sasl': "),
        (("--upstream", "b:1", "--upstream-tls-key", "k"), "--upstream-tls-key needs --upstream-tls-certificate FILE"),
        (
            ("--upstream", "b:1", "--upstream-tls-certificate", "c"),
            "--upstream-tls-certificate needs --upstream-tls-ca",
        ),
        (("--upstream", "b:1", "extra"), "unexpected argument 'extra'"),
        (("--upstream", "b:1", "--report", "x.txt"), "--report can't be 'x.txt'"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(("proxy", *words)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"kproto proxy: {error}")


def test_addresses_of_ipv6_stand_in_brackets() -> None:
    assert parsing.proxy_options(["--upstream", "[::1]:9093"]).upstream == ("::1", 9093)


@pytest.mark.parametrize("words", [(), ("--kafka-version", "3.9")])
def test_a_cluster_that_cannot_be_reached_is_one_line(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with reserve("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        assert cli.main(("proxy", "--upstream", f"127.0.0.1:{port}", "--port", "0", *words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"kproto proxy: --upstream: can't connect to 127.0.0.1:{port}: Connection refused\n"


def test_a_cluster_without_api_versions_needs_its_release(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.running(kafka_version="0.9") as broker:
        assert cli.main(("proxy", "--upstream", broker.bootstrap_servers, "--port", "0")) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "give the release of a Kafka before 0.10 by --kafka-version" in err


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ("- {stale: true}", "fault rule 1: stale has no meaning in a proxy: the proxy does not know the nodes of the "),
        ("- {api: Fetch, close: true}\n- {forward_commits: true}", "fault rule 2: forward_commits has no meaning in "),
        ("- {api: Fetch, close: maybe}", "fault rule 1: close is true or not given, not 'maybe'"),
        ("close: true", "a file of fault rules is a list: each rule begins with '- '"),
    ],
)
def test_a_wrong_fault_rule_is_one_line(
    rules: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(rules)
    with Broker.running() as broker:
        words = ("--upstream", broker.bootstrap_servers, "--port", "0", "--faults", str(file))
        assert cli.main(("proxy", *words)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"kproto proxy: --faults: {file}: {error}")


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.running() as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        assert cli.main(("proxy", "--upstream", broker.bootstrap_servers, "--port", port)) == 2
    assert capsys.readouterr().err.startswith(f"kproto proxy: can't listen on 127.0.0.1:{port}: ")


def test_the_report_is_written_live_and_at_the_end(tmp_path: Path) -> None:
    port_file, report = tmp_path / "port", tmp_path / "proxy.json"
    words = ("--port-file", str(port_file), "--advertised-host", "localhost", "--quiet", "--fail-on-removed")
    with (
        Broker.running() as broker,
        kproto_started(
            "proxy", "--upstream", broker.bootstrap_servers, "--port", "0", "--report", str(report), *words
        ) as process,
    ):
        wait_until(port_file.exists, "the port file")
        address = port_file.read_text().strip()
        host, _, port = address.rpartition(":")
        assert host == "localhost"
        with RawClient(f"127.0.0.1:{port}", client_id="old") as client:
            (only,) = client.ask(MetadataRequest(topics=()), 0).brokers
            assert (only.host, only.port) == ("localhost", int(port))
            wait_until(report.exists, "the first report")
            wait_until(lambda: "old" in report.read_text(), "the client in the report")
            client.ask(ListOffsetsRequest(replica_id=-1, topics=()), 0)
        process.terminate()
        out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out, err) == (1, "", "")
    (seen,) = json.loads(report.read_text())["clients"]
    assert [(row["api"], row["api_version"]) for row in seen["requests"]] == [("ListOffsets", 0), ("Metadata", 0)]
    assert not port_file.exists()
