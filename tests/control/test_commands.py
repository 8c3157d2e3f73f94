"""`kproto serve` and `kproto run` open a control port, print or pass its address, and close it with the broker."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kproto.errors import CommandLineError
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.commandline.parsing import run_options, serve_options
from tests.commandline.commands import LIMIT_S, kproto, kproto_started, line_of, python
from tests.control.client import Client
from tests.network.raw_client import RawClient
from tests.waiting import wait_until


def test_serve_has_a_control_port_and_its_file(tmp_path: Path) -> None:
    file = tmp_path / "control"
    file.write_text("http://127.0.0.1:1\n")  # of an earlier broker
    with kproto_started("serve", "--port", "0", "--control-port", "0", "--control-file", str(file)) as process:
        broker = line_of(process).removeprefix("kproto: listening on ")
        url = line_of(process).removeprefix("kproto: control API at ")
        wait_until(file.exists, "the control file")
        assert file.read_text() == f"{url}\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert Client(url)("GET", "/info").json["bootstrap_servers"] == broker
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0
    assert not file.exists()


def test_a_port_for_other_machines_has_a_token(tmp_path: Path) -> None:
    file = tmp_path / "control"
    words = ("serve", "--port", "0", "--control-port", "0", "--control-host", "0.0.0.0")  # noqa: S104
    with kproto_started(*words, "--control-file", str(file)) as process:
        line_of(process)
        shown = line_of(process)
        wait_until(file.exists, "the control file")
        url, token = file.read_text().splitlines()
        assert shown == f"kproto: control API at {url}"
        assert Client(url, token)("GET", "/health").status == 200
    with kproto_started(*words) as process:
        line_of(process)
        assert re.fullmatch(r"kproto: control API at http://0\.0\.0\.0:\d+, token \S{20,}", line_of(process))


def test_run_gives_its_command_the_address() -> None:
    program = """
import json, os, urllib.request
with urllib.request.urlopen(os.environ["KPROTO_CONTROL_URL"] + "/info") as response:
    print(json.load(response)["bootstrap_servers"] == os.environ["KAFKA_BOOTSTRAP_SERVERS"])
"""
    done = kproto("run", "--quiet", "--control-port", "0", "--", *python(program))
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    done = kproto("run", "--quiet", "--", *python("import os; print('KPROTO_CONTROL_URL' in os.environ)"))
    assert done.stdout == "False\n"


def test_a_port_in_use_is_one_line() -> None:
    with kproto_started("serve", "--port", "0", "--control-port", "0") as process:
        line_of(process)
        port = line_of(process).rpartition(":")[2]
        for words in (["serve", "--port", "0"], ["run"]):
            done = kproto(*words, "--control-port", port, *(["--", "true"] if words == ["run"] else []))
            assert done.returncode == 2
            assert done.stderr == (
                f"kproto {words[0]}: can't listen on 127.0.0.1:{port}: Address already in use; "
                "choose another --control-host or --control-port (0: a free one)\n"
            )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--control-port", "x"], "--control-port can't be 'x': give a whole number from 0 to 65535"),
        (["--control-port", "65536"], "--control-port can't be '65536'"),
        (["--control-host", "::1"], "--control-host needs a control port: write --control-port 0 (a free one)"),
        (["--control-file", "f"], "--control-file needs a control port"),
        (["--control-port", "0", "--control-file", "/no/such/file"], "--control-file: can't write '/no/such/file'"),
    ],
)
def test_mistakes_are_one_line(words: list[str], text: str) -> None:
    with pytest.raises(CommandLineError) as caught:
        serve_options(words)
    assert str(caught.value).startswith(f"kproto serve: {text}")


def test_the_options_have_defaults() -> None:
    assert serve_options([]).control is None
    assert run_options(["--", "true"]).control is None
    control = run_options(["--control-port", "7", "--", "true"]).control
    assert control is not None
    assert (control.host, control.port, control.file) == ("127.0.0.1", 7, None)


def test_a_control_port_that_nobody_uses_imports_nothing() -> None:
    program = """
import json, sys
from kproto_server import Broker
from kproto_server.control.listening import open_port
with Broker.running() as broker:
    port = open_port("127.0.0.1", 0)
    broker.run(lambda server: server.start_task(port.serve))
    print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    modules = json.loads(done.stdout)
    assert not {"h11", "kproto_server.control.operations", "http"} & set(modules)


def test_serve_keeps_requests_from_the_first_use_of_the_port_on() -> None:
    with kproto_started("serve", "--port", "0", "--control-port", "0") as process:
        address = line_of(process).removeprefix("kproto: listening on ")
        control = Client(line_of(process).removeprefix("kproto: control API at "))
        with RawClient(address) as client:
            client.ask(ApiVersionsRequest(), 0)
            for path in ("/health", "/info", "/report", "/metrics", "/openapi.json"):
                assert control("GET", path).status == 200
            assert not control("GET", "/info").json["keeps_requests"]
            frame = client.frame(ApiVersionsRequest(), 0, 7)
            client.socket.sendall(frame[:5])
            assert control("GET", "/requests").json["count"] == 0
            client.socket.sendall(frame[5:])
            client.read_frame()
            client.ask(ApiVersionsRequest(), 0)
            found = control("GET", "/requests").json["requests"][-1]
            assert found["response"]["error_code"] == 0
        assert control("GET", "/info").json["keeps_requests"]
