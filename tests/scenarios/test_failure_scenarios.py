"""Each failure scenario with a real consumer, the recorded results of all clients, and the command line."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kproto_server.client_process import ClientNotStarted
from kproto_server.scenarios import html_report, text_report
from kproto_server.scenarios.consumer_trace import PartitionTrace, Step
from kproto_server.scenarios.failure_scenarios import SCENARIOS
from kproto_server.scenarios.runner import PartitionResult, ScenarioResult, run_scenario
from tests.html_layout import SMALL, WIDE, assert_fits, layout
from tests.scenarios.clients import CLIENTS, PROGRAMS, RESETS
from tests.scenarios.table import DOCUMENT, RECORDED, document, table_cell

CLIENT = "confluent-kafka"


def run(name: str, reset: str) -> ScenarioResult:
    return run_scenario(SCENARIOS[name], CLIENTS[CLIENT](), timeout_s=40, environment={"AUTO_OFFSET_RESET": reset})


@pytest.mark.parametrize("name", SCENARIOS)
def test_result_equals_the_recorded_one(name: str) -> None:
    recorded = json.loads(RECORDED.read_text())
    assert table_cell(run(name, "earliest")) == recorded[CLIENT]["earliest"][name]


def test_a_reset_to_latest_skips_records() -> None:
    result = run("out-of-range-low", "latest")
    (partition,) = result.partitions
    assert (partition.actual_start, partition.skipped, partition.read_again) == (500, 200, 0)
    assert partition.steps[:2] == ("committed offset is 100", "Fetch from 100: OFFSET_OUT_OF_RANGE")
    assert "500 (the end)" in text_report.render([result])
    page = html_report.render([result])
    assert "200 records skipped" in page
    assert 'class="skipped"' in page


def run_kproto_client(name: str, settings: dict[str, str]) -> ScenarioResult:
    command = [sys.executable, str(PROGRAMS / "kproto_consumer.py")]
    environment = {"SETTINGS": json.dumps(settings)}
    result = run_scenario(SCENARIOS[name], command, timeout_s=40, environment=environment)
    assert not result.timed_out
    return result


def test_a_client_that_reads_from_two_positions_skips_nothing() -> None:
    """A parallel consumer fetches from the log end first, and from the log start after that."""
    settings = {"auto.offset.reset.on.invalid.offset": "nearest", "enable.parallel.rebalance": "true"}
    result = run_kproto_client("out-of-range-low", settings)
    (partition,) = result.partitions
    assert (partition.actual_start, partition.skipped, partition.read_again) == (300, 0, 0)
    assert partition.steps[-1] == "Fetch from 300"
    assert "nothing lost" in text_report.render([result])


def test_safe_latest_skips_no_record_of_a_new_partition() -> None:
    """The group of the scenario has committed without `kproto.client`."""
    result = run_kproto_client("new-partition", {"auto.offset.reset.on.no.initial.offset": "safe_latest"})
    found = {each.partition: (each.actual_start, each.skipped, each.read_again) for each in result.partitions}
    assert found == {0: (100, 0, 0), 1: (0, 0, 0)}


def trace_of(*steps: Step) -> PartitionTrace:
    trace = PartitionTrace(0)
    for step in steps:
        trace.add(step)
    return trace


def test_unread_records_are_the_gaps_between_the_fetched_ones() -> None:
    trace = trace_of(
        Step(0, "Fetch from 400", fetched_from=400, read=(400, 450)),
        Step(0, "Fetch from 300", fetched_from=300, read=(300, 320)),
        Step(0, "Fetch from 320", fetched_from=320, read=(320, 350)),
        Step(0, "Fetch from 470", fetched_from=470, read=(470, 500)),
    )
    assert (trace.start, trace.position, trace.steps) == (300, 470, ["Fetch from 400", "Fetch from 300"])
    assert trace.unread(100, 500) == [(100, 300), (350, 400), (450, 470)]
    assert trace.unread(310, 340) == []
    assert trace.unread(340, 360) == [(350, 360)]
    assert trace_of(Step(0, "Fetch from 500", fetched_from=500)).unread(300, 500) == [(300, 500)]


@pytest.mark.parametrize("width", [SMALL, WIDE])
def test_all_of_the_page_is_visible_at_any_width(tmp_path: Path, width: int) -> None:
    def partition(number: int, start: int | None, *, crashed: bool = False) -> PartitionResult:
        steps = ("committed offset is 100", "Fetch from 100: OFFSET_OUT_OF_RANGE")
        bounds = {"log_start": 1_000_000_000, "log_end": 5_000_000_000, "expected_start": 2_000_000_000}
        unread = () if start == 0 else ((2_000_000_000, 5_000_000_000),)
        return PartitionResult(
            partition=number, actual_start=start, steps=steps, crashed=crashed, unread=unread, **bounds
        )

    result = ScenarioResult(
        scenario=SCENARIOS["new-partition"],
        partitions=(partition(0, 5_000_000_000), partition(1, 0), partition(2, None, crashed=True)),
        client="a-client-without-a-break" * 8,
        exit_code=1,
        timed_out=False,
        last_error_line="an_error_without_a_break" * 8,
    )
    assert_fits(layout(tmp_path, html_report.render([result]), width))


def test_the_report_has_the_last_error_line_of_a_client_that_exits() -> None:
    result = run("deleted-offsets", "none")
    (partition,) = result.partitions
    assert partition.actual_start is None
    assert (partition.skipped, partition.crashed) == (0, True), "the group has not moved"
    assert result.exit_code == 1
    assert "_AUTO_OFFSET_RESET" in result.last_error_line
    assert "the client crashed: exit code 1: " in text_report.render([result])
    assert "The client crashed in 1 of 1 scenarios; No record skipped" in html_report.render([result])


def test_a_missing_command_raises() -> None:
    with pytest.raises(ClientNotStarted, match="can't start 'no-such-program'"):
        run_scenario(SCENARIOS["deleted-offsets"], ["no-such-program"])


def test_the_document_has_the_recorded_results() -> None:
    results = json.loads(RECORDED.read_text())
    assert list(results) == list(CLIENTS)
    assert all(set(by_reset[reset]) == set(SCENARIOS) for by_reset in results.values() for reset in RESETS)
    assert document(results, DOCUMENT.read_text()) == DOCUMENT.read_text()


def kproto(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "kproto_server", *arguments], capture_output=True, text=True)


def test_run_prints_a_table_and_writes_a_page(tmp_path: Path) -> None:
    """With --fail-on-skipped, a skipped record leads to exit code 1."""
    client = f"env AUTO_OFFSET_RESET=latest {sys.executable} {CLIENTS[CLIENT]()[1]}"
    report = tmp_path / "resets.html"
    done = kproto("scenario", "run", "new-partition", "--client", client, "--report", str(report), "--fail-on-skipped")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[3].split() == [
        "new-partition",
        "1",
        "0",
        "50",
        "(the",
        "end)",
        "50",
        "-",
        "skipped",
    ]
    page = report.read_text()
    assert "<figcaption>Partition 0: nothing lost</figcaption>" in page
    assert "<figcaption>Partition 1: skipped</figcaption>" in page


@pytest.mark.parametrize(
    ("program", "ending"),
    [
        ("raise SystemExit('no broker for me')", "the client crashed: exit code 1: no broker for me"),
        (
            "raise SystemExit('\\x1b[31mno broker')",
            "the client crashed: exit code 1: \N{REPLACEMENT CHARACTER}[31mno broker",
        ),
        ("import os; os.kill(os.getpid(), 11)", "the client crashed: signal 11"),
    ],
)
def test_a_client_that_crashes_has_a_verdict_and_an_exit_code_of_its_own(program: str, ending: str) -> None:
    client = shlex.join([sys.executable, "-c", program])
    done = kproto("scenario", "run", "deleted-offsets", "--client", client, "--fail-on-skipped")
    assert done.returncode == 3, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("deleted-offsets  "))
    assert row.split()[-3:] == ["-", "-", "crashed"]
    assert ending in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "kproto scenario: no command given: use list or run, see kproto scenario --help"),
        (["walk"], "kproto scenario: no command 'walk': use list or run, see kproto scenario --help"),
        (["list", "all"], "kproto scenario list: unexpected argument 'all': this command takes no arguments"),
        (["run"], "kproto scenario run: give one NAME, see kproto scenario list"),
        (["run", "all"], "kproto scenario run: give the consumer's command: --client CMD"),
        (["run", "all", "--client", " "], "kproto scenario run: --client is empty: give a command"),
        (["run", "all", "--client", "'"], "kproto scenario run: --client: No closing quotation"),
        (["run", "new-partition", "--client", "no-such-x"], "kproto scenario run: --client: can't start 'no-such-x'"),
        (["run", "all", "--client", "x", "--timeout", "0"], "kproto scenario run: --timeout can't be '0'"),
        (["run", "all", "--client", "x", "--report", "x.pdf"], "kproto scenario run: --report can't be 'x.pdf'"),
        (["run", "flood", "--client", "x"], "kproto scenario run: no scenario 'flood': use out-of-range-low"),
        (["run", "all", "--client", "x", "--kafka-version", "9"], "kproto scenario run: --kafka-version: "),
    ],
)
def test_an_invalid_command_line_prints_one_line(arguments: list[str], line: str) -> None:
    done = kproto("scenario", *arguments)
    assert done.returncode == 2
    *progress, last = done.stderr.splitlines()
    assert last.startswith(line)
    assert progress in ([], ["new-partition ..."])


def test_list_prints_all_scenarios() -> None:
    assert [line.split()[0] for line in kproto("scenario", "list").stdout.splitlines()] == list(SCENARIOS)
