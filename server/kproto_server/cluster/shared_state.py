"""What all nodes of a cluster know apart from topics: features, users, rights, quotas and producer ids.

Theory of operation. A handler changes the state at once and appends to `SharedState.unsaved` what undoes the change.
Before the response the connection calls `SharedState.save`, which makes all changes durable together, or undoes them.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from kproto_server.quotas.entities import REQUEST_PERCENTAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kproto_server.cluster.features import FinalizedFeatures
    from kproto_server.quotas.entities import Quotas
    from kproto_server.quotas.usage import QuotaUsage
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.security.acls import Acl, Authorizer
    from kproto_server.security.delegation_tokens import DelegationTokens, Token
    from kproto_server.security.users import Changes, ScramCredentials


class SharedState:
    """The state of a cluster that needs neither its nodes nor its topics."""

    def __init__(self, kafka_version: KafkaVersion, random_bytes: Callable[[int], bytes]) -> None:
        self.kafka_version: KafkaVersion = kafka_version
        self.random_bytes: Callable[[int], bytes] = random_bytes
        self.version: int = 0
        """Rises with each change of topics, partitions, leaders, nodes or settings, and invalidates the commit
        cache."""
        self.created_version: int = 0
        """The version when the last topic was created."""
        self.last_producer_id: int = 0
        """The newest id that `new_producer_id` has returned."""
        self.last_dropped_producer_id: int = 0
        """The newest id when the cluster was reset; its producers and those before it are unknown."""
        self._last_kept_producer_id = 0
        """The newest id of the producers that a snapshot has brought back."""
        self.authorizer: Authorizer | None = None
        """The ACLs; None: every client may do everything. Set by `BrokerState`."""
        self.delegation_tokens: DelegationTokens | None = None
        """None: the cluster has no secret key for them. Set by `BrokerState`."""
        self.client_quotas: Quotas = {}
        """The client quotas that administrators have set; see `alter_client_quotas`."""
        self.on_client_quotas: list[Callable[[], object]] = []
        """Called after a change of the client quotas."""
        self.limits_handler_time: bool = False
        """Whether any client has a quota of handler time: commits then do not take the way of the commit cache."""
        self.unsaved: list[Callable[[], object]] = []
        """Undo the changes of topics and configs that are not saved, in the order of the changes."""
        self.undone_count: int = 0
        """How often changes were undone."""
        self.store: Callable[[], object] = lambda: None
        """Writes topics and configs to the disk, or calls `undo` and raises `TopicsNotStored`; `Persistence` sets
        it."""
        self.read_stores_again: Callable[[], str] | None = None
        """Reads the key store and the trust store of the settings, and returns why not; empty: it has. None: there are
        none. Set by `Security`."""

    def reset(self) -> None:
        """Drop all producers, and all that administrators have set."""
        self.last_dropped_producer_id = self.last_producer_id
        self._last_kept_producer_id = 0
        if "features" in self.__dict__:
            self.features.reset()
        if "scram_credentials" in self.__dict__:
            self.scram_credentials.changes = {}
        if self.authorizer is not None:
            self.authorizer.replace(())
        if self.delegation_tokens is not None:
            self.delegation_tokens.replace(())
        self.set_client_quotas({})
        self.__dict__.pop("quota_usage", None)

    @cached_property
    def features(self) -> FinalizedFeatures:
        """The finalized features, made at their first use: they take 1 % of a start."""
        from kproto_server.cluster.features import FinalizedFeatures

        return FinalizedFeatures(self.kafka_version)

    @cached_property
    def quota_usage(self) -> QuotaUsage:
        """What clients have used of their quotas, made at its first use."""
        from kproto_server.quotas.usage import QuotaUsage

        return QuotaUsage()

    @cached_property
    def scram_credentials(self) -> ScramCredentials:
        """The SCRAM credentials of users, made at their first use."""
        from kproto_server.security.users import ScramCredentials

        return ScramCredentials(self.random_bytes)

    @property
    def scram_changes(self) -> Changes:
        """What administrators have changed of the SCRAM credentials, without making `scram_credentials`."""
        return self.scram_credentials.changes if "scram_credentials" in self.__dict__ else {}

    def alter_scram_credentials(self, changes: Changes) -> None:
        """Replace what administrators have changed of the SCRAM credentials."""
        credentials = self.scram_credentials
        self._note_change(partial(setattr, credentials, "changes", credentials.changes))
        credentials.changes = changes

    def alter_client_quotas(self, quotas: Quotas) -> None:
        """Have these client quotas and no others."""
        self.unsaved.append(partial(self.set_client_quotas, self.client_quotas))
        self.set_client_quotas(quotas)

    def set_client_quotas(self, quotas: Quotas) -> None:
        """As `alter_client_quotas`, for quotas that are saved already."""
        self.client_quotas = quotas
        self.limits_handler_time = any(REQUEST_PERCENTAGE in values for values in quotas.values())
        self.version += 1
        for changed in self.on_client_quotas:
            changed()

    def changed(self) -> None:
        """Raise the version, to invalidate decisions that depend on the cluster."""
        self.version += 1

    def created(self) -> None:
        """Raise the version for a new topic."""
        self.changed()
        self.created_version = self.version

    def _note_change(self, undo: Callable[[], object]) -> None:
        self.version += 1
        self.unsaved.append(undo)

    def save(self) -> None:
        """Make the changes of topics and configs durable, before a response reports them.

        Raises:
            TopicsNotStored: they are undone.
        """
        self.store()
        self.unsaved.clear()

    def undo(self) -> None:
        """Undo the changes of topics and configs that are not saved, the newest first."""
        unsaved, self.unsaved = self.unsaved, []
        for undo in reversed(unsaved):
            undo()
        self.unsaved.clear()
        self.undone_count += 1
        self.version += 1

    def finalize(self, levels: Mapping[str, int]) -> None:
        """Replace the levels of all features."""
        self._note_change(partial(self.features.replace, self.features.levels))
        self.features.replace(levels)

    def change_acls(self, acls: Iterable[Acl]) -> None:
        """Have these ACLs and no others."""
        assert self.authorizer is not None, "only a cluster with an authorizer has ACLs"
        self._note_change(partial(self.authorizer.replace, self.authorizer.acls))
        self.authorizer.replace(acls)

    def change_delegation_tokens(self, tokens: Iterable[Token]) -> None:
        """Have these delegation tokens and no others."""
        assert self.delegation_tokens is not None, "only a cluster with a secret key has delegation tokens"
        self._note_change(partial(self.delegation_tokens.replace, self.delegation_tokens.tokens))
        self.delegation_tokens.replace(tokens)

    def dropped_producer(self, producer_id: int) -> bool:
        """Return whether a reset has dropped the producer with an id."""
        return self._last_kept_producer_id < producer_id <= self.last_dropped_producer_id

    def restore_producer_ids(self, last_producer_id: int) -> None:
        """Bring back the producers up to an id after a reset; no later id is used again."""
        self._last_kept_producer_id = last_producer_id
        self.last_producer_id = max(self.last_producer_id, last_producer_id)

    def new_producer_id(self) -> int:
        """Return an id that no producer of the cluster has."""
        self.last_producer_id += 1
        return self.last_producer_id
