"""The security of a broker's listeners: TLS, SASL, the users, and the settings of clients for them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import UsageError
from kproto_server.configuration.key_stores import has_own_stores
from kproto_server.configuration.listeners import PLAINTEXT, WITH_SASL, WITH_TLS, protocol_name
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

MECHANISMS_SETTING = "sasl.enabled.mechanisms"
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

    def __repr__(self) -> str:
        return f"SecurityOptions(tls={self.tls!r}, mechanisms={self.mechanisms!r}, users={list(self.users)})"

    def checked(self, settings: Settings) -> Settings:
        """Return the settings of a broker with this security.

        Raises:
            UsageError: an option is wrong, or needs another one.
        """
        own_stores = has_own_stores(settings)
        if self.tls is not None:
            from kproto_server.broker.tls import certificate_kind

            certificate_kind(self.tls)
            if own_stores and self.tls_directory is not None:
                raise UsageError(f"{own_stores[0]} has certificates: leave out the directory that keeps others")
        elif own_stores:
            raise UsageError(f"{own_stores[0]} needs TLS: give tls (auto), too")
        elif self.tls_directory is not None:
            raise UsageError("a directory for the files of TLS needs TLS: give tls, too")
        unknown = [name for name in self.mechanisms if name not in MECHANISMS]
        if unknown:
            raise UsageError(f"no SASL mechanism {unknown[0]!r}: give some of {', '.join(MECHANISMS)}")
        if not self.mechanisms:
            if self.users:
                raise UsageError("users need SASL: give sasl, too")
            if settings.is_set(MECHANISMS_SETTING):
                raise UsageError(f"{MECHANISMS_SETTING} needs SASL: give sasl instead")
            return settings
        for name, password in self.users.items():
            if not name or not password or not (name + password).isprintable():
                raise UsageError(f"the user {name!r} needs a name and a password of printable characters")
        return settings.with_values({MECHANISMS_SETTING: ",".join(self.mechanisms)})


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
        self._validate: Validate = unsecured_bearer
        self._signing_keys: SigningKeys | None = None
        """Of tokens; None: tokens are not signed."""
        if OAUTHBEARER in options.mechanisms and settings.is_set(JWKS_URL):
            from kproto_server.broker.jwks import SigningKeys

            self._signing_keys = SigningKeys(settings)
            self._validate = self._signing_keys.bearer
        self._main_protocol = protocol_name(has_tls=options.tls is not None, has_sasl=bool(options.mechanisms))
        if options.tls is not None:
            from kproto_server.broker.tls import Tls, certificate_kind

            self.tls = Tls(certificate_kind(options.tls), hosts, settings, options.tls_directory)

    def apply(self, server: Server, protocols: Mapping[str, str]) -> None:
        """Have the connections of a server be secured. ``protocols``: by listener, the main one with an empty name;
        empty: the main one has all that was asked for."""
        server.access = self
        if self._signing_keys is not None:
            self._signing_keys.begin(server)
        if has_own_stores(self._settings):
            server.state.cluster.read_stores_again = self._read_stores_again
        new_authentication = self._new_authentication(server)
        self._main_protocol = protocols.get("", self._main_protocol)
        for name, protocol in ({"": self._main_protocol} | dict(protocols)).items():
            server.acceptor.security[name] = self.of_listener(protocol, new_authentication)

    def of_listener(
        self, protocol: str, new_authentication: Callable[[], Authentication] | None = None
    ) -> ListenerSecurity:
        """Return what the connections of a listener have. ``new_authentication``: of SASL."""
        tls, has_sasl = self.tls if protocol in WITH_TLS else None, protocol in WITH_SASL
        return ListenerSecurity(
            None if tls is None else tls.context,
            None if tls is None else tls.parameters,
            None if tls is None or has_sasl else tls.principal,
            new_authentication if has_sasl else None,
        )

    def _read_stores_again(self) -> str:
        """Read the own key store and trust store again; return why not."""
        try:
            self.use_certificate("auto")
        except (UsageError, OSError) as error:
            return str(error)
        return ""

    def _new_authentication(self, server: Server) -> Callable[[], Authentication] | None:
        if not self._options.mechanisms:
            return None
        from kproto_server.handlers._sasl import SaslBehavior
        from kproto_server.security.sasl import NONCE_BYTES, Authentication
        from kproto_server.security.users import Users

        credentials = server.state.cluster.scram_credentials
        credentials.give(self.users, self._options.mechanisms)
        users = Users(self.users, credentials)
        rules = self._settings.kafka_version.behavior(SaslBehavior).rules
        validate, tokens = self._validate, server.state.cluster.delegation_tokens
        return lambda: Authentication(users, rules, lambda: secrets.token_urlsafe(NONCE_BYTES), validate, tokens)

    def access(
        self, servers: str, user: str | None = None, mechanism: str | None = None, protocol: str | None = None
    ) -> Access:
        """Return how a client reaches these servers; by default as the first user, by the first mechanism.

        ``protocol``: of the listener; None: of the main one.

        Raises:
            UsageError: there is no such user, or the mechanism is not enabled.
        """
        login = None
        enabled = self._options.mechanisms
        protocol = protocol or self._main_protocol
        if protocol in WITH_SASL:
            name = user or next(iter(self.users))
            if name not in self.users:
                raise UsageError(f"no user {name!r}: there are {', '.join(self.users)}")
            if mechanism is not None and mechanism not in enabled:
                raise UsageError(f"{mechanism!r} is not enabled: give one of {', '.join(enabled)}")
            chosen = mechanism or next((one for one in enabled if one != OAUTHBEARER), OAUTHBEARER)
            if chosen == OAUTHBEARER:
                raise UsageError("settings for OAUTHBEARER have tokens, which kproto does not issue for users")
            login = Login(chosen, name, self.users[name])
        elif user is not None or mechanism is not None:
            raise UsageError("this broker has no SASL, and so no users and no mechanisms")
        if self.tls is None or protocol not in WITH_TLS:
            return Access(servers, None, False, login)
        return Access(servers, self.tls.files, self.tls.wants_client_certificate, login)

    def client_settings(
        self,
        client: str,
        servers: str,
        user: str | None = None,
        mechanism: str | None = None,
        protocol: str | None = None,
    ) -> str:
        """Return the settings of a client library, as for `access`.

        Raises:
            UsageError: as for `access`, or the library is unknown.
        """
        settings = CLIENTS.get(client)
        if settings is None:
            raise UsageError(f"no settings for {client!r}: give one of {', '.join(CLIENTS)}")
        return settings(self.access(servers, user, mechanism, protocol))

    def shown(self, servers: str, login: Login | None = None, protocol: str | None = None) -> str:
        """Return the settings of all client libraries for people to copy; nothing for PLAINTEXT.

        Args:
            login: to another broker behind this one; None: there is none.
            protocol: of the listener; None: of the main one.
        """
        if (protocol or self._main_protocol) == PLAINTEXT or tuple(self._options.mechanisms) == (OAUTHBEARER,):
            return ""
        access = self.access(servers, protocol=protocol)
        if login is not None:
            access = access._replace(login=login)
        files = "" if access.files is None else f"; certificates and keys in {access.files.directory}"
        settings = "".join(f"\n# {client}\n{make(access)}" for client, make in CLIENTS.items())
        return f"kproto: security protocol {access.protocol}{files}\n{settings}\n"

    def variables(self, servers: str) -> dict[str, str]:
        """Return the environment variables that `kproto run` gives to its command."""
        if tuple(self._options.mechanisms) == (OAUTHBEARER,):
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

    def close(self) -> None:
        """Remove the files of TLS, if they are temporary."""
        if self.tls is not None:
            self.tls.close()


def access_of(server: Server) -> ServerAccess:
    """Return how clients reach a server."""
    return server.access or Security(SecurityOptions(), [], server.state.settings.current)
