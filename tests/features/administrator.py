"""An administrator who changes the features of a cluster, and the transcript of the responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.members import Step, Transport

UPDATE_FEATURES, API_VERSIONS = 57, 18
SOFTWARE = ApiVersionsRequest(client_software_name="kproto", client_software_version="1")

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

PROPAGATION_MS = 300
"""Brokers know a change some milliseconds after the controller."""


class Administrator:
    """Sends requests in one version of UpdateFeatures; each is a step of the transcript."""

    def __init__(self, transport: Transport, kafka_version: KafkaVersion, version: int) -> None:
        self.steps: list[Step] = []
        self.version = version
        self.kafka_version = kafka_version
        self._transport = transport

    def update(
        self,
        *levels: tuple[str, int],
        upgrade_type: int = UPGRADE,
        validate_only: bool = False,
        allow_downgrade: bool = False,
    ) -> Any:
        """Send UpdateFeatures; after a change also `describe`."""
        request = UpdateFeaturesRequest(
            feature_updates=tuple(
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=level,
                    upgrade_type=upgrade_type if self.version >= 1 else UPGRADE,
                    allow_downgrade=allow_downgrade and self.version == 0,
                )
                for name, level in levels
            ),
            validate_only=validate_only and self.version >= 1,
        )
        response = self._ask(request, self.version)
        action = f"UpdateFeatures v{self.version} {dict(levels)} type {upgrade_type}"
        self.steps.append(
            Step(
                action + (" validate_only" if validate_only else "") + (" allow_downgrade" if allow_downgrade else ""),
                {
                    "A": [
                        response.error_code,
                        response.error_message,
                        sorted([one.feature, one.error_code, one.error_message] for one in response.results),
                    ]
                },
            )
        )
        if not response.error_code and not validate_only:
            self._transport.pass_time(PROPAGATION_MS)
            self.describe()
        return response

    def describe(self) -> tuple[Mapping[str, tuple[int, int]], Mapping[str, int]]:
        """Send ApiVersions; return the supported levels and the finalized ones."""
        version = self.kafka_version.api_versions[API_VERSIONS][1]
        response = self._ask(SOFTWARE, version)
        supported = {one.name: (one.min_version, one.max_version) for one in response.supported_features}
        finalized = {one.name: one.max_version_level for one in response.finalized_features}
        levels = [[name, *supported[name], finalized.get(name)] for name in sorted(supported)]
        has_epoch = response.finalized_features_epoch >= 0
        self.steps.append(Step(f"{APIS[API_VERSIONS]} v{version}", {"A": [levels, has_epoch]}))
        return supported, finalized

    def _ask(self, request: Request, version: int) -> Any:
        self._transport.send("A", request, version)
        responses: list[tuple[str, Any]] = []
        while not responses:
            responses = self._transport.responses()
        ((_, response),) = responses
        return response
