"""A command line is parsed by the table of its command's options; each mistake is one line."""

from __future__ import annotations

import pytest

from kproto.errors import CommandLineError
from kproto_server.commandline.arguments import Command, HelpRequested, Option, whole_number

SWITCH = Option("--quiet", "", "say less")
FILE = Option("--file", "FILE", "where to\nwrite it")
SET = Option("--set", "NAME=VALUE", "set it", repeats=True)
PLAIN = Command("plain", "Does a thing.", "", (SWITCH, FILE, SET))
WITH_REST = Command("with-rest", "Runs a thing.", "-- COMMAND", (SWITCH, FILE))


def mistake(command: Command, *words: str) -> str:
    with pytest.raises(CommandLineError) as caught:
        command.parse(words)
    return str(caught.value)


@pytest.mark.parametrize("words", [["--file", "a"], ["--file=a"], ["--file", "b", "--file=a"]])
def test_an_option_has_its_last_value(words: list[str]) -> None:
    assert PLAIN.parse(words) == ({"--file": ["a"]}, [])


def test_an_option_that_repeats_has_all_its_values_in_order() -> None:
    assert PLAIN.parse(["--set", "a=1", "--set=b=2"]) == ({"--set": ["a=1", "b=2"]}, [])


def test_a_switch_has_no_value() -> None:
    assert PLAIN.parse(["--quiet"]) == ({"--quiet": [""]}, [])
    assert mistake(PLAIN, "--quiet=yes") == "kproto plain: --quiet takes no value: write --quiet"


def test_a_value_may_look_like_an_option_or_be_empty() -> None:
    assert PLAIN.parse(["--file", "--quiet"]) == ({"--file": ["--quiet"]}, [])
    assert PLAIN.parse(["--file="]) == ({"--file": [""]}, [])


@pytest.mark.parametrize("words", [["--", "ls", "--file", "x"], ["ls", "--file", "x"]])
def test_options_end_at_two_dashes_or_at_the_first_argument(words: list[str]) -> None:
    assert WITH_REST.parse(["--quiet", *words]) == ({"--quiet": [""]}, ["ls", "--file", "x"])


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["a", "--quiet", "b"], ["a", "b"]),
        (["--quiet", "--", "-a", "-b"], ["-a", "-b"]),
        (["a", "--quiet", "--", "-b", "--file", "-"], ["a", "-b", "--file", "-"]),
    ],
)
def test_two_dashes_are_before_files_only(words: list[str], files: list[str]) -> None:
    assert WITH_REST.parse_files(words) == ({"--quiet": [""]}, files)


def test_an_unexpected_argument_is_refused() -> None:
    assert mistake(PLAIN, "x") == "kproto plain: unexpected argument 'x': this command takes options only"
    assert mistake(PLAIN, "--", "x") == "kproto plain: unexpected argument 'x': this command takes options only"


def test_a_missing_value_is_refused() -> None:
    assert mistake(PLAIN, "--file") == "kproto plain: --file needs a value: write --file FILE"


def test_an_unknown_option_is_refused_with_a_similar_one() -> None:
    assert mistake(PLAIN, "--fil", "x") == (
        "kproto plain: no option '--fil': did you mean --file? (kproto plain --help lists all)"
    )
    assert mistake(PLAIN, "-xyzzy=3") == (
        "kproto plain: no option '-xyzzy': check its spelling (kproto plain --help lists all)"
    )


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_generated_from_the_table(word: str) -> None:
    with pytest.raises(HelpRequested) as caught:
        WITH_REST.parse(["--quiet", word, "--nonsense"])
    assert str(caught.value) == (
        "usage: kproto with-rest [options] -- COMMAND\n"
        "\n"
        "Runs a thing.\n"
        "\n"
        "options:\n"
        "  --quiet      say less\n"
        "  --file FILE  where to\n"
        "               write it\n"
    )


def test_help_after_the_end_of_the_options_belongs_to_the_command() -> None:
    assert WITH_REST.parse(["--", "ls", "--help"]) == ({}, ["ls", "--help"])


@pytest.mark.parametrize("text", ["", "x", "-1", "+1", "4", "1.0", " 1", "\N{ARABIC-INDIC DIGIT ONE}", "9" * 5000])
def test_a_number_out_of_bounds_and_other_text_are_refused(text: str) -> None:
    with pytest.raises(CommandLineError) as caught:
        whole_number(PLAIN, "--n", text, 0, 3)
    assert str(caught.value) == f"kproto plain: --n can't be {text!r}: give a whole number from 0 to 3"


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("3", 3), ("007", 7)])
def test_a_number_within_bounds_is_accepted(text: str, number: int) -> None:
    assert whole_number(PLAIN, "--n", text, 0, 7) == number
