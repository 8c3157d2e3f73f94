"""The start command and the health check of the Containerfile work, and the jobs beside it fit it.

Method. Both commands are taken from the file and run outside of a container, on free ports.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from kproto.messages.k18_api_versions import ApiVersionsRequest
from tests.commandline.commands import LIMIT_S, process_started
from tests.docs.page_examples import blocks, run
from tests.network.raw_client import RawClient
from tests.waiting import wait_until

SERVER = Path(__file__).parents[1] / "server"
FILE = (SERVER / "Containerfile").read_text()
ON = True
"""The key ``on`` of a workflow, as YAML 1.1 reads it. GitHub refuses a workflow without it."""


def words_after(instruction: str) -> list[str]:
    (found,) = re.findall(rf"^{instruction}(\[.*\])$", FILE, re.MULTILINE)
    words: list[str] = json.loads(found)
    return words


def test_the_container_serves_and_is_healthy(tmp_path: Path) -> None:
    control = tmp_path / "control"
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {
        "PATH": search,
        "KPROTO_PORT": "0",
        "KPROTO_CONTROL_PORT": "0",
        "KPROTO_ADVERTISED": "localhost:0",
        "KPROTO_CONTROL_FILE": str(control),
        "KPROTO_OPTIONS": "--kafka-version 2.0",
    }
    assignments = [f"{name}={value}" for name, value in variables.items()]
    (health,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", FILE, re.MULTILINE)
    check = ["env", *assignments, *json.loads(health)]
    assert subprocess.run(check, capture_output=True, timeout=LIMIT_S, check=False).returncode != 0
    with process_started("env", *assignments, *words_after("CMD ")) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        (address,) = re.findall(r"receive the address (localhost:\d+)", "".join(next(lines) for _ in range(2)))
        wait_until(control.exists, "the control file")
        assert subprocess.run(check, capture_output=True, timeout=LIMIT_S, check=False).returncode == 0
        with RawClient(address.replace("localhost", "127.0.0.1")) as client:
            assert client.ask(ApiVersionsRequest(), 0).error_code == 0
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0


def test_the_jobs_name_ports_and_variables_of_the_container() -> None:
    workflow = yaml.safe_load((SERVER / "github-services.yml").read_text())
    assert ON in workflow
    github = workflow["jobs"]["test"]
    gitlab = yaml.safe_load((SERVER / "gitlab-services.yml").read_text())["test"]
    service = github["services"]["kafka"]
    assert {port.split(":")[1] for port in service["ports"]} == set(re.findall(r"^EXPOSE (\d+) (\d+)$", FILE, re.M)[0])
    assert all(name in FILE for name in service["env"])
    assert gitlab["variables"]["KPROTO_ADVERTISED"].split(":")[0] == gitlab["services"][0]["alias"]
    for line in (github["steps"][1]["run"], gitlab["script"][0]):
        assert "$KPROTO_CONTROL_URL/reset" in line


def test_the_page_of_installations_has_a_workflow_and_a_compose_file(tmp_path: Path) -> None:
    workflow, compose = map(yaml.safe_load, blocks("INSTALL.md", "yaml"))
    assert ON in workflow
    run((workflow["jobs"]["test"]["steps"][-1]["run"].removesuffix("make test") + "true").split(), tmp_path)
    kafka, application = (compose["services"][name] for name in ("kafka", "app"))
    assert (SERVER.parent / kafka["build"]["dockerfile"]).is_file()
    assert all(name in FILE for name in kafka["environment"])
    assert application["environment"]["KAFKA_BOOTSTRAP_SERVERS"] == kafka["environment"]["KPROTO_ADVERTISED"]


def test_the_container_copies_what_exists() -> None:
    copied = re.findall(r"^COPY (.*) \S+$", FILE, re.MULTILINE)
    assert all((SERVER.parent / name).exists() for names in copied for name in names.split())
