"""Run the timelines of offset expiration on real brokers in real time, and record the outcomes in `fixtures/expiry`.

    python -m tests.oracle.expiry 2.0.1 2.1.1 4.4.0 [--only T5,T8]

Takes two and a half minutes per release: all groups run at the same time on one broker, except timelines that restart
the broker, which have their own one. Prints the differences between the outcomes and the table. With --only, the other
recordings stay as they are; T23 takes ten minutes and runs only if it is named.
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
from tests.coordinator.expiration_table import TABLE
from tests.coordinator.timeline import Downtime, Outcome, Script, differences
from tests.fixture_files import FIXTURES
from tests.oracle import launcher
from tests.oracle.expiry_timeline import RealTime, WireTimeline

SETTINGS = {
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "1000",
    "offsets.topic.num.partitions": "4",
}
"""In addition to the settings of the launcher."""
TOLERANCE_S = 1.5
"""One second between two runs of the expiration task; the rest is the interval of observations."""
LAG_LIMIT_S = 0.5
"""A recording with an action later than this is invalid."""
INIT_PRODUCER_ID = 22
READY_S = 0.5


def run_all(release: str, scripts: Sequence[Script]) -> dict[str, tuple[Outcome, float]]:
    """Run scripts on a release, one broker per restart schedule; return the outcome and the lag of each."""
    by_down: dict[Downtime | None, list[Script]] = {}
    for script in scripts:
        by_down.setdefault(script.down, []).append(script)
    with ThreadPoolExecutor(len(by_down)) as pool:
        futures = [pool.submit(run_on_one_broker, release, down, group) for down, group in by_down.items()]
    return {name: outcome for future in futures for name, outcome in future.result().items()}


def run_on_one_broker(
    release: str, down: Downtime | None, scripts: Sequence[Script]
) -> dict[str, tuple[Outcome, float]]:
    with tempfile.TemporaryDirectory(prefix="expiry-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        broker = launcher.start(release, folder=folder, props=SETTINGS)
        try:
            clock = RealTime()
            timelines = [WireTimeline(broker.bootstrap, f"group-{script.name}", clock) for script in scripts]
            for script, timeline in zip(scripts, timelines, strict=True):
                timeline.set_up(in_transaction=script.uses(INIT_PRODUCER_ID))
            clock.begin(READY_S)
            restart = threading.Thread(target=_restart, args=(folder, release, down, clock))
            with ThreadPoolExecutor(len(scripts)) as pool:
                restart.start()
                outcomes = list(pool.map(lambda script, timeline: script.run(timeline), scripts, timelines))
            restart.join()
            for timeline in timelines:
                timeline.close()
        finally:
            launcher.stop(folder)
    return {s.name: (o, timeline.lag_s) for s, o, timeline in zip(scripts, outcomes, timelines, strict=True)}


def _restart(folder: Path, release: str, down: Downtime | None, clock: RealTime) -> None:
    if down is None:
        return
    clock.pass_until(down.stop_s)
    launcher.stop(folder)
    clock.pass_until(down.start_s)
    launcher.start(down.upgrade or release, folder=folder, props=SETTINGS)


def recording(release: str) -> Path:
    return FIXTURES / "expiry" / f"{release}.json"


def record(release: str, outcomes: dict[str, tuple[Outcome, float]]) -> None:
    path = recording(release)
    timelines: dict[str, Any] = json.loads(path.read_text())["timelines"] if path.exists() else {}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    for name, (outcome, lag_s) in outcomes.items():
        recorded: dict[str, Any] = {"gone": outcome.gone, "states": outcome.states}
        if outcome.error_codes:
            recorded["error_codes"] = outcome.error_codes
        if outcome.loaded is not None:
            recorded["loaded"] = outcome.loaded
        timelines[name] = {**recorded, "latest_act_s": round(lag_s, 3), "recorded": date}
    ordered = {name: timelines[name] for name in TABLE if name in timelines}
    path.parent.mkdir(exist_ok=True)
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(timeline)}" for name, timeline in ordered.items())
    head = f'{{\n "broker": "{release}",\n "settings": {json.dumps(SETTINGS)},\n "timelines": {{\n'
    path.write_text(f"{head}{rows}\n }}\n}}\n")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.expiry", description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", metavar="RELEASE")
    parser.add_argument("--only", default="", help="timelines to run, comma-separated")
    arguments = parser.parse_args(argv)
    only = (
        arguments.only.split(",") if arguments.only else [name for name, script in TABLE.items() if not script.is_long]
    )
    is_equal = True
    for release in arguments.releases:
        kafka_version = KafkaVersion.named(release)
        scripts = [s for s in TABLE.values() if s.name in only and s.can_run_on(kafka_version)]
        outcomes = run_all(release, scripts)
        for script in scripts:
            outcome, lag_s = outcomes[script.name]
            expected = script.outcomes.get(kafka_version.name, outcome)
            problems = list(differences(expected, outcome, script.states, TOLERANCE_S))
            if lag_s > LAG_LIMIT_S:
                problems.append(f"an action was {lag_s:.2f} s late")
            print(release, script.name, "; ".join(problems) or "equals the table", flush=True)
            is_equal = is_equal and not problems
        record(release, outcomes)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
