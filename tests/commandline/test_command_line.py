"""Each option reaches its command's options; each mistake is one line on standard error and exit code 2."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from kproto_server.clock import ClockMode
from kproto_server.commandline import cli, log, parsing, scenario
from kproto_server.commandline.commands import COMMANDS
from kproto_server.commandline.completion import PARENTS
from kproto_server.releases.kafka_version import kafka_version_names

CONFIG = "# ours\noffsets.retention.minutes = 60\nnum.partitions: 3\n"

NAMES = (
    "use run, serve, audit, proxy, capture, replay, diff, log, report, scenario, conform or completion, "
    "see kproto --help"
)


def error_line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run kproto with a mistake; return the one line on standard error."""
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err[:-1]


class TestServe:
    def test_the_defaults_are_loopback_and_kafkas_port(self) -> None:
        options = parsing.serve_options([])
        assert (options.host, options.ports, options.port_file) == ("127.0.0.1", (9092,), None)
        assert (options.advertised, options.report, options.quiet) == (None, None, False)
        assert options.broker.kafka_version.is_latest
        assert options.broker.clock == ClockMode()
        assert options.broker.log_level == "info"
        assert not options.broker.settings.is_set("offsets.retention.minutes")

    def test_every_option_is_read(self, tmp_path: Path) -> None:
        config, port_file = tmp_path / "server.properties", tmp_path / "ports"
        config.write_text(CONFIG)
        options = parsing.serve_options(
            [
                *("--host", "192.0.2.7", "--port", "1000", "--port-file", str(port_file), "--brokers", "3"),
                *("--kafka-version", "2.0", "--set", "offsets.retention.minutes=7", "--config", str(config)),
                *("--clock", "scaled:60", "--exit-with-parent", "--log-level", "debug", "--report", "-"),
                *("--target", "4.0", "--fail-on-removed", "--fail-on-protocol-error"),
            ]
        )
        assert (options.host, options.ports, options.exit_with_parent) == ("192.0.2.7", (1000, 1001, 1002), True)
        broker, report = options.broker, options.report
        assert (broker.kafka_version.name, broker.clock, broker.log_level) == ("2.0", ClockMode(rate=60.0), "debug")
        assert broker.settings.int("offsets.retention.minutes") == 7
        assert broker.settings.int("num.partitions") == 3
        assert options.port_file == str(port_file)
        assert not port_file.exists()
        assert report is not None
        assert (report.target.name, report.files, report.fail_on_removed, report.fail_on_protocol_error) == (
            "4.0",
            ("-",),
            True,
            True,
        )

    def test_quiet_prints_errors_only(self) -> None:
        options = parsing.serve_options(["--quiet"])
        assert (options.quiet, options.broker.log_level) == (True, "error")
        assert parsing.serve_options(["--quiet", "--log-level", "info"]).broker.log_level == "info"

    def test_port_0_is_a_free_port_for_each_broker(self) -> None:
        assert parsing.serve_options(["--port", "0", "--brokers", "2"]).ports == (0, 0)

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            (["--port", "x"], "kproto serve: --port can't be 'x': give a whole number from 0 to 65535"),
            (
                ["--port", "65535", "--brokers", "2"],
                "kproto serve: --port can't be '65535': give a whole number from 0 to 65534",
            ),
            (["--brokers", "0"], "kproto serve: --brokers can't be '0': give a whole number from 1 to 1000"),
            (
                ["--clock", "sundial"],
                "kproto serve: --clock: clock 'sundial' is not known: "
                "use real, manual, auto, or scaled:N with N above 0, at most 1e9",
            ),
            (["--set", "x"], "kproto serve: --set: 'x' sets nothing: write x=VALUE"),
            (
                ["--set", "offsets.retention.minutes=soon"],
                "kproto serve: --set: offsets.retention.minutes cannot be 'soon': "
                "give a whole number from 1 to 2147483647",
            ),
            (
                ["--set", "offset.retention.minutes=5"],
                "kproto serve: --set: no broker setting 'offset.retention.minutes': "
                "did you mean offsets.retention.minutes?",
            ),
            (
                ["--config", "/no/such.properties"],
                "kproto serve: --config: can't read '/no/such.properties': No such file or directory",
            ),
            (
                ["--port-file", "/no/such/folder/ports"],
                "kproto serve: --port-file: can't write '/no/such/folder/ports': No such file or directory",
            ),
            (["--log-level", "loud"], "kproto serve: --log-level can't be 'loud': use debug, info, warning or error"),
            (["out.txt"], "kproto serve: unexpected argument 'out.txt': this command takes options only"),
        ],
    )
    def test_each_mistake_is_one_line(self, capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
        assert error_line(capsys, "serve", *words) == line

    def test_an_unknown_kafka_version_is_refused_with_the_known_ones(self, capsys: pytest.CaptureFixture[str]) -> None:
        line = error_line(capsys, "serve", "--kafka-version", "9.9")
        assert line.startswith("kproto serve: --kafka-version: no Kafka release '9.9': use latest, or one of 0.8.0, ")

    def test_a_mistake_in_a_config_file_is_reported_with_its_path(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        path = tmp_path / "server.properties"
        path.write_text("num.partitions=none\n")
        assert error_line(capsys, "serve", "--config", str(path)) == (
            f"kproto serve: --config {path}: num.partitions cannot be 'none': give a whole number from 1 to 10000"
        )

    def test_a_config_file_that_is_no_text_is_refused(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        path = tmp_path / "server.properties"
        path.write_bytes(b"\xff\xfe")
        line = error_line(capsys, "serve", "--config", str(path))
        assert line == f"kproto serve: --config: {str(path)!r} is not a text file in UTF-8"


class TestRun:
    def test_the_defaults_are_one_broker_on_a_free_port(self) -> None:
        options = parsing.run_options(["--", "pytest", "-q"])
        assert options.command == ("pytest", "-q")
        assert options.broker.kafka_version.is_latest
        assert options.report.target.name == kafka_version_names()[-1]
        assert (options.broker.brokers, options.port, options.broker.log_level) == (1, 0, "warning")
        report = options.report
        assert (report.files, report.fail_on_removed, report.fail_on_protocol_error) == ((), False, False)

    def test_every_option_is_read(self, tmp_path: Path) -> None:
        config, report = tmp_path / "server.properties", str(tmp_path / "r.json")
        config.write_text(CONFIG)
        options = parsing.run_options(
            [
                *("--target", "4.0", "--fail-on-removed", "--report", report, "--report=r.md", "--brokers", "3"),
                *("--port", "9092", "--kafka-version", "3.9-zookeeper", "--set", "num.partitions=5"),
                *("--config", str(config), "--clock", "auto", "--fail-on-protocol-error"),
                *("./my-app", "--port", "1"),
            ]
        )
        broker = options.broker
        assert options.command == ("./my-app", "--port", "1")
        assert (options.report.target.name, broker.kafka_version.name) == ("4.0", "3.9-zookeeper")
        assert (broker.brokers, options.port, options.report.fail_on_removed) == (3, 9092, True)
        assert options.report.fail_on_protocol_error
        assert broker.settings.int("num.partitions") == 5
        assert broker.settings.int("offsets.retention.minutes") == 60
        assert broker.clock == ClockMode(auto=True)
        assert options.report.files == (report, "r.md")

    def test_the_check_of_a_report_file_does_not_change_the_file(self, tmp_path: Path) -> None:
        absent, present = tmp_path / "absent.json", tmp_path / "present.json"
        present.write_text("earlier")
        parsing.run_options(["--report", str(absent), "--report", str(present), "--", "true"])
        assert not absent.exists()
        assert present.read_text() == "earlier"

    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ([], "kproto run: nothing to run: write kproto run -- COMMAND"),
            (["--fail-on-removed", "--"], "kproto run: nothing to run: write kproto run -- COMMAND"),
            (
                ["--fail-on-remove", "--", "true"],
                "kproto run: no option '--fail-on-remove': did you mean --fail-on-removed? "
                "(kproto run --help lists all)",
            ),
            (
                ["--report", "r.txt", "--", "true"],
                "kproto run: --report can't be 'r.txt': its name ends in .json, .md or .html, or is -",
            ),
            (
                ["--report", "/no/such/folder/r.md", "--", "true"],
                "kproto run: --report: can't write '/no/such/folder/r.md': No such file or directory",
            ),
        ],
    )
    def test_each_mistake_is_one_line(self, capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
        assert error_line(capsys, "run", *words) == line

    def test_an_unknown_target_is_refused_with_the_known_releases(self, capsys: pytest.CaptureFixture[str]) -> None:
        line = error_line(capsys, "run", "--target", "five", "--", "true")
        assert line.startswith("kproto run: --target: no Kafka release 'five': use latest, or one of 0.8.0, ")

    def test_a_report_on_a_folder(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        folder = tmp_path / "r.html"
        folder.mkdir()
        line = error_line(capsys, "run", "--report", str(folder), "--", "true")
        assert line == f"kproto run: --report: can't write {str(folder)!r}: Is a directory"


class TestKproto:
    @pytest.mark.parametrize(
        ("words", "line"),
        [
            ([], f"kproto: no command given: {NAMES}"),
            (["srv"], f"kproto: no command 'srv': {NAMES}"),
            (["--port", "1"], f"kproto: no command '--port': {NAMES}"),
        ],
    )
    def test_each_mistake_is_one_line(self, capsys: pytest.CaptureFixture[str], words: list[str], line: str) -> None:
        assert error_line(capsys, *words) == line

    def test_standard_input_that_is_closed_cannot_be_read(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", None)
        assert cli.main(["audit", "-"]) == 2
        assert capsys.readouterr().err == "kproto audit: can't read '-': Bad file descriptor\n"

    @pytest.mark.parametrize("word", ["-V", "--version"])
    def test_version_prints_the_package_version(self, capsys: pytest.CaptureFixture[str], word: str) -> None:
        assert cli.main([word]) == 0
        assert capsys.readouterr().out == f"kproto {version('kproto')}\n"

    @pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
    def test_help_lists_every_command(self, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
        assert cli.main(words) == 0
        listed = re.findall(r"^  ((?:log |report |scenario |conform )?[a-z]+) .* \S", capsys.readouterr().out, re.M)
        nested = [f"{parent} {name}" for parent, commands in PARENTS.items() for name in commands]
        assert sorted(listed) == sorted([*COMMANDS, *nested])

    @pytest.mark.parametrize("name", ["serve", "run"])
    @pytest.mark.parametrize("words", [["{}", "--help"], ["help", "{}"]])
    def test_help_of_a_command_lists_all_its_options(
        self, capsys: pytest.CaptureFixture[str], name: str, words: list[str]
    ) -> None:
        assert cli.main([word.format(name) for word in words]) == 0
        help_text = capsys.readouterr().out
        assert re.findall(r"^  (--[a-z-]+)", help_text, re.M) == list(COMMANDS[name].options)

    def test_the_package_is_the_command_too(self) -> None:
        done = subprocess.run([sys.executable, "-m", "kproto", "-V"], capture_output=True, text=True, check=True)
        assert done.stdout == f"kproto {version('kproto')}\n"

    def test_help_is_at_most_120_columns_wide(self) -> None:
        tables = (COMMANDS, log.COMMANDS, scenario.COMMANDS)
        for text in (cli.HELP, *(command.help() for table in tables for command in table.values())):
            assert max(map(len, text.splitlines())) <= 120

    def test_the_command_line_imports_only_what_serve_needs(self) -> None:
        """`kproto serve` starts fast: it imports no argparse, report, trio, asyncio, json or construct."""
        program = (
            "import sys; from kproto_server.commandline import cli, parsing; parsing.serve_options([]); "
            "print(*sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        heavy = {
            "argparse",
            "trio",
            "asyncio",
            "construct",
            "json",
            "kproto_server.report",
            "kproto_server.commandline.run",
        }
        before = subprocess.run(
            [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
        )
        assert heavy & (set(done.stdout.split()) - set(before.stdout.split())) == set()

    def test_a_broker_without_tls_imports_no_cryptography(self) -> None:
        """The import takes a tenth of the time of a start."""
        program = (
            "import sys; from kproto_server.commandline import cli; cli.main(['run', '--', 'true']); "
            "print(*sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert not [name for name in done.stdout.split() if name.startswith("cryptography")]
