"""Completion of kproto's command line for bash, zsh and fish, made from the tables of options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import CommandLineError
from kproto_server.commandline import commands, conform, jobs, log, scenario
from kproto_server.commandline.options import LOG_LEVELS
from kproto_server.configuration.data_directory import ON_DISK
from kproto_server.releases.kafka_version import LATEST, kafka_version_names

if TYPE_CHECKING:
    from kproto_server.commandline.arguments import Command, Option

TOP = "kproto"
FILES = ("FILE", "DIR")
"""Values that are names of files or directories."""
PARENTS = {"log": log.COMMANDS, "report": jobs.COMMANDS, "scenario": scenario.COMMANDS, "conform": conform.COMMANDS}
"""Commands of two words."""

BASH = """# bash completion of kproto: source <(kproto completion bash)
_kproto() {{
    local IFS=$'\\n' current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} offered=
    local command="${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}"
    [ "$COMP_CWORD" -le 1 ] && command=
    [ "$COMP_CWORD" -eq 2 ] && command="${{COMP_WORDS[1]}} "
    case "$previous" in
{values}    esac
    [ -z "$offered" ] && case "$command" in
{commands}    esac
    COMPREPLY=($(compgen -W "${{offered// /$'\\n'}}" -- "$current"))
}}
complete -o default -F _kproto kproto
"""
ZSH = """#compdef kproto
# zsh completion of kproto: source <(kproto completion zsh)
autoload -U +X bashcompinit && bashcompinit
"""


def completion(shell: str) -> str:
    """Return the program of a command interpreter that completes kproto's command line.

    Raises:
        CommandLineError: the interpreter is unknown.
    """
    match shell:
        case "bash":
            return _bash()
        case "zsh":
            return ZSH + _bash().partition("\n")[2]
        case "fish":
            return _fish()
    raise CommandLineError(f"kproto completion: no interpreter {shell!r}: use bash, zsh or fish")


def words() -> dict[str, list[str]]:
    """Return what can follow each beginning of a command line: commands, scenarios or options."""
    from kproto_server.scenarios.failure_scenarios import SCENARIOS

    found = {"": [*commands.COMMANDS, *PARENTS, "help"]}
    found |= {name: list(command.options) for name, command in commands.COMMANDS.items()}
    found["completion"] = ["bash", "zsh", "fish"]
    for parent, table in PARENTS.items():
        found[parent] = list(table)
        found |= {f"{parent} {name}": list(command.options) for name, command in table.items()}
    found["scenario run"] += [*SCENARIOS, scenario.ALL]
    return found


def values() -> dict[str, list[str]]:
    """Return the possible values of each option that has only a few."""
    releases = [LATEST, *kafka_version_names()]
    return {
        "--kafka-version": releases,
        "--target": releases,
        "--clock": ["real", "manual", "auto", "scaled:"],
        "--durability": list(ON_DISK),
        "--log-level": list(LOG_LEVELS),
        "--format": ["text", "jsonl", "table", "csv", "parquet", "lines", "json", "prometheus", "chat"],
        "--engine": ["auto", "embedded", "spark"],
        "--fail-on": list(conform.FAIL_ON),
    }


def _bash() -> str:
    free = sorted(name for name, option in _options().items() if option.metavar and name not in values())
    lines = [f"        {name}) offered='{' '.join(found)}' ;;\n" for name, found in values().items()]
    lines.append(f"        {'|'.join(free)}) return ;;\n")
    cases = []
    for begin, found in words().items():
        pattern = f'"{begin} "*' if begin and " " not in begin else f'"{begin}"*' if begin else '""'
        cases.append((begin.count(" "), f"        {pattern}) offered='{' '.join(found)}' ;;\n"))
    longest_first = [line for _, line in sorted(cases, key=lambda case: -case[0])]
    return BASH.format(values="".join(lines), commands="".join(longest_first))


def _fish() -> str:
    lines = ["# fish completion of kproto: kproto completion fish | source", "complete -c kproto -f"]
    for begin, found in words().items():
        parts = begin.split()
        names = " ".join(found)
        condition = "__fish_use_subcommand" if not parts else f"__fish_seen_subcommand_from {parts[0]}"
        if len(parts) == 2:
            condition += f"; and __fish_seen_subcommand_from {parts[1]}"
        elif begin in PARENTS:
            condition += f"; and not __fish_seen_subcommand_from {names}"
        elif parts:  # `kproto run` is not `kproto scenario run`
            condition += f"; and not __fish_seen_subcommand_from {' '.join(PARENTS)}"
        arguments = " ".join(name for name in found if not name.startswith("--"))
        if arguments:
            lines.append(f"complete -c kproto -n '{condition}' -a '{arguments}'")
        for name in found:
            if name.startswith("--"):
                lines.append(_fish_option(condition, _options()[name]))
    return "\n".join(lines) + "\n"


def _fish_option(condition: str, option: Option) -> str:
    line = f"complete -c kproto -n '{condition}' -l {option.name.removeprefix('--')}"
    if option.name in values():
        line += f" -x -a '{' '.join(values()[option.name])}'"
    elif option.metavar:
        line += " -r -F" if option.metavar in FILES else " -x"
    text = option.help.splitlines()[0].replace("'", "\\'")
    return f"{line} -d '{text}'"


def _options() -> dict[str, Option]:
    tables: tuple[dict[str, Command], ...] = (commands.COMMANDS, *PARENTS.values())
    return {name: option for table in tables for command in table.values() for name, option in command.options.items()}
