"""ApiVersions (18): v0-3. v1 throttle time, v3 flexible, client software name and version
(KIP-511), finalized features (KIP-584)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import API_VERSIONS_KEY, request_class

PRODUCE_KEY = 0
TRANSACTION_VERSION = {"transaction.version": 2}
"""The feature by which clients choose transactions of V2 (KIP-890), where a node coordinates them itself."""
FEATURES_EPOCH = 0
"""Levels never change while a node runs."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def served_ranges(keys: Sequence[int]) -> list[kafka.ApiVersionsResponseApiVersion]:
    """The ranges that clients get for these APIs: the versions of the message classes.

    Produce is announced from 0 on although 0-2 are refused, as Kafka 4 does: librdkafka compresses only when
    it sees Produce v0 in the range (KAFKA-18659).
    """
    ranges = []
    for key in sorted(keys):
        request = request_class(key)
        assert request is not None
        low = 0 if key == PRODUCE_KEY else request.MIN_VERSION
        ranges.append(
            kafka.ApiVersionsResponseApiVersion(api_key=key, min_version=low, max_version=request.MAX_VERSION)
        )
    return ranges


def register(
    services: Services,
    keys: Sequence[int],
    narrowed: Mapping[int, tuple[int, int]] | None = None,
    features: Mapping[str, int] | None = None,
) -> dict[int, Handler]:
    """`keys`: the other APIs that are served; `narrowed`: those that are served in fewer versions than the
    message classes have, with the lowest and the highest. `features`: the level of each (KIP-584)."""
    levels = features or {}
    supported = [
        kafka.ApiVersionsResponseSupportedFeatureKey(name, 0, level) for name, level in levels.items()
    ]
    finalized = [
        kafka.ApiVersionsResponseFinalizedFeatureKey(name, level, level) for name, level in levels.items()
    ]
    ranges = served_ranges([*keys, API_VERSIONS_KEY])
    for one in ranges:
        low, high = (narrowed or {}).get(one.api_key, (one.min_version, one.max_version))
        one.min_version, one.max_version = max(low, one.min_version), min(high, one.max_version)

    def api_versions(call: Call, request: kafka.ApiVersionsRequest) -> kafka.ApiVersionsResponse:
        """A version that is not served never comes here: the connection answers it (error 35, v0 form)."""
        named = _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(
            request.client_software_version
        )
        if call.api_version >= 3 and not named:
            return kafka.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        return kafka.ApiVersionsResponse(
            api_keys=ranges,
            supported_features=supported,
            finalized_features_epoch=FEATURES_EPOCH if levels else -1,
            finalized_features=finalized,
        )

    return {API_VERSIONS_KEY: api_versions}
