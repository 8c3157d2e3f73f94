"""Programs in which two members of one group read a topic of four partitions, each with another client.

They take BOOTSTRAP GROUP TOPIC VERB and print one line of JSON: what the two had, and what came then.

    dynamic       the first is closed; "alone": what the second has when it has all
    cooperative   the same with an assignor that moves partitions one by one (KIP-429)
    static        both have instance ids (KIP-345). The first is closed and comes back; "again": what it has then,
                  "rebalances": how often the second was assigned something meanwhile
"""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.cluster import NEWEST, kafka
from tests.oracle.java import compiled, java_command

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersProgram:
    name: str
    command: Callable[[], list[str]]
    """What runs the program; skips the test where something for it is missing."""
    verbs: tuple[str, ...]
    needs_java: bool = False


def _java(version: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        classpath = kafka("clientpath", version)
        classes = compiled(HERE / "java" / "MembersClient.java", classpath)
        return java_command(classes, classpath, "MembersClient")

    return command


def _java_members(version: str, *verbs: str) -> MembersProgram:
    return MembersProgram(name=f"java-{version}", command=_java(version), verbs=verbs, needs_java=True)


PROGRAMS = (
    _java_members("0.9.0.1", "dynamic"),
    _java_members("1.1.1", "dynamic"),
    _java_members("2.0.1", "dynamic"),
    _java_members("2.8.2", "dynamic", "static", "cooperative"),
    _java_members(NEWEST, "dynamic", "static", "cooperative"),
)


def run(program: MembersProgram, bootstrap: str, group: str, topic: str, verb: str) -> dict[str, Any]:
    """Run a program; return what it printed."""
    command = [*program.command(), bootstrap, group, topic, verb]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == 0, f"{program.name} {verb} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    printed: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return printed
