"""Install kproto in each way that the README names, and start it: pip, pipx, uvx, the zip application, the executable.

CI runs ``python -m tests.check_packages``, which runs the commands between the README's comments ``install`` in copies
of the sources, two at a time. It prints sizes and start-up times. The exit code is 1 if one fails.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("uv", "pipx")
SOURCES = ("kproto", "server", "pyproject.toml", "README.md", "LICENSE")
LIMIT_S = 1200
STARTS = 3


def commands() -> list[str]:
    """Return the commands of the README's install section."""
    (block,) = re.findall(r"<!-- install -->\n```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [line for line in block.splitlines() if line]


def main() -> int:
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(2) as threads:
        folder = Path(name)
        venv.create(folder / "tools", with_pip=True, symlinks=True)
        pip = [
            str(folder / "tools" / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, *TOOLS], check=True)
        slowest_first = sorted(enumerate(commands()), key=lambda one: "executable" not in one[1])
        problems = [
            problem
            for problem in threads.map(lambda one: check(one[1], folder, folder / str(one[0])), slowest_first)
            if problem
        ]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def check(command: str, tools: Path, folder: Path) -> str | None:
    """Run a command of the README in a copy of the sources, then what it has installed; return what is wrong."""
    folder.mkdir()
    for source in SOURCES:
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        copy(ROOT / source, folder / source)
    own = folder / "own"
    venv.create(own, with_pip=True, symlinks=True)
    places = {
        name: str(folder / name.lower()) for name in ("PIPX_HOME", "PIPX_BIN_DIR", "UV_CACHE_DIR", "XDG_CACHE_HOME")
    }
    search = [own / "bin", places["PIPX_BIN_DIR"], folder, tools / "tools" / "bin", os.environ["PATH"]]
    environment = {
        **os.environ,
        **places,
        "PATH": os.pathsep.join(map(str, search)),
        "PIP_NO_COMPILE": "no",  # pip's option --no-compile: most of what it would compile is never imported
    }
    environment.pop("PYTHONPATH", None)
    began = time.monotonic()
    words = ["bash", "-euo", "pipefail", "-c", command]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode:
        return f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    print(f"{command}: {time.monotonic() - began:.0f} s")
    if command.startswith("uvx"):
        return None if "kproto 0." in done.stdout else f"{command}: {done.stdout}"
    program = next((one for one in ("kproto.pyz", "kproto-executable") if one in command), "kproto")
    found = shutil.which(program, path=environment["PATH"])
    if found is None:
        return f"{command}: it installs no {program}"
    return check_program([str(found)], environment)


def check_program(words: list[str], environment: dict[str, str]) -> str | None:
    """Start a broker, and a command beside one; return what is wrong."""
    ran = [*words, "run", "--", "sh", "-c", 'echo "$KAFKA_BOOTSTRAP_SERVERS"']
    done = subprocess.run(ran, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or not done.stdout.startswith("127.0.0.1:"):
        return f"{ran}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    times = []
    for _ in range(STARTS):
        began = time.monotonic()
        process = subprocess.Popen(
            [*words, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        times.append(time.monotonic() - began)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        if process.returncode or "listening on" not in line:
            return f"{words} serve: exit code {process.returncode}, {line!r}"
    size = (
        f", {Path(words[0]).stat().st_size / 1e6:.1f} MB"
        if Path(words[0]).suffix == ".pyz" or "executable" in words[0]
        else ""
    )
    print(f"{Path(words[0]).name}: listens after {min(times):.2f} s{size}")
    ended_with_its_parent(words, environment)
    killed_with_its_command(words, environment)
    return None


def ended_with_its_parent(words: list[str], environment: dict[str, str]) -> None:
    """Kill the program that has started a broker, and wait until the broker has ended, which removes its file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "brokers.txt")
        broker = [*words, "serve", "--quiet", "--port", "0", "--port-file", str(file), "--exit-with-parent"]
        parent = subprocess.Popen(["sh", "-c", '"$@" & wait', "sh", *broker], env=environment)
        wait_until(file.exists, "the broker")
        parent.kill()
        parent.wait()
        wait_until(lambda: not file.exists(), "the end of the broker")


def killed_with_its_command(words: list[str], environment: dict[str, str]) -> None:
    """Kill a broker with a command beside it, and wait until the command has ended."""
    process = subprocess.Popen(
        [*words, "run", "--", "sh", "-c", "echo $$; exec sleep 60"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    command_pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    wait_until(lambda: not Path(f"/proc/{command_pid}").exists(), "the end of the command")


if __name__ == "__main__":
    sys.exit(main())
