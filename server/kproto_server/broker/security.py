"""The security of a broker's listeners: TLS, SASL, the users, and the settings of clients for them."""

from __future__ import annotations

import secrets
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import UsageError
from kproto_server.configuration.listeners import PLAINTEXT, WITH_SASL, WITH_TLS, parts, protocol_name
from kproto_server.configuration.setting_table import STORE_SETTINGS
from kproto_server.configuration.settings import MECHANISMS_SETTING
from kproto_server.network.accepting import ListenerSecurity
from kproto_server.security.client_settings import CLIENTS, Access, Login, variables
from kproto_server.security.oauth import JWKS_URL, unsecured_bearer
from kproto_server.security.sasl import MECHANISMS, OAUTHBEARER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kproto_server.broker.jwks import SigningKeys
    from kproto_server.broker.tls import Tls
    from kproto_server.configuration.listeners import Listener
    from kproto_server.configuration.settings import Settings
    from kproto_server.network.server import Access as ServerAccess
    from kproto_server.network.server import Server
    from kproto_server.security.oauth import Validate
    from kproto_server.security.sasl import Authentication

    NewAuthentication = Callable[[str], Callable[[], Authentication]]
    """Returns, for a listener, the function that makes the SASL of each of its connections."""

DEFAULT_USER = "kproto"
"""The user of a broker that was given none; each broker makes a password for it."""
PASSWORD_BYTES = 12


class SecurityOptions(NamedTuple):
    """What was asked for; nothing: PLAINTEXT."""

    tls: str | None = None
    """The name of a kind of certificate (`kproto_server.security.certificates`)."""
    tls_directory: str | None = None
    """Keeps the files of TLS; None: a temporary directory."""
    mechanisms: Sequence[str] = ()
    """Of SASL."""
    users: Mapping[str, str] = {}
    """Passwords by name; empty: `DEFAULT_USER`."""
    users_of: Mapping[str, Mapping[str, str]] = {}
    """The users of listeners that have others, by the name of the listener in lower case: of PLAIN alone."""

    def __repr__(self) -> str:
        return f"SecurityOptions(tls={self.tls!r}, mechanisms={self.mechanisms!r}, users={list(self.users)})"

    @property
    def protocol(self) -> str:
        """The security protocol of a listener with all of it."""
        return protocol_name(has_tls=self.tls is not None, has_sasl=bool(self.mechanisms))

    def checked(self, settings: Settings) -> Settings:
        """Return the settings of a broker with this security.

        Raises:
            UsageError: an option is wrong, or needs another one.
        """
        own_stores = settings.own_stores
        all_stores = [*own_stores, *settings.listeners_with(STORE_SETTINGS).values()]
        if self.tls is not None:
            from kproto_server.broker.tls import certificate_kind

            certificate_kind(self.tls)
            if own_stores and self.tls_directory is not None:
                raise UsageError(f"{own_stores[0]} has certificates: leave out the directory that keeps others")
        elif all_stores:
            raise UsageError(f"{all_stores[0]} needs TLS: give tls (auto), too")
        elif self.tls_directory is not None:
            raise UsageError("a directory for the files of TLS needs TLS: give tls, too")
        of_listeners = settings.listeners_with([MECHANISMS_SETTING])
        unknown = [name for name in self.all_mechanisms(settings) if name not in MECHANISMS]
        if unknown:
            raise UsageError(f"no SASL mechanism {unknown[0]!r}: give some of {', '.join(MECHANISMS)}")
        if not self.mechanisms:
            if self.users or self.users_of:
                raise UsageError("users need SASL: give sasl, too")
            if settings.is_set(MECHANISMS_SETTING):
                raise UsageError(f"{MECHANISMS_SETTING} needs SASL: give sasl instead")
            if of_listeners:
                raise UsageError(f"{next(iter(of_listeners.values()))} needs SASL: give sasl, too")
            return settings
        for name, password in self.all_users():
            if not name or not password or not (name + password).isprintable():
                raise UsageError(f"the user {name!r} needs a name and a password of printable characters")
        return settings.with_values({MECHANISMS_SETTING: ",".join(self.mechanisms)})

    def all_mechanisms(self, settings: Settings) -> dict[str, None]:
        """Return the mechanisms of all listeners."""
        own = [_mechanisms_of(name, settings) for name in settings.listeners_with([MECHANISMS_SETTING])]
        return dict.fromkeys(chain(self.mechanisms, *own))

    def all_users(self) -> list[tuple[str, str]]:
        """Return names and passwords of all users; those of the broker come behind those of single listeners."""
        return [one for users in (*self.users_of.values(), self.users) for one in users.items()]


def _mechanisms_of(listener: str, settings: Settings) -> list[str]:
    return parts(settings.str_of_listener(listener, MECHANISMS_SETTING))


def protocols_of(listeners: Sequence[Listener]) -> dict[str, str]:
    """Return the security protocol of each listener by its name; that of the main one is empty."""
    return {one.name if index else "": one.protocol for index, one in enumerate(listeners)}


def first_secured(protocols: Mapping[str, str]) -> tuple[str, str | None]:
    """Return name and protocol of the first listener with TLS or SASL; by default of the main one."""
    return next((one for one in protocols.items() if one[1] != PLAINTEXT), ("", None))


class Security:
    """The security of one broker. Owns the files of TLS; `close` removes them if they are temporary."""

    def __init__(self, options: SecurityOptions, hosts: Iterable[str], settings: Settings) -> None:
        """``hosts``: the names and addresses by which clients know the broker, beside those of this machine.

        Raises:
            UsageError: the files of TLS cannot be used or written.
        """
        self._options = options
        self._settings = settings
        self.users: dict[str, str] = dict(options.users)
        """Passwords by name."""
        if options.mechanisms and not self.users:
            self.users[DEFAULT_USER] = secrets.token_urlsafe(PASSWORD_BYTES)
        self.tls: Tls | None = None
        """None: without TLS."""
        self._tls_of: dict[str, Tls] = {}
        """Of listeners with key stores or trust stores of their own, by their names in lower case."""
        self._main_listener = ""
        """Its name in settings."""
        self._validate: Validate = unsecured_bearer
        self._signing_keys: SigningKeys | None = None
        """Of tokens; None: tokens are not signed."""
        if OAUTHBEARER in options.all_mechanisms(settings) and settings.is_set(JWKS_URL):
            from kproto_server.broker.jwks import SigningKeys

            self._signing_keys = SigningKeys(settings)
            self._validate = self._signing_keys.bearer
        self._main_protocol = options.protocol
        if options.tls is not None:
            self._make_tls(options.tls, hosts)

    def _make_tls(self, kind: str, hosts: Iterable[str]) -> None:
        from kproto_server.broker.tls import TLS_OF_LISTENER, Tls, certificate_kind
        from kproto_server.security.certificates import CertificateKind

        settings = self._settings
        self.tls = Tls(certificate_kind(kind), hosts, settings, self._options.tls_directory)
        try:
            for name in settings.listeners_with(STORE_SETTINGS):
                self._tls_of[name] = Tls(CertificateKind.AUTO, hosts, settings.of_listener(name), None)
            for name in settings.listeners_with(TLS_OF_LISTENER):
                self._tls(name).check(name, settings)
        except BaseException:
            self.close()
            raise

    def apply(self, server: Server, protocols: Mapping[str, str]) -> None:
        """Have the connections of a server be secured. ``protocols``: by listener, the main one with an empty name;
        empty: the main one has all that was asked for."""
        server.access = self
        if self._signing_keys is not None:
            self._signing_keys.begin(server)
        if self._tls_of or self._settings.own_stores:
            server.state.cluster.read_stores_again = self._read_stores_again
        new_authentication = self._authentications(server)
        self._main_protocol = protocols.get("", self._main_protocol)
        self._main_listener = server.state.cluster.main_listener
        for name, protocol in ({"": self._main_protocol} | dict(protocols)).items():
            server.acceptor.security[name] = self.of_listener(protocol, name, new_authentication)

    def of_listener(
        self, protocol: str, name: str = "", new_authentication: NewAuthentication | None = None
    ) -> ListenerSecurity:
        """Return what the connections of a listener have.

        Args:
            name: of the listener; empty: the main one.
            new_authentication: returns what makes the SASL of a listener's connections.
        """
        listener, has_sasl = self._named(name), protocol in WITH_SASL
        made = new_authentication(listener) if has_sasl and new_authentication is not None else None
        if protocol not in WITH_TLS or self.tls is None:
            return ListenerSecurity(new_authentication=made)
        tls = self._tls(listener)
        return ListenerSecurity(
            lambda settings: tls.context(settings, listener),
            tls.parameters,
            None if has_sasl else tls.principal_of(listener),
            made,
        )

    def _named(self, listener: str) -> str:
        """Return the name of a listener in settings, in lower case; empty: of the main one."""
        return (listener or self._main_listener).lower()

    def _tls(self, listener: str) -> Tls:
        assert self.tls is not None, "the broker has TLS"
        return self._tls_of.get(listener, self.tls)

    def _read_stores_again(self) -> str:
        """Read the own key store and trust store again; return why not."""
        try:
            if self._settings.own_stores:
                self.use_certificate("auto")
            else:
                self._read_stores_of_listeners()
        except (UsageError, OSError) as error:
            return str(error)
        return ""

    def _read_stores_of_listeners(self) -> None:
        for tls in self._tls_of.values():
            tls.use(tls.files.kind)

    def _authentications(self, server: Server) -> NewAuthentication | None:
        """Return a function that returns, for a listener, what its connections have to authenticate."""
        if not self._options.mechanisms:
            return None
        from kproto_server.handlers._sasl import SaslBehavior
        from kproto_server.security.sasl import NONCE_BYTES, Authentication
        from kproto_server.security.users import Users

        credentials = server.state.cluster.scram_credentials
        credentials.give(dict(self._options.all_users()) | self.users, self._options.all_mechanisms(self._settings))
        rules = self._settings.kafka_version.behavior(SaslBehavior).rules
        validate, tokens = self._validate, server.state.cluster.delegation_tokens

        def of_listener(listener: str) -> Callable[[], Authentication]:
            users = Users(self._users_of(listener), credentials)
            return lambda: Authentication(users, rules, lambda: secrets.token_urlsafe(NONCE_BYTES), validate, tokens)

        return of_listener

    def _users_of(self, listener: str) -> Mapping[str, str]:
        return self._options.users_of.get(listener, self.users)

    def access(
        self,
        servers: str,
        user: str | None = None,
        mechanism: str | None = None,
        protocol: str | None = None,
        listener: str = "",
    ) -> Access:
        """Return how a client reaches these servers; by default as the first user, by the first mechanism.

        ``protocol``: of the listener; None: of the main one. ``listener``: its name; empty: the main one.

        Raises:
            UsageError: there is no such user, or the mechanism is not enabled.
        """
        login = None
        protocol, listener = protocol or self._main_protocol, self._named(listener)
        if protocol in WITH_SASL:
            enabled, users = _mechanisms_of(listener, self._settings), self._users_of(listener)
            name = user or next(iter(users))
            if name not in users:
                raise UsageError(f"no user {name!r}: there are {', '.join(users)}")
            if mechanism is not None and mechanism not in enabled:
                raise UsageError(f"{mechanism!r} is not enabled: give one of {', '.join(enabled)}")
            chosen = mechanism or next((one for one in enabled if one != OAUTHBEARER), OAUTHBEARER)
            if chosen == OAUTHBEARER:
                raise UsageError("settings for OAUTHBEARER have tokens, which kproto does not issue for users")
            login = Login(chosen, name, users[name])
        elif user is not None or mechanism is not None:
            raise UsageError("this broker has no SASL, and so no users and no mechanisms")
        if self.tls is None or protocol not in WITH_TLS:
            return Access(servers, None, False, login)
        tls = self._tls(listener)
        return Access(servers, tls.files, tls.wants_client_certificate(listener), login)

    def client_settings(
        self,
        client: str,
        servers: str,
        user: str | None = None,
        mechanism: str | None = None,
        protocol: str | None = None,
        listener: str = "",
    ) -> str:
        """Return the settings of a client library, as for `access`.

        Raises:
            UsageError: as for `access`, or the library is unknown.
        """
        settings = CLIENTS.get(client)
        if settings is None:
            raise UsageError(f"no settings for {client!r}: give one of {', '.join(CLIENTS)}")
        return settings(self.access(servers, user, mechanism, protocol, listener))

    def shown(self, servers: str, login: Login | None = None, protocol: str | None = None, listener: str = "") -> str:
        """Return the settings of all client libraries for people to copy; nothing for PLAINTEXT.

        Args:
            login: to another broker behind this one; None: there is none.
            protocol: of the listener; None: of the main one.
            listener: its name; empty: the main one.
        """
        protocol = protocol or self._main_protocol
        if protocol == PLAINTEXT or (protocol in WITH_SASL and self._has_tokens_only(listener)):
            return ""
        access = self.access(servers, protocol=protocol, listener=listener)
        if login is not None:
            access = access._replace(login=login)
        files = "" if access.files is None else f"; certificates and keys in {access.files.directory}"
        settings = "".join(f"\n# {client}\n{make(access)}" for client, make in CLIENTS.items())
        return f"kproto: security protocol {access.protocol}{files}\n{settings}\n"

    def _has_tokens_only(self, listener: str = "") -> bool:
        return _mechanisms_of(self._named(listener), self._settings) == [OAUTHBEARER]

    def variables(self, servers: str) -> dict[str, str]:
        """Return the environment variables that `kproto run` gives to its command."""
        if self._main_protocol in WITH_SASL and self._has_tokens_only():
            return {}
        return variables(self.access(servers))

    def use_certificate(self, certificate: str) -> None:
        """Give the connections from now on a certificate of another kind.

        Raises:
            UsageError: there is no TLS, or no such kind.
            OSError: a file cannot be written.
        """
        if self.tls is None:
            raise UsageError("this broker has no TLS, and so no certificate")
        from kproto_server.broker.tls import certificate_kind

        self.tls.use(certificate_kind(certificate))
        if certificate == "auto":
            self._read_stores_of_listeners()

    def close(self) -> None:
        """Remove the files of TLS, if they are temporary."""
        for tls in (self.tls, *self._tls_of.values()):
            if tls is not None:
                tls.close()


def access_of(server: Server) -> ServerAccess:
    """Return how clients reach a server."""
    return server.access or Security(SecurityOptions(), [], server.state.settings.current)
