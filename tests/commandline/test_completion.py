"""`kproto completion` completes commands, options and values in bash, zsh and fish."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kproto_server.commandline.completion import values, words
from tests.commandline.commands import LIMIT_S, kproto
from tests.requirements import need


def completed(*line: str) -> list[str]:
    """Return what bash offers for the last word of a command line."""
    words = " ".join(f"'{word}'" for word in line)
    program = f"COMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _kproto; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    script = kproto("completion", "bash").stdout + program
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["kproto", ""], words()[""]),
        (["kproto", "s"], ["serve", "scenario"]),
        (["kproto", "log", ""], ["dump", "verify", "export", "collect", "report", "retention", "watch"]),
        (["kproto", "log", "d"], ["dump"]),
        (["kproto", "log", "dump", "--f"], ["--format"]),
        (["kproto", "scenario", "run", "new"], ["new-partition"]),
        (["kproto", "serve", "--port"], ["--port", "--port-file"]),
        (["kproto", "run", "--quiet", "--fail"], ["--fail-on-removed", "--fail-on-protocol-error"]),
        (["kproto", "run", "--target", "4.0"], ["4.0.0", "4.0"]),
        (["kproto", "serve", "--durability", ""], values()["--durability"]),
        (["kproto", "serve", "--config", ""], []),
        (["kproto", "completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_commands_options_and_values(line: list[str], found: list[str]) -> None:
    assert completed(*line) == found


@pytest.mark.parametrize("interpreter", ["bash", "zsh", "fish"])
def test_the_program_of_each_interpreter_is_valid(interpreter: str, tmp_path: Path) -> None:
    program = kproto("completion", interpreter).stdout
    for begin, found in words().items():
        assert begin.split()[-1:] == [] or begin.split()[-1] in program
        assert all(name.removeprefix("--") in program for name in found)
    file = tmp_path / "completion"
    file.write_text(program)
    path = need(interpreter, install=f"{interpreter} (Debian: {interpreter})")
    subprocess.run([path, "-n", str(file)], timeout=LIMIT_S, check=True)


def test_an_unknown_interpreter_is_one_line() -> None:
    done = kproto("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kproto completion: no interpreter 'tcsh': use bash, zsh or fish\n"
    done = kproto("completion")
    assert done.stderr == "kproto completion: name one interpreter: bash, zsh or fish\n"
