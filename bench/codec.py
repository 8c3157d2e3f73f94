"""Decoding the request and encoding the response of OffsetCommit v3, beside other codecs on the same bytes.

Method: CPU time of the thread, garbage collection off (as `timeit` does), batches of about a millisecond;
codecs take turns in each round, and each figure is the least of its rounds: other load on the machine only
adds time. Before that, each codec must decode the same values and encode the same bytes.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from itertools import product
from time import thread_time_ns
from timeit import Timer

from bench.codecs import SUBJECTS, Call, Case, Subject, names
from bench.model import Bench, BenchError, Lead, Metric, Missing, Note, Row
from bench.options import count, counts

SUM = Metric(key="sum_ns", title="sum ns", compared=True, digits=0)
METRICS = (
    Metric(key="decode_ns", title="decode ns", digits=0),
    Metric(key="encode_ns", title="encode ns", digits=0),
    SUM,
)
PARTITIONS = (1, 10, 100)
COMMON = ""
"""The metadata of nearly every commit; the floors apply to it, and the other rows show the cost of metadata."""
METADATA = (COMMON, "m")
BATCH_NS = 1_000_000
FLOORS = {"construct": 25.0, "kio": 2.0, "kafka-python": 2.0, "hand-struct": 0.9}
"""How many times faster; level with hand-written code means within the noise of a tenth."""


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--partitions", type=counts, default=list(PARTITIONS), metavar="N,...", help="1,10,100 if not given"
    )
    parser.add_argument("--rounds", type=count, default=25, metavar="N", help="least of so many; 25 if not given")


def run(options: Namespace, note: Note) -> list[Row]:
    codecs = _installed(options.only, note)
    return [
        Row(bench=BENCH.name, case=str(case), figures=_measured(case, codecs, options.rounds))
        for case in (Case(*pair) for pair in product(options.partitions, METADATA))
    ]


def _installed(asked: list[str], note: Note) -> list[str]:
    found = []
    for name in asked:
        try:
            SUBJECTS[name](Case(1, ""))
        except Missing as missing:
            note(f"{name} left out: {missing}")
        else:
            found.append(name)
    return found


def _measured(case: Case, codecs: list[str], rounds: int) -> dict[str, dict[str, float]]:
    subjects = {name: SUBJECTS[name](case) for name in codecs}
    for name, subject in subjects.items():
        check(name, subject, case)
    decodes = {name: Batch(subject.decode) for name, subject in subjects.items()}
    encodes = {name: Batch(subject.encode) for name, subject in subjects.items()}
    for _ in range(rounds):
        for name in codecs:
            decodes[name].run()
            encodes[name].run()
    return {name: _figures(decodes[name].least_ns, encodes[name].least_ns) for name in codecs}


def _figures(decode_ns: float, encode_ns: float) -> dict[str, float]:
    return {"decode_ns": decode_ns, "encode_ns": encode_ns, SUM.key: decode_ns + encode_ns}


def check(name: str, subject: Subject, case: Case) -> None:
    """Compare a codec's results with the bytes written by hand.

    Raises:
        BenchError: the codec decodes other values, or encodes other bytes.
    """
    if subject.values(subject.decode()) != case.values:
        raise BenchError(f"{name} decodes another request, {case}")
    if bytes(subject.encode()) != case.response:
        raise BenchError(f"{name} encodes another response, {case}")


class Batch:
    """A call, repeated often enough for the clock."""

    def __init__(self, call: Call) -> None:
        arguments = {f"a{nth}": value for nth, value in enumerate(call.arguments)}
        statement = f"function({', '.join(arguments)})"
        self.timer = Timer(statement, timer=thread_time_ns, globals={"function": call.function, **arguments})
        self.number = max(1, int(BATCH_NS / max(1.0, self.timer.timeit(100) / 100)))
        self.least_ns = float("inf")

    def run(self) -> None:
        self.least_ns = min(self.least_ns, self.timer.timeit(self.number) / self.number)


BENCH = Bench(
    name="codec",
    summary="decode of the request and encode of the response of OffsetCommit v3, beside other codecs",
    metrics=METRICS,
    peers=names(),
    floors=[
        Lead(case=str(Case(partitions, COMMON)), metric=SUM, peer=peer, at_least=at_least)
        for partitions in PARTITIONS
        for peer, at_least in FLOORS.items()
    ],
    add_options=add_options,
    run=run,
)
