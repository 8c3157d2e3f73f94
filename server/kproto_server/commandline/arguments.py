"""Parse a command line of long options; the help comes from the same table.

Written by hand because argparse takes 6 ms to import, a tenth of the start-up, and because each mistake gets one line
that says what is wrong and what to do.
"""

from __future__ import annotations

from kproto.errors import CommandLineError, KprotoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HELP = ("-h", "--help")


class HelpRequested(KprotoError):
    """The command line has ``--help``; the text is the help."""


class Option:
    """One option. Without a ``metavar`` it is a switch; with ``repeats`` each occurrence counts, else the last one."""

    __slots__ = ("help", "metavar", "name", "repeats")

    def __init__(self, name: str, metavar: str, help: str, *, repeats: bool = False) -> None:
        self.name: str = name
        self.metavar: str = metavar
        self.help: str = help
        self.repeats: bool = repeats

    @property
    def head(self) -> str:
        """The option as the help shows it: name and value."""
        return f"{self.name} {self.metavar}".rstrip()


class Command:
    """A subcommand: its options, and the arguments after them (none, or another program's command line)."""

    def __init__(self, name: str, summary: str, rest: str, options: Sequence[Option]) -> None:
        self.name = name
        self.summary = summary
        self.rest = rest
        """The arguments after the options, as the help shows them; empty: none are allowed."""
        self.options: dict[str, Option] = {option.name: option for option in options}

    def help(self) -> str:
        """Return the text of ``--help``."""
        width = max((len(option.head) for option in self.options.values()), default=0)
        usage = f"usage: kproto {self.name}{' [options]' if self.options else ''} {self.rest}".rstrip()
        lines = [usage, "", self.summary, *(("", "options:") if self.options else ())]
        for option in self.options.values():
            first, *more = option.help.splitlines()
            lines.append(f"  {option.head.ljust(width)}  {first}")
            lines += [f"  {' ' * width}  {line}" for line in more]
        return "\n".join(lines) + "\n"

    def parse(self, arguments: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
        """Return the values of each given option (empty strings for a switch) and the arguments after the options.

        Options end at ``--`` or at the first argument that does not begin with ``-``.

        Raises:
            CommandLineError: an unknown option, an option without its value, or an unexpected argument.
            HelpRequested: the options include ``--help``.
        """
        given, rest, _ = self._parse(arguments)
        return given, rest

    def _parse(self, arguments: Sequence[str]) -> tuple[dict[str, list[str]], list[str], bool]:
        """Return what `parse` returns, and whether ``--`` has ended the options."""
        given: dict[str, list[str]] = {}
        rest, has_ended = list(arguments), False
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if word == "--":
                has_ended = True
                break
            if word in HELP:
                raise HelpRequested(self.help())
            name, equals, value = word.partition("=")
            option = self._option(name)
            if option.metavar and not equals:
                if not rest:
                    raise self.error(f"{name} needs a value: write {option.head}")
                value = rest.pop(0)
            elif equals and not option.metavar:
                raise self.error(f"{name} takes no value: write {name}")
            values = given.setdefault(name, [])
            if not option.repeats:
                values.clear()
            values.append(value)
        if rest and not self.rest:
            takes = "options only" if self.options else "no arguments"
            raise self.error(f"unexpected argument {rest[0]!r}: this command takes {takes}")
        return given, rest, has_ended

    def parse_files(self, arguments: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
        """Return the same if the options may stand before, between and after the arguments, which are files.

        Raises:
            CommandLineError: as `parse`.
            HelpRequested: as `parse`.
        """
        given, rest, has_ended = self._parse(arguments)
        files: list[str] = []
        while rest and not has_ended:
            files.append(rest[0])
            more, rest, has_ended = self._parse(rest[1:])
            for name, values in more.items():
                given[name] = given.get(name, []) + values if self.options[name].repeats else values
        return given, files + rest

    def error(self, text: str) -> CommandLineError:
        """Return an error that names this subcommand."""
        return CommandLineError(f"kproto {self.name}: {text}")

    def _option(self, name: str) -> Option:
        option = self.options.get(name)
        if option is None:
            raise self.error(
                f"no option {name!r}: {_suggestion(name, self.options)} (kproto {self.name} --help lists all)"
            )
        return option


def last(given: Mapping[str, Sequence[str]], name: str) -> str | None:
    """Return the last value of an option; None: it was not given."""
    values = given.get(name)
    return values[-1] if values else None


def subcommand(
    parent: str, help_text: str, commands: dict[str, Command], arguments: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the name of the subcommand that begins the arguments of ``kproto PARENT``, and the arguments behind it.

    Raises:
        CommandLineError: there is no such subcommand.
        HelpRequested: the arguments ask for help.
    """
    *others, last = commands
    names = f"{', '.join(others)} or {last}" if others else last
    use = f"use {names}, see kproto {parent} --help"
    match list(arguments):
        case ["-h" | "--help" | "help"]:
            raise HelpRequested(help_text)
        case ["help", name] if name in commands:
            raise HelpRequested(commands[name].help())
        case [name, *rest] if name in commands:
            return name, rest
        case []:
            raise CommandLineError(f"kproto {parent}: no command given: {use}")
    raise CommandLineError(f"kproto {parent}: no command {arguments[0]!r}: {use}")


def _suggestion(word: str, known: dict[str, Option]) -> str:
    from difflib import get_close_matches  # imported here: only a mistake needs it

    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]}?" if close else "check its spelling"


def whole_number(command: Command, name: str, text: str, low: int, high: int) -> int:
    """Return the value of a numeric option.

    Raises:
        CommandLineError: the text is not a whole number, or the number is out of range.
    """
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not low <= number <= high:
        raise command.error(f"{name} can't be {text!r}: give a whole number from {low} to {high}")
    return number
