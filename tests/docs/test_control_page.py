"""Each command of server/CONTROL.md works, one after the other, with one broker.

Method: the commands are taken from the page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from kproto_server.broker.request_filter import FILTERS
from kproto_server.control.operations import OPERATIONS
from tests.commandline.commands import LIMIT_S, process_started
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "server" / "CONTROL.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL) for line in block.splitlines()]


def test_each_command_works(tmp_path: Path) -> None:
    bin_folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", "")])}
    environment.pop("KPROTO_CONTROL_TOKEN", None)

    def run(commands: list[str]) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (run_command,) = (one for one in COMMANDS if one.startswith("kproto run "))
    (serve_command,) = (one for one in COMMANDS if one.startswith("kproto serve "))
    assert json.loads(run([run_command]))["bootstrap_servers"].startswith("127.0.0.1:")
    with process_started("bash", "-c", f"cd {tmp_path} && PATH={environment['PATH']} exec {serve_command}"):
        wait_until((tmp_path / "control.txt").exists, "the control file")
        output = run([one for one in COMMANDS if not one.startswith("kproto ")])
    assert '"OffsetCommit"' in output
    assert "# TYPE deprecated_requests_total counter" in output


def test_the_page_names_routes_and_filters_that_exist() -> None:
    named = set(re.findall(r'\$KPROTO_CONTROL_URL(/[^"?]*)', PAGE))
    assert "/" in named, "the page"
    for path in {re.sub(r"^/brokers/\d+(?=/)", "", one) for one in named - {"/"}}:
        assert any(one.path_arguments(path[1:].split("/")) is not None for one in OPERATIONS), path
    (sentence,) = re.findall(
        r"A request has to meet all conditions that are given:(.*?)\. Bodies", PAGE, flags=re.DOTALL
    )
    assert tuple(re.findall(r"`(\w+)`", sentence)) == FILTERS
