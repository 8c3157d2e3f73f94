"""The same requests to two brokers, and their answers without what each of them made up.

Theory of operation. A request is built for each broker, since it may have to name what that broker gave out: member
ids, topic ids, session ids. Such values have names here, the same for both, and answers are compared with the names in
their place. Where an answer may wait for other members, both brokers have to answer the same connections before it goes
on: as long as only one has answered, the other is waited for.
"""

from __future__ import annotations

import re
import select
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kproto.declaration import Struct, fields_of
from kproto.headers import read_response
from kproto.message import Request
from tests.network.raw_client import RawClient

BOTH_LIMIT_S = 20.0
"""How long a broker may answer later than the other."""
LOOK_LIMIT_S = 5.0
"""How long after a change the brokers may tell of it differently."""
QUIET_S = 0.12
"""How long after the last answer nobody is expected to answer any more."""
UNKNOWN_YET = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What brokers add to a client's or an instance's name to make it a member id."""
CLOSED = "closed the connection"

Build = Callable[["Side"], Request]


class Question(NamedTuple):
    """What was asked, for people."""

    api: str
    version: int
    note: str


class Difference(Exception):
    """The brokers differ; ``parts``: where, and what each has there."""

    def __init__(self, question: Question, parts: list[tuple[str, Any, Any]]) -> None:
        super().__init__(question, parts)
        self.question = question
        self.parts = parts

    def __str__(self) -> str:
        told = "\n".join(f"    {path}: {_short(tested)} | {_short(real)}" for path, tested, real in self.parts[:6])
        return f"{self.question.api} v{self.question.version} {self.question.note}\n{told}"


class Side:
    """One of the brokers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.connections: dict[int, RawClient] = {}
        self.waiting: dict[int, tuple[type[Request], int]] = {}
        self._values: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def begin_anew(self) -> None:
        """Forget what was given out, and leave."""
        for connection in self.connections.values():
            connection.socket.close()
        for column in (self.connections, self.waiting, self._values, self._names):
            column.clear()

    def connection(self, slot: int) -> RawClient:
        if slot not in self.connections:
            self.connections[slot] = RawClient(self.address, client_id=f"c{slot}")
        return self.connections[slot]

    def note(self, name: str, value: Any, *, is_shown: bool = True) -> None:
        """Give a value its name; ``is_shown``: answers have the name in its place."""
        self._values[name] = value
        if is_shown:
            self._names[value] = name

    def value(self, name: str) -> Any:
        """What has this name here; the name itself if nothing has."""
        return self._values.get(name, name)

    def knows(self, value: Any) -> bool:
        return value in self._names

    def named(self, value: Any) -> Any:
        """The name of a value, or the value."""
        if isinstance(value, (str, bytes)) and value in self._names:
            return f"<{self._names[value]}>"
        return UNKNOWN_YET.sub("-?", value) if isinstance(value, str) else value

    def read(self, slot: int) -> Any:
        """The answer that a connection waits for."""
        kind, version = self.waiting.pop(slot)
        try:
            return read_response(self.connection(slot).read_frame(), kind, version)[1]
        except ConnectionError:
            self.connections.pop(slot).socket.close()
            return CLOSED


class Answers(NamedTuple):
    """What both brokers answered."""

    tested: Any
    real: Any


class Pair:
    """Both brokers; ``learn`` is told each answer, ``shown`` may change how a struct of one is compared."""

    def __init__(
        self,
        tested: Side,
        real: Side,
        learn: Callable[[Side, int, Any], None],
        shown: Callable[[Struct, dict[str, Any]], None],
    ) -> None:
        self.sides = (tested, real)
        self.talk: list[str] = []
        """What was said, for people."""
        self._learn = learn
        self._shown = shown
        self._questions: dict[int, Question] = {}

    def waits(self, slot: int) -> bool:
        return any(slot in side.waiting for side in self.sides)

    def ask(self, slot: int, build: Build, version: int, note: str = "") -> dict[int, Answers]:
        """Ask on one connection; return what came on any.

        Raises:
            Difference: the answers differ, or only one broker has answered.
        """
        for side in self.sides:
            request = build(side)
            side.connection(slot).send((request, version))
            side.waiting[slot] = type(request), version
        question = self._questions[slot] = Question(type(request).__name__.removesuffix("Request"), version, note)
        self.talk.append(f"{slot}: {question.api} v{version} {note} {_short(self.plain(self.sides[1], request))}")
        found = dict(self._gathered())
        for slot_, answers in sorted(found.items()):
            self._compare(slot_, answers)
        return found

    def look(self, slot: int, build: Build, version: int) -> None:
        """Ask for what changes nothing, again and again for a moment: a real broker may know of a change later."""
        limit = time.monotonic() + LOOK_LIMIT_S
        while True:
            try:
                self.ask(slot, build, version)
            except Difference:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.05)
            else:
                return

    def _gathered(self) -> Iterator[tuple[int, Answers]]:
        came: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        limit = time.monotonic() + BOTH_LIMIT_S
        quiet = time.monotonic() + QUIET_S
        while time.monotonic() < limit and (self._differ() or (self._waiting() and time.monotonic() < quiet)):
            for side, slot in self._ready():
                came[self.sides.index(side)][slot] = side.read(slot)
        for slot in came[0].keys() | came[1].keys():
            answers = Answers(*(of_side.get(slot, "no answer") for of_side in came))
            if "no answer" in answers:
                raise Difference(self._questions[slot], [("", answers.tested, answers.real)])
            yield slot, answers

    def _differ(self) -> bool:
        return self.sides[0].waiting.keys() != self.sides[1].waiting.keys()

    def _waiting(self) -> bool:
        return bool(self.sides[0].waiting)

    def _ready(self) -> list[tuple[Side, int]]:
        """Connections with an answer, of those that wait for one."""
        watched = {side.connection(slot).socket: (side, slot) for side in self.sides for slot in side.waiting}
        return [watched[found] for found in select.select(list(watched), [], [], 0.02)[0]]

    def _compare(self, slot: int, answers: Answers) -> None:
        for side, answer in zip(self.sides, answers, strict=True):
            self._learn(side, slot, answer)
        tested, real = (self.plain(side, answer) for side, answer in zip(self.sides, answers, strict=True))
        self.talk.append(f"{slot}: -> {_short(real)}")
        parts = list(differences(tested, real))
        if parts:
            raise Difference(self._questions[slot], parts)

    def plain(self, side: Side, value: Any) -> Any:
        """A value of dicts and sorted lists, with names in the place of what the broker made up."""
        if isinstance(value, Struct):
            fields = {field.name: self.plain(side, getattr(value, field.name)) for field in fields_of(type(value))}
            self._shown(value, fields)
            return fields
        if isinstance(value, tuple):
            return sorted((self.plain(side, item) for item in value), key=repr)
        return side.named(value)


def differences(tested: Any, real: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where two plain values differ."""
    if isinstance(tested, Mapping) and isinstance(real, Mapping) and tested.keys() == real.keys():
        for key in tested:
            yield from differences(tested[key], real[key], f"{path}.{key}")
    elif isinstance(tested, list) and isinstance(real, list) and len(tested) == len(real):
        for one, other in zip(tested, real, strict=True):
            yield from differences(one, other, path + "[]")
    elif tested != real:
        yield path, tested, real


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_short, value)) + "]"
    told = repr(value)
    return told if len(told) <= 100 else f"{told[:100]}... of {len(value)}"
