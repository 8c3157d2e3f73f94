"""The keys of signed tokens (OAUTHBEARER): a JWKS that is read at the start, and again while the broker runs."""

from __future__ import annotations

import logging
import os
import threading
import urllib.request
from collections import OrderedDict
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from kproto.errors import UsageError
from kproto_server.clock import PeriodicTask
from kproto_server.security.oauth import JWKS_URL, InvalidToken, SignedTokens, UnknownKey, jwks_keys

if TYPE_CHECKING:
    from kproto_server.configuration.settings import Settings
    from kproto_server.network.server import Server
    from kproto_server.security.oauth import Bearer, PublicKey

logger = logging.getLogger("kproto")

REFRESH = "sasl.oauthbearer.jwks.endpoint.refresh.ms"
LIMIT_S = 10.0
"""Real time in which an endpoint has to send its keys."""
UNKNOWN_MS = 60_000
"""How long a token with an unknown key does not make the broker read the endpoint again, as in Kafka."""
UNKNOWN_MAX = 16
"""Unknown keys that are remembered, as in Kafka."""
CANNOT_READ = (OSError, ValueError, HTTPException, RecursionError)
"""What reading keys raises: `HTTPException` if the endpoint cuts its response or sends something else than HTTP,
`RecursionError` if its JSON is nested too deep; `UsageError` is a ValueError."""


class SigningKeys:
    """Validates tokens by the keys of `sasl.oauthbearer.jwks.endpoint.url`.

    Theory of operation. An endpoint is read again by a thread of its own: every
    `sasl.oauthbearer.jwks.endpoint.refresh.ms` of the broker's clock, and when a token names a key that is unknown. The
    token is refused; the client's next attempt finds the new key. A file is read again when a token comes and the file
    has changed, from 4.1 on; older releases read it once. An endpoint that cannot be read leaves the keys as they are;
    while a changed file cannot be read, all tokens are refused. Measured on 4.4.0.
    """

    def __init__(self, settings: Settings) -> None:
        """Read the keys.

        Raises:
            UsageError: they cannot be read.
        """
        self._url = settings.str(JWKS_URL)
        if not self._url.startswith(("file:", "http://", "https://")):
            raise UsageError(f"{JWKS_URL} can't be {self._url!r}: give a URL with file, http or https")
        self._path = unquote(urlsplit(self._url).path) if self._url.startswith("file:") else None
        self._follows_file = settings.kafka_version.at_least(4, 1)
        self._modified_ns = self._file_time()
        try:
            self._keys: dict[str | None, PublicKey] = self._read()
        except CANNOT_READ as error:
            raise UsageError(f"{JWKS_URL}: can't read {self._url!r}: {error}") from None
        audience = "sasl.oauthbearer.expected.audience"
        issuer = "sasl.oauthbearer.expected.issuer"
        self._tokens = SignedTokens(
            self._keys,
            [name.strip() for name in settings.str(audience).split(",")] if settings.is_set(audience) else (),
            settings.str(issuer) if settings.is_set(issuer) else None,
            settings.str("sasl.oauthbearer.sub.claim.name"),
            settings.str("sasl.oauthbearer.scope.claim.name"),
            settings.int("sasl.oauthbearer.clock.skew.seconds"),
        )
        self._unknown: OrderedDict[str, int] = OrderedDict()
        """When a key was asked for that is unknown."""
        self._server: Server | None = None
        self._is_reading = False

    def begin(self, server: Server) -> None:
        """Read the keys of an endpoint again while the server runs."""
        self._server = server
        if self._path is None:
            task = PeriodicTask(server.state.clock, server.state.settings.current.int(REFRESH), self._refresh)
            task.start()
            server.periodic_tasks = (*server.periodic_tasks, task)

    def bearer(self, token: str, now_ms: int) -> Bearer:
        """Return the owner of a token.

        Raises:
            InvalidToken: the token is refused.
        """
        if self._path is not None and self._follows_file:
            self._follow_file()
        try:
            return self._tokens.bearer(token, now_ms)
        except UnknownKey as unknown:
            if self._path is None and now_ms - self._unknown.get(unknown.key_id, now_ms - UNKNOWN_MS) >= UNKNOWN_MS:
                self._unknown[unknown.key_id] = now_ms
                if len(self._unknown) > UNKNOWN_MAX:
                    self._unknown.popitem(last=False)
                self._refresh(now_ms)
            raise

    def _read(self) -> dict[str | None, PublicKey]:
        """Return the keys of the URL.

        Raises:
            OSError, ValueError, HTTPException, RecursionError: they cannot be read.
        """
        with urllib.request.urlopen(self._url, timeout=LIMIT_S) as response:  # noqa: S310 - the schemes are checked
            return jwks_keys(response.read().decode())

    def _file_time(self) -> int | None:
        """Return when the file was changed; None: it is no file, or it is missing."""
        try:
            return None if self._path is None else os.stat(self._path).st_mtime_ns
        except OSError:
            return None

    def _follow_file(self) -> None:
        """Read the file if it has changed.

        Raises:
            InvalidToken: it cannot be read, or has no keys: as in Kafka, no token is accepted until it has some.
        """
        modified_ns = self._file_time()
        if modified_ns == self._modified_ns:
            return
        try:
            self._use(self._read())
        except CANNOT_READ as error:
            logger.warning("%s: can't read %r again: %s", JWKS_URL, self._url, error)
            raise InvalidToken("the keys can't be read") from None
        self._modified_ns = modified_ns

    def _refresh(self, now_ms: int) -> None:
        """Read the endpoint in a thread, unless another one does."""
        server = self._server
        if self._is_reading or server is None:
            return
        self._is_reading = True

        def read() -> None:
            try:
                keys = self._read()
            except CANNOT_READ as error:
                reason = error
                server.loop.post(lambda: self._keep(reason))
            else:
                server.loop.post(lambda: self._use(keys))

        threading.Thread(target=read, name="kproto-jwks", daemon=True).start()

    def _use(self, keys: dict[str | None, PublicKey]) -> None:
        self._is_reading = False
        self._keys.clear()
        self._keys.update(keys)

    def _keep(self, error: Exception) -> None:
        self._is_reading = False
        logger.warning("%s: can't read %r again, the keys stay: %s", JWKS_URL, self._url, error)
