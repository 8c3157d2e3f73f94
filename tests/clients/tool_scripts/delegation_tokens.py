"""DelegationTokenCommand: tokens that are created, renewed, described and expired, and clients that log in with one.

The tools of both brokers run with the settings of a user or of a token (`--command-config`); ids, HMACs and times are
those of each broker. Method: each step runs against both, and prints the same but for them.
"""

import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from tests.clients.tool_steps import PROPAGATION_LIMIT_S
from tests.clients.tools import TOPICS, Pair, ToolOutput

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
USERS = {name: f"{name}-secret" for name in ("alice", "bob")}
LOGIN = "sasl.jaas.config=org.apache.kafka.common.security"
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
CREATED = re.compile(r"tokenId : (\S+)")
HOUR_S = 3600


class Step(NamedTuple):
    """One run of a tool. ``{one.hmac}`` in the arguments stands for the HMAC of the token ``one``."""

    user: str
    """A user, or a token that the client logs in with."""
    tool: str
    arguments: str
    expected: str
    """In the output of the real broker."""
    names: str = ""
    """The name of the token that it creates."""
    is_query: bool = False


def tokens(user: str, arguments: str, expected: str, *, names: str = "") -> Step:
    return Step(user, TOKENS, arguments, expected, names)


def described(user: str, owner: str, expected: str) -> Step:
    """Return a step that changes nothing: it is repeated until both brokers know the changes before it."""
    return Step(user, TOKENS, f"--describe --owner-principal User:{owner}", expected, is_query=True)


STEPS = (
    tokens("alice", "--describe", "Total number of tokens : 0"),
    tokens("alice", "--create --max-life-time-period -1 --renewer-principal User:bob", "User:bob", names="one"),
    tokens("alice", "--create --max-life-time-period 7200000", "+2 h", names="two"),
    tokens("alice", "--create --max-life-time-period -1 --renewer-principal Group:g", "InvalidPrincipalType"),
    tokens("alice", "--create --max-life-time-period -1 --owner-principal User:dora", "Authorization"),
    described("alice", "alice", "Total number of tokens : 2"),
    described("bob", "alice", "Total number of tokens : 1"),
    described("bob", "dora", "Total number of tokens : 0"),
    tokens("bob", "--renew --renew-time-period 10800000 --hmac {one.hmac}", "+3 h"),
    tokens("bob", "--renew --renew-time-period -1 --hmac {two.hmac}", "OwnerMismatch"),
    described("alice", "bob", "+3 h"),
    tokens("alice", "--renew --renew-time-period -1 --hmac {one.hmac}", "+24 h"),
    tokens("alice", "--renew --renew-time-period -1 --hmac AAAA", "NotFound"),
    Step("one", TOPICS, "--list", "seen-by-alice"),
    tokens("one", "--describe", "not allowed"),
    tokens("one", "--create --max-life-time-period -1", "not allowed"),
    tokens("one", "--expire --expiry-time-period -1 --hmac {one.hmac}", "not allowed"),
    tokens("alice", "--expire --expiry-time-period 3600000 --hmac {one.hmac}", "+1 h"),
    described("alice", "bob", "+1 h"),
    tokens("bob", "--expire --expiry-time-period -1 --hmac {one.hmac}", "Completed expire operation"),
    described("alice", "alice", "Total number of tokens : 1"),
    tokens("bob", "--expire --expiry-time-period -1 --hmac {one.hmac}", "NotFound"),
    Step("one", TOPICS, "--list", "SaslAuthenticationException"),
)


class TokenScript:
    """The tokens of both brokers by the names of the script, and the settings of clients."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self._pair = pair
        self._folder = folder
        self._tokens: dict[tuple[str, str], tuple[str, str]] = {}
        """Id and HMAC by address and name."""

    def problems(self) -> Iterator[str]:
        """Run the script; yield what differs, and what the real broker does not print."""
        for step in STEPS:
            limit = time.monotonic() + PROPAGATION_LIMIT_S
            tested, real = self._both(step)
            while step.is_query and tested != real and time.monotonic() < limit:
                tested, real = self._both(step)
            command = f"{step.user}: {step.tool.rpartition('.')[2]} {step.arguments}"
            if tested != real:
                yield f"{command}\n-- under test\n{tested}\n-- real\n{real}"
            if step.expected not in f"{real.out}\n{real.err}":
                yield f"{command}\n-- real: expected {step.expected!r}\n{real}"

    def _both(self, step: Step) -> tuple[ToolOutput, ToolOutput]:
        tested, real = (self._run(step, address).unordered().with_errors_once() for address in self._pair.addresses)
        return tested, real

    def _run(self, step: Step, address: str) -> ToolOutput:
        arguments = step.arguments
        for (at, name), (_, hmac) in self._tokens.items():
            if at == address:
                arguments = arguments.replace(f"{{{name}.hmac}}", hmac)
        words = [*arguments.split(), "--command-config", str(self._settings(step.user, address))]
        printed = self._pair.run(address, step.tool, *words)
        if step.names:
            (token_id,) = CREATED.findall(printed.out)
            hmac = printed.out.split(token_id)[-1].split()[0]
            self._tokens[address, step.names] = token_id, hmac
        return ToolOutput(printed.exit_code, self._named(printed.out, address), self._named(printed.err, address))

    def _settings(self, user: str, address: str) -> Path:
        """Return the file with the settings of a user of PLAIN, or of a token."""
        if user in USERS:
            mechanism = "PLAIN"
            login = f'{LOGIN}.plain.PlainLoginModule required username="{user}" password="{USERS[user]}";'
        else:
            mechanism = "SCRAM-SHA-256"
            name, password = self._tokens[address, user]
            login = f'{LOGIN}.scram.ScramLoginModule required username="{name}" password="{password}" tokenauth="true";'
        path = self._folder / "client.properties"
        path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n{login}\n")
        return path

    def _named(self, text: str, address: str) -> str:
        """Return the output with names instead of ids and HMACs, and with times from now on, in hours."""
        for (at, name), (token_id, hmac) in self._tokens.items():
            if at == address:
                text = text.replace(token_id, f"{name}.id").replace(hmac, f"{name}.hmac")
        return DATE.sub(_from_now, text)


def _from_now(found: re.Match[str]) -> str:
    seconds = (datetime.fromisoformat(found[0]) - datetime.now()).total_seconds()
    return f"{round(seconds / HOUR_S):+} h"
