"""Client quotas (KIP-546)."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message, struct


@struct
class DescribeClientQuotasRequestComponentData:
    """One of `DescribeClientQuotasRequest.components`. Match types: 0 this name, 1 the default, 2 any."""

    entity_type: str = field("string", default="")
    match_type: int = field("int8", default=0)
    match: str | None = field("string", nullable=(0, LAST), default="")


@message(key=48, versions=(0, 1), flexible=1, kind="request")
class DescribeClientQuotasRequest(Message):
    """Ask which quotas there are; `strict`: of entities of just these types. No component: of all.

    DescribeClientQuotas, API 48: v0; v1 flexible (KIP-546).
    """

    components: list[DescribeClientQuotasRequestComponentData] = array(
        DescribeClientQuotasRequestComponentData, factory=list
    )
    strict: bool = field("bool", default=False)


@struct
class DescribeClientQuotasResponseEntityData:
    """One of `DescribeClientQuotasResponseEntryData.entity`; without a name the default."""

    entity_type: str = field("string", default="")
    entity_name: str | None = field("string", nullable=(0, LAST), default="")


@struct
class DescribeClientQuotasResponseValueData:
    """One of `DescribeClientQuotasResponseEntryData.values`."""

    key: str = field("string", default="")
    value: float = field("float64", default=0.0)


@struct
class DescribeClientQuotasResponseEntryData:
    """One of `DescribeClientQuotasResponse.entries`."""

    entity: list[DescribeClientQuotasResponseEntityData] = array(
        DescribeClientQuotasResponseEntityData, factory=list
    )
    values: list[DescribeClientQuotasResponseValueData] = array(
        DescribeClientQuotasResponseValueData, factory=list
    )


@message(key=48, versions=(0, 1), flexible=1, kind="response")
class DescribeClientQuotasResponse(Message):
    """The quotas that were asked for; null with an error (API 48: v0; v1 flexible; KIP-546)."""

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")
    entries: list[DescribeClientQuotasResponseEntryData] | None = array(
        DescribeClientQuotasResponseEntryData, nullable=(0, LAST), factory=list
    )


@struct
class AlterClientQuotasRequestEntityData:
    """One of `AlterClientQuotasRequestEntryData.entity`; without a name the default."""

    entity_type: str = field("string", default="")
    entity_name: str | None = field("string", nullable=(0, LAST), default="")


@struct
class AlterClientQuotasRequestOpData:
    """One of `AlterClientQuotasRequestEntryData.ops`."""

    key: str = field("string", default="")
    value: float = field("float64", default=0.0)
    remove: bool = field("bool", default=False)


@struct
class AlterClientQuotasRequestEntryData:
    """One of `AlterClientQuotasRequest.entries`."""

    entity: list[AlterClientQuotasRequestEntityData] = array(AlterClientQuotasRequestEntityData, factory=list)
    ops: list[AlterClientQuotasRequestOpData] = array(AlterClientQuotasRequestOpData, factory=list)


@message(key=49, versions=(0, 1), flexible=1, kind="request")
class AlterClientQuotasRequest(Message):
    """Set and remove quotas (AlterClientQuotas, API 49: v0; v1 flexible; KIP-546)."""

    entries: list[AlterClientQuotasRequestEntryData] = array(AlterClientQuotasRequestEntryData, factory=list)
    validate_only: bool = field("bool", default=False)


@struct
class AlterClientQuotasResponseEntityData:
    """One of `AlterClientQuotasResponseEntryData.entity`."""

    entity_type: str = field("string", default="")
    entity_name: str | None = field("string", nullable=(0, LAST), default="")


@struct
class AlterClientQuotasResponseEntryData:
    """One of `AlterClientQuotasResponse.entries`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")
    entity: list[AlterClientQuotasResponseEntityData] = array(
        AlterClientQuotasResponseEntityData, factory=list
    )


@message(key=49, versions=(0, 1), flexible=1, kind="response")
class AlterClientQuotasResponse(Message):
    """The result for each entity (AlterClientQuotas, API 49: v0; v1 flexible; KIP-546)."""

    throttle_time_ms: int = field("int32", default=0)
    entries: list[AlterClientQuotasResponseEntryData] = array(
        AlterClientQuotasResponseEntryData, factory=list
    )
