"""Play the timelines of expiry to real brokers, in real time, and keep what came of them in `fixtures/expiry`.

    python -m tests.oracle.expiry 2.0.1 2.1.1 4.4.0 [--only T5,T8]

Takes two and a half minutes a release: all groups live at once, on one broker; those in whose time the broker is down
have one of their own. Prints where an outcome is not that of the table. With --only, what is recorded of others stays;
T23, which takes ten minutes, is played only by its name.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.expiry_table import TABLE
from tests.coordinator.line import Down, Outcome, Script, differences
from tests.fixture_files import FIXTURES
from tests.oracle import launcher
from tests.oracle.expiry_line import RealTime, WireLine

SETTINGS = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
    "offsets.topic.num.partitions": "4",
}
"""Beside those that every broker gets from the launcher."""
TOLERANCE_S = 1.5
"""A second is between two sweeps; the rest is between two looks."""
LAG_LIMIT_S = 0.5
"""An act that is later than this makes a recording worthless."""
INIT_PRODUCER_ID = 22
READY_S = 0.5


def play_all(release: str, scripts: Sequence[Script]) -> dict[str, tuple[Outcome, float]]:
    """Play scripts to a release, those that have it down at other times to other brokers; return outcome and lag."""
    by_down: dict[Down | None, list[Script]] = {}
    for script in scripts:
        by_down.setdefault(script.down, []).append(script)
    with ThreadPoolExecutor(len(by_down)) as pool:
        played = [pool.submit(play_on_one_broker, release, down, those) for down, those in by_down.items()]
    return {name: outcome for future in played for name, outcome in future.result().items()}


def play_on_one_broker(release: str, down: Down | None, scripts: Sequence[Script]) -> dict[str, tuple[Outcome, float]]:
    with tempfile.TemporaryDirectory(prefix="expiry-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        broker = launcher.start(release, folder=folder, props=SETTINGS)
        try:
            clock = RealTime()
            lines = [WireLine(broker.bootstrap, f"group-{script.name}", clock) for script in scripts]
            for script, line in zip(scripts, lines, strict=True):
                line.set_up(in_transaction=script.uses(INIT_PRODUCER_ID))
            clock.begin(READY_S)
            restart = threading.Thread(target=_restart, args=(folder, release, down, clock))
            with ThreadPoolExecutor(len(scripts)) as pool:
                restart.start()
                outcomes = list(pool.map(lambda script, line: script.run(line), scripts, lines))
            restart.join()
            for line in lines:
                line.close()
        finally:
            launcher.stop(folder)
    return {s.name: (o, line.lag_s) for s, o, line in zip(scripts, outcomes, lines, strict=True)}


def _restart(folder: Path, release: str, down: Down | None, clock: RealTime) -> None:
    if down is None:
        return
    clock.pass_until(down.stop_s)
    launcher.stop(folder)
    clock.pass_until(down.start_s)
    launcher.start(down.upgrade or release, folder=folder, props=SETTINGS)


def recording(release: str) -> Path:
    return FIXTURES / "expiry" / f"{release}.json"


def keep(release: str, outcomes: dict[str, tuple[Outcome, float]]) -> None:
    path = recording(release)
    timelines: dict[str, Any] = json.loads(path.read_text())["timelines"] if path.exists() else {}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    for name, (outcome, lag_s) in outcomes.items():
        facts: dict[str, Any] = {"gone": outcome.gone, "states": outcome.states}
        if outcome.answers:
            facts["answers"] = outcome.answers
        if outcome.loaded is not None:
            facts["loaded"] = outcome.loaded
        timelines[name] = {**facts, "latest_act_s": round(lag_s, 3), "recorded": date}
    ordered = {name: timelines[name] for name in TABLE if name in timelines}
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in ordered.items())
    head = f'{{\n "broker": "{release}",\n "settings": {json.dumps(SETTINGS)},\n "timelines": {{\n'
    path.write_text(f"{head}{lines}\n }}\n}}\n")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.expiry", description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", metavar="RELEASE")
    parser.add_argument("--only", default="", help="names of timelines, comma-separated")
    asked = parser.parse_args(argv)
    only = asked.only.split(",") if asked.only else [name for name, script in TABLE.items() if not script.is_long]
    is_well = True
    for release in asked.releases:
        kafka_version = KafkaVersion.named(release)
        scripts = [s for s in TABLE.values() if s.name in only and s.can_be_played(kafka_version)]
        outcomes = play_all(release, scripts)
        for script in scripts:
            outcome, lag_s = outcomes[script.name]
            expected = script.outcomes.get(kafka_version.name, outcome)
            faults = list(differences(expected, outcome, script.states, TOLERANCE_S))
            if lag_s > LAG_LIMIT_S:
                faults.append(f"an act came {lag_s:.2f} s late")
            print(release, script.name, "; ".join(faults) or "as in the table", flush=True)
            is_well = is_well and not faults
        keep(release, outcomes)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
