"""Each accident with a real consumer, and what is recorded of others."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kproto_server.scenarios import page, text
from kproto_server.scenarios.accidents import ACCIDENTS
from kproto_server.scenarios.lab import CannotStart, Findings, run_accident
from tests.scenarios.clients import CLIENTS, RESETS
from tests.scenarios.table import DOCUMENT, RECORDED, document, told

CLIENT = "confluent-kafka"


def run(name: str, reset: str) -> Findings:
    return run_accident(ACCIDENTS[name], CLIENTS[CLIENT](), timeout_s=40, environment={"AUTO_OFFSET_RESET": reset})


@pytest.mark.parametrize("name", ACCIDENTS)
def test_a_consumer_does_what_is_recorded(name: str) -> None:
    recorded = json.loads(RECORDED.read_text())
    assert told(run(name, "earliest")) == recorded[CLIENT]["earliest"][name]


def test_a_consumer_that_goes_to_the_end_skips_what_is_there() -> None:
    findings = run("out-of-range-low", "latest")
    (outcome,) = findings.outcomes
    assert (outcome.went_to, outcome.skipped, outcome.repeated) == (500, 200, 0)
    assert outcome.steps[:2] == ("100 is committed", "100: OFFSET_OUT_OF_RANGE")
    assert "500 (the end)" in text.render([findings])
    drawn = page.render([findings])
    assert "200 records skipped" in drawn
    assert 'class="skipped"' in drawn


def test_a_consumer_that_stops_is_told_with_its_last_words() -> None:
    findings = run("deleted-offsets", "none")
    (outcome,) = findings.outcomes
    assert outcome.went_to is None
    assert outcome.skipped == 400
    assert findings.exit_code == 1
    assert "_AUTO_OFFSET_RESET" in findings.last_words
    assert "it ended by itself with exit code 1" in text.render([findings])


def test_a_command_that_there_is_not() -> None:
    with pytest.raises(CannotStart, match="can't start 'no-such-program'"):
        run_accident(ACCIDENTS["deleted-offsets"], ["no-such-program"])


def test_the_document_has_what_is_recorded() -> None:
    results = json.loads(RECORDED.read_text())
    assert list(results) == list(CLIENTS)
    assert all(set(by_reset[reset]) == set(ACCIDENTS) for by_reset in results.values() for reset in RESETS)
    assert document(results, DOCUMENT.read_text()) == DOCUMENT.read_text()


def kproto(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "kproto_server", *arguments], capture_output=True, text=True)


def test_the_command_line(tmp_path: Path) -> None:
    """The table on standard output, the page where it was asked for, and exit code 1 as it was asked for."""
    client = f"env AUTO_OFFSET_RESET=latest {sys.executable} {CLIENTS[CLIENT]()[1]}"
    report = tmp_path / "resets.html"
    done = kproto("scenario", "run", "new-partition", "--client", client, "--report", str(report), "--fail-on-skipped")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[3].split() == ["new-partition", "1", "0", "50", "(the", "end)", "50", "-"]
    assert "<svg" in report.read_text()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "kproto scenario: no command given: use list or run, see kproto scenario --help"),
        (["walk"], "kproto scenario: no command 'walk': use list or run, see kproto scenario --help"),
        (["run"], "kproto scenario run: give one NAME, see kproto scenario list"),
        (["run", "all"], "kproto scenario run: give the consumer: --client CMD"),
        (["run", "all", "--client", " "], "kproto scenario run: --client is empty: give a command"),
        (["run", "all", "--client", "'"], "kproto scenario run: --client: No closing quotation"),
        (["run", "new-partition", "--client", "no-such-x"], "kproto scenario run: --client: can't start 'no-such-x'"),
        (["run", "all", "--client", "x", "--timeout", "0"], "kproto scenario run: --timeout can't be '0'"),
        (["run", "all", "--client", "x", "--report", "x.pdf"], "kproto scenario run: --report can't be 'x.pdf'"),
        (["run", "flood", "--client", "x"], "kproto scenario run: there is no 'flood': use out-of-range-low"),
        (["run", "all", "--client", "x", "--kafka-version", "9"], "kproto scenario run: --kafka-version: "),
    ],
)
def test_mistakes_are_told_in_one_line(arguments: list[str], line: str) -> None:
    done = kproto("scenario", *arguments)
    assert done.returncode == 2
    *progress, last = done.stderr.splitlines()
    assert last.startswith(line)
    assert progress in ([], ["new-partition ..."])


def test_the_list_tells_all() -> None:
    assert [line.split()[0] for line in kproto("scenario", "list").stdout.splitlines()] == list(ACCIDENTS)
