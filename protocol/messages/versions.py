"""Which APIs and versions a node serves."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message, struct


@message(key=18, versions=(0, 3), flexible=3, kind="request")
class ApiVersionsRequest(Message):
    """Ask which APIs and versions are served; the first request of most connections.

    ApiVersions, API 18, v0-3; KIP-35, KIP-511.
    """

    client_software_name: str = field("string", versions=(3, LAST), default="", ignorable=True)
    client_software_version: str = field("string", versions=(3, LAST), default="", ignorable=True)


@struct
class ApiVersionsResponseApiVersion:
    """One of `ApiVersionsResponse.api_keys`."""

    api_key: int = field("int16", default=0)
    min_version: int = field("int16", default=0)
    max_version: int = field("int16", default=0)


@struct
class ApiVersionsResponseSupportedFeatureKey:
    """One of `ApiVersionsResponse.supported_features`."""

    name: str = field("string", versions=(3, LAST), default="")
    min_version: int = field("int16", versions=(3, LAST), default=0)
    max_version: int = field("int16", versions=(3, LAST), default=0)


@struct
class ApiVersionsResponseFinalizedFeatureKey:
    """One of `ApiVersionsResponse.finalized_features`."""

    name: str = field("string", versions=(3, LAST), default="")
    max_version_level: int = field("int16", versions=(3, LAST), default=0)
    min_version_level: int = field("int16", versions=(3, LAST), default=0)


@message(key=18, versions=(0, 3), flexible=3, kind="response")
class ApiVersionsResponse(Message):
    """The APIs served, each with its range of versions (ApiVersions, API 18, v0-3; KIP-35, KIP-511)."""

    error_code: int = field("int16", default=0)
    api_keys: list[ApiVersionsResponseApiVersion] = array(ApiVersionsResponseApiVersion, factory=list)
    throttle_time_ms: int = field("int32", versions=(1, LAST), default=0, ignorable=True)
    supported_features: list[ApiVersionsResponseSupportedFeatureKey] = array(
        ApiVersionsResponseSupportedFeatureKey,
        versions=(3, LAST),
        factory=list,
        tag=0,
        tagged=(3, LAST),
        ignorable=True,
    )
    finalized_features_epoch: int = field(
        "int64", versions=(3, LAST), default=-1, tag=1, tagged=(3, LAST), ignorable=True
    )
    finalized_features: list[ApiVersionsResponseFinalizedFeatureKey] = array(
        ApiVersionsResponseFinalizedFeatureKey,
        versions=(3, LAST),
        factory=list,
        tag=2,
        tagged=(3, LAST),
        ignorable=True,
    )
    zk_migration_ready: bool = field(
        "bool", versions=(3, LAST), default=False, tag=3, tagged=(3, LAST), ignorable=True
    )
