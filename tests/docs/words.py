"""The words that kproto does not use, and the word to say instead.

``python -m tests.docs.words [PATH ...]`` lists every line that uses one of them: in prose, identifiers, file names and
texts for users alike. Kafka's own texts, settings and fields, and the names of other projects, keep their words; the
few lines that need them stand in `EXCEPTIONS`, each with its reason.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import re2

ROOT = Path(__file__).parents[2]
SCANNED = ("kproto", "server", "tests", "bench", "README.md", "CHANGELOG.md", "pyproject.toml", ".ci")
SUFFIXES = (".py", ".md", ".toml", ".html", ".css", ".js", ".go", ".java", ".mjs", ".yml", "")


class Rule(NamedTuple):
    """One thing that has another word."""

    pattern: re.Pattern[str]
    instead: str
    where: str = ""
    """Only below this directory; empty: everywhere."""


class Finding(NamedTuple):
    """A line with a word that kproto does not use."""

    path: str
    line_number: int
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line_number}: {self.found!r}: say {self.instead}"


STEMS: dict[re.Pattern[str], str] = {}
"""Pattern of a word -> its stem, which a text has if the pattern matches: to look for it takes a fiftieth."""


def word(stem: str, endings: str = "s") -> re.Pattern[str]:
    """Return the pattern of a word, with any of these endings, in prose and inside identifiers of any style."""
    end = f"(?:{endings})?"
    parts = (
        rf"(?<![A-Za-z]){stem}{end}(?![a-z])",
        rf"{stem.capitalize()}{end}(?![a-z])",
        rf"(?<![A-Z]){(stem + end).upper()}(?![A-Z])",
    )
    pattern = re.compile("|".join(parts))
    STEMS[pattern] = stem
    return pattern


PHRASES: dict[re.Pattern[str], str] = {}
"""Pattern of a phrase -> its text."""


def phrase(text: str) -> re.Pattern[str]:
    """Return the pattern of words of prose, in any case, over one space."""
    pattern = re.compile(rf"(?i)\b(?:{text})\b")
    PHRASES[pattern] = text
    return pattern


@cache
def any_phrase() -> Any:
    """Return the pattern of all phrases together: RE2 searches for it as fast as for one of them."""
    return re2.compile(rf"\b(?:{'|'.join(f'(?:{text})' for text in PHRASES.values())})\b")


RULES = (
    Rule(word("octet"), "byte"),
    Rule(word("answer", "s|ed|ing"), "response, respond, return, report or log"),
    Rule(re.compile(r"(?<![A-Za-z.])(?:[Tt]ell(?:s|ing)?|[Tt]old)(?![a-z])"), "return, report, log, state or receive"),
    Rule(word("park", "s|ed|ing"), "delayed operation, to delay"),
    Rule(phrase("not built yet"), "what kproto does"),
    Rule(phrase("held (?:answers?|requests?)|a place (?:is|be) held|holds? the place"), "deferred response"),
    Rule(word("memo"), "commit cache entry"),
    Rule(word("sight"), "candidate"),
    Rule(word("barren", "ness"), "unused"),
    Rule(word("quirk"), "version behavior"),
    Rule(re.compile(r"(?<![A-Za-z])[Pp]rofiles?(?![a-z])|--profile|(?<=[a-z])Profiles?(?![a-z])"), "Kafka version"),
    Rule(word("lookout"), "busy poll"),
    Rule(word("burden", "s|ed"), "buffer quota"),
    Rule(re.compile(r"kproto_server[./]shell|tests[./]shell|\b[Tt]he shell\b"), "server, network or io"),
    Rule(word("gathering"), "PreparingRebalance, the rebalance"),
    Rule(word("sweep", "s|ing|er|ers"), "offset expiration, expiration task"),
    Rule(word("judge", "s|d|ment"), "decide, check"),
    Rule(phrase("verdicts?"), "expired, or not", "server/kproto_server/coordinator"),
    Rule(word("handover"), "unload, load"),
    Rule(word("survivor"), "retained record"),
    Rule(phrase("quick (?:way|path)"), "fast path"),
    Rule(phrase("plain (?:path|twin|way|one)"), "reference implementation"),
    Rule(word("journal"), "write-ahead log, group commit"),
    Rule(phrase("orderly (?:end|shutdown)"), "clean shutdown"),
    Rule(phrase("cuts? off|cutting off"), "truncated"),
    Rule(word("glance"), "precheck"),
    Rule(word("facts", ""), "queries, values"),
    Rule(word("journey"), "trace"),
    Rule(word("accident"), "failure scenario"),
    Rule(phrase("who(?:m)?ever|who(?:se)?soever"), "the noun: the client, the caller, the member"),
    Rule(phrase("nobody|somebody|anybody|no-one|everybody"), "the noun: the client, the caller, the member"),
    Rule(phrase("anew"), "again"),
    Rule(phrase("in vain|of no use|no use|at hand|by lot|heeds?|dearer|dearest|dear"), "plain words"),
    Rule(phrase("generations? of (?:a )?batch(?:es)?"), "message format version (magic)"),
    Rule(phrase("(?:mis)?behaviours?|colours?|coloured|favours?|favourites?"), "American spelling"),
    Rule(
        phrase("neighbours?|neighbouring|licences?|centres?|whilst|artefacts?|judgement|analyse[sd]?"),
        "American spelling",
    ),
    Rule(
        phrase("(?:de)?serialis\\w+|recognis\\w+|initialis\\w+|organis\\w+|normalis\\w+|summaris\\w+"),
        "American spelling",
    ),
)

EXCEPTIONS: tuple[tuple[str, str, str], ...] = (
    ("", r"kproto\.journal", "names of files on disk"),
    ("kproto/", r"stream_tell", "construct's own name"),
    ("tests/docs/", "", "the rules themselves"),
    ("tests/records/test_compression.py", r"Nobody inspects", "a published test vector of xxHash32"),
    (
        "tests/server/handlers/test_recorded_fetches.py",
        r"^NOT_ASKED",
        "a note in fixtures/golden/frames/OffsetFetch.jsonl",
    ),
    (
        "tests/partition_log/",
        r'"(?:tells the start|session opened anew|few octets|cut off)"',
        "notes of requests, stored in fixtures/golden/records",
    ),
    ("CHANGELOG.md", r"is now `--kafka-version`", "the old name of an option"),
    ("", r"load_profile|register_profile|get_profile|Hypothesis profile", "Hypothesis's own names"),
    (
        "",
        r"cProfile|profile (?:it|a server|the broker|with)|debug(?:-| )and(?:-| )profile|--profile-",
        "a CPU profile, the field's word",
    ),
)
"""Path prefix, pattern of the line, reason."""


def is_excepted(path: str, line: str) -> bool:
    """Return whether a line may use its words."""
    return any(path.startswith(prefix) and re.search(pattern, line) for prefix, pattern, _ in EXCEPTIONS)


def findings_in(path: str, text: str) -> list[Finding]:
    """Return what a file's name and lines say that has another word."""
    # Most files match few rules, and a search of a whole file takes a tenth of a search of each line.
    whole = f"{path}\n{text}"
    lowered = whole.lower()
    has_phrase = any_phrase().search(lowered) is not None
    rules = [
        rule
        for rule in RULES
        if path.startswith(rule.where)
        and (has_phrase or rule.pattern not in PHRASES)
        and STEMS.get(rule.pattern, "") in lowered
        and rule.pattern.search(whole)
    ]
    found: list[Finding] = []
    if not rules:
        return found
    for line_number, line in enumerate([path, *text.splitlines()]):
        matches = [(match.group(), rule.instead) for rule in rules for match in rule.pattern.finditer(line)]
        if matches and not is_excepted(path, line):
            found += [Finding(path, line_number, word_found, instead) for word_found, instead in matches]
    return found


def scanned_files(names: list[str]) -> list[Path]:
    """Return the text files below these paths, caches and fixtures left out."""
    found: list[Path] = []
    for name in names:
        path = ROOT / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in files if file.is_file() and file.suffix in SUFFIXES]
    skipped = {"__pycache__", "_generated", "node_modules", "target", ".mypy_cache"}
    return [file for file in found if skipped.isdisjoint(file.relative_to(ROOT).parts)]


def all_findings(names: list[str]) -> list[Finding]:
    """Return the findings in all text files below these paths, relative to the repository's root."""
    found: list[Finding] = []
    for file in scanned_files(names):
        found += findings_in(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8", errors="replace"))
    return found


if __name__ == "__main__":
    findings = all_findings(sys.argv[1:] or list(SCANNED))
    for finding in findings:
        print(finding)
    sys.exit(bool(findings))
