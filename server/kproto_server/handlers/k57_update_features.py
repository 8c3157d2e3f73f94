"""UpdateFeatures (API key 57): raise or lower the cluster's feature levels (KIP-584, KIP-778)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k57_update_features import UpdatableFeatureResult, UpdateFeaturesResponse
from kproto_server.cluster.feature_rules import (
    FeatureBehavior,
    FeatureUpdate,
    UpgradeType,
    check_quorum_update,
    check_zookeeper_update,
)
from kproto_server.cluster.features import KRAFT_VERSION
from kproto_server.handlers._controller import not_controller

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kproto.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
    from kproto_server.cluster.topics import Refusal
    from kproto_server.requests.context import RequestContext

    Results = Mapping[str, Refusal | None]

UPGRADE_TYPES_SINCE = 1
LAST_WITH_RESULTS = 1
"""The last version with a result for each feature."""


def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    if not_controller(context):
        return _response(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.message)
    updates = {one.feature: _update(one, context) for one in request.feature_updates}
    features, behavior = context.cluster.features, context.behavior(FeatureBehavior)
    if not context.kafka_version.is_kraft:
        refusals = {name: check_zookeeper_update(update, behavior) for name, update in updates.items()}
        return _with_results(sorted(refusals), refusals, behavior)
    results = {
        name: check_quorum_update(update, features, behavior, context.cluster.controller_id)
        for name, update in updates.items()
    }
    refused = next((refusal for refusal in results.values() if refusal is not None), None)
    if refused is not None and behavior.updates_all_or_none:
        message = f"The update failed for all features since the following feature had an error: {refused.message}"
        return _response(refused.error, message)
    levels = {name: update.level for name, update in updates.items() if results[name] is None}
    if behavior.kraft_version_stays:
        levels.pop(KRAFT_VERSION, None)
    if levels and not request.validate_only:
        context.cluster.finalize({**features.levels, **levels})
    if context.api_version > LAST_WITH_RESULTS:
        return _response(message=behavior.success_message)
    if behavior.updates_all_or_none:
        return _with_results([one.feature for one in request.feature_updates], results, behavior)
    return _with_results(sorted(results), results, behavior)


def _update(requested: FeatureUpdateKey, context: RequestContext) -> FeatureUpdate:
    upgrade_type = UpgradeType(requested.upgrade_type)
    ignores_permission = context.kafka_version.is_kraft  # to lower a level in v0
    if context.api_version < UPGRADE_TYPES_SINCE and requested.allow_downgrade and not ignores_permission:
        upgrade_type = UpgradeType.SAFE_DOWNGRADE
    return FeatureUpdate(requested.feature, requested.max_version_level, upgrade_type)


def _with_results(names: Sequence[str], results: Results, behavior: FeatureBehavior) -> UpdateFeaturesResponse:
    return _response(message=behavior.success_message).replace(
        results=tuple(
            UpdatableFeatureResult(
                feature=name,
                error_code=ErrorCode.NONE if refusal is None else refusal.error,
                error_message=behavior.feature_success_message if refusal is None else refusal.message,
            )
            for name in names
            for refusal in (results[name],)
        )
    )


def _response(error: ErrorCode = ErrorCode.NONE, message: str | None = None) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(throttle_time_ms=0, error_code=error, error_message=message)
