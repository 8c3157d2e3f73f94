"""Transcripts of real brokers: what scripts of requests get from them, in a file with a line for each transcript.

A script runs against real brokers, and against kproto as those releases, in variants such as the version of an API.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tests.membership.members import Step, differences


class Transcript(NamedTuple):
    """The transcript of a script with a release, in one variant."""

    script: str
    variant: int
    release: str
    steps: tuple[Step, ...]


class TranscriptFile:
    """A file of transcripts; equal ones of several releases share a line."""

    def __init__(self, path: Path, variant: str, scripts: Collection[str]) -> None:
        """``variant``: the name of the variant in the file; ``scripts``: in the order of the file."""
        self._path = path
        self._variant = variant
        self._scripts = list(scripts)

    @cached_property
    def transcripts(self) -> tuple[Transcript, ...]:
        return tuple(self._read())

    @property
    def releases(self) -> list[str]:
        return sorted({transcript.release for transcript in self.transcripts}, key=_by_number)

    def of(self, script: str, release: str) -> list[Transcript]:
        """Return the transcripts of a script with a release."""
        return [one for one in self.transcripts if (one.script, one.release) == (script, release)]

    def _read(self) -> Iterable[Transcript]:
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            row = json.loads(line)
            steps = tuple(Step(action, responses) for action, responses in row["steps"])
            for release in row["releases"]:
                yield Transcript(row["script"], row[self._variant], release, steps)

    def write(self, found: Iterable[Transcript]) -> None:
        """Write all transcripts."""
        releases: dict[tuple[int, int, str], list[str]] = {}
        for transcript in found:
            steps = json.dumps(transcript.steps, separators=(",", ":"))
            key = self._scripts.index(transcript.script), transcript.variant, steps
            releases.setdefault(key, []).append(transcript.release)
        rows = []
        for (index, variant, steps), names in releases.items():
            names.sort(key=_by_number)
            rows.append((index, variant, _by_number(names[0]), names, steps))
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(
            "".join(
                f'{{"script":"{self._scripts[index]}","{self._variant}":{variant},'
                f'"releases":{json.dumps(names)},"steps":{steps}}}\n'
                for index, variant, _, names, steps in sorted(rows)
            )
        )

    def record(
        self,
        description: str | None,
        run_on_broker: Callable[[str, Sequence[str]], list[Transcript]],
        run_on_kproto: Callable[[str, str, int], Transcript],
    ) -> None:
        """Run scripts of the command line against real brokers, write the transcripts, print how kproto's differ."""
        parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
        parser.add_argument("releases", nargs="+")
        parser.add_argument("--only", default=",".join(self._scripts))
        arguments = parser.parse_args()
        names = arguments.only.split(",")
        kept = list(self.transcripts)
        for release in arguments.releases:
            found = run_on_broker(release, names)
            kept = [one for one in kept if one.release != release or one.script not in names] + found
            self.write(kept)
            different = 0
            for theirs in found:
                lines = differences(run_on_kproto(release, theirs.script, theirs.variant).steps, theirs.steps)
                different += bool(lines)
                if lines:
                    print(f"{release} {self._variant} {theirs.variant} {theirs.script}", *lines, sep="\n")
            print(f"{release}: {len(found)} transcripts, {different} different from kproto")


def _by_number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.partition("-")[0].split("."))
