"""The commands and programs in kproto/spark/README.md are taken from the page and run in order.

They run in this process, on the engine that `--engine auto` chooses: what only Spark does runs in the Spark session of
all tests. `test_fresh_install` makes the same report on Spark.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kproto.spark import cli
from kproto.spark.arguments import parse
from kproto.spark.engine import EMBEDDED, SPARK, using
from kproto.spark.inputs import TablesInput
from kproto.spark.watch import read_rules
from kproto_server.commandline.cli import main as kproto
from tests.examples import two_weeks
from tests.spark.derived_tables import assert_derived
from tests.spark.engines import session_of
from tests.spark.scans import Run
from tests.spark.test_jobs_by_hand import report, sent

README = Path(cli.__file__).with_name("README.md").read_text(encoding="utf-8")
EXAMPLE = ["python", "tests/examples/two_weeks.py"]
COMMAND = ["python", "-m", "kproto.spark"]


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language, without those between HTML comments."""
    text = re.sub(r"<!-- (\S+) -->.*?<!-- /\1 -->", "", README, flags=re.DOTALL)
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_readme_in_order(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports").mkdir()
    report(tmp_path / "reports", "a.json", None, ("old", None, None, sent(3, 5, "breaks", "3.9")))
    output: dict[str, str] = {}
    for line in "".join(blocks("sh")).splitlines():
        words = shlex.split(line)
        if words[:2] == EXAMPLE:
            two_weeks.main(words[2])
            continue
        if words[:2] == ["kproto", "log"]:
            with using(SPARK):  # it chooses the embedded engine
                assert kproto(words[1:]) == 0
            continue
        assert words[:3] == COMMAND, line
        if words[3] == "tables":
            code, _, err = run(*words[3:])
            options = parse(words[3:])
        else:
            capsys.readouterr()
            with using(SPARK):
                code = cli.main(words[3:])
            output[words[3]], err = capsys.readouterr()
        assert code == 0, err
    with session_of(EMBEDDED, request) as embedded:
        assert_derived(TablesInput(embedded, "tables"), options, tmp_path / "tables")
    for program in blocks("python"):
        exec(compile(program, "README.md", "exec"), {})  # noqa: S102  # our own text
    output["program"] = capsys.readouterr().out

    assert re.search(r"archive +2419200000 +4 +4 .* 40320 +yes\n", output["retention-audit"])
    assert re.search(r"nightly-report .* 4 +0  group_metadata\n", output["expiry"])
    assert "archive" in output["what-if"]
    assert "projector" in output["rates"]
    assert "breaks" in output["versions"]
    assert (tmp_path / "lag.csv").read_text().count("search,orders,") == 4 * 14
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "set offsets.retention.minutes to 40,320" in page
    assert page.count("<svg") == 2 * 3, "each chart in two sizes"
    assert "40320" in output["program"]
    (rules,) = blocks("yaml")
    (tmp_path / "rules.yaml").write_text(rules)
    assert read_rules(str(tmp_path / "rules.yaml")).ignored_groups == ("test-*",)
