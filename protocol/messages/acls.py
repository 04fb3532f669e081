"""ACLs: who may do what."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message, struct


@message(key=29, versions=(1, 3), flexible=2, kind="request")
class DescribeAclsRequest(Message):
    """Ask for the ACLs that a filter means; null means any name, principal or host.

    Resource types: 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id. Pattern types: 1 any, 2 whatever
    applies to the name, 3 literal, 4 prefixed. Permissions: 1 any, 2 deny, 3 allow.

    DescribeAcls, API 29, v1-3; KIP-140, KIP-290, KIP-373.
    """

    resource_type_filter: int = field("int8", default=0)
    resource_name_filter: str | None = field("string", nullable=(1, LAST), default="")
    pattern_type_filter: int = field("int8", default=3)
    principal_filter: str | None = field("string", nullable=(1, LAST), default="")
    host_filter: str | None = field("string", nullable=(1, LAST), default="")
    operation: int = field("int8", default=0)
    permission_type: int = field("int8", default=0)


@struct
class DescribeAclsResponseAclDescription:
    """One of `DescribeAclsResponseDescribeAclsResource.acls`."""

    principal: str = field("string", default="")
    host: str = field("string", default="")
    operation: int = field("int8", default=0)
    permission_type: int = field("int8", default=0)


@struct
class DescribeAclsResponseDescribeAclsResource:
    """One of `DescribeAclsResponse.resources`."""

    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")
    pattern_type: int = field("int8", default=3)
    acls: list[DescribeAclsResponseAclDescription] = array(DescribeAclsResponseAclDescription, factory=list)


@message(key=29, versions=(1, 3), flexible=2, kind="response")
class DescribeAclsResponse(Message):
    """The ACLs, by the pattern that they are of (DescribeAcls, API 29, v1-3; KIP-140, KIP-290, KIP-373)."""

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(1, LAST), default="")
    resources: list[DescribeAclsResponseDescribeAclsResource] = array(
        DescribeAclsResponseDescribeAclsResource, factory=list
    )


@struct
class CreateAclsRequestAclCreation:
    """One of `CreateAclsRequest.creations`."""

    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")
    resource_pattern_type: int = field("int8", default=3)
    principal: str = field("string", default="")
    host: str = field("string", default="")
    operation: int = field("int8", default=0)
    permission_type: int = field("int8", default=0)


@message(key=30, versions=(1, 3), flexible=2, kind="request")
class CreateAclsRequest(Message):
    """Make ACLs; for the numbers see `DescribeAclsRequest`.

    CreateAcls, API 30, v1-3; KIP-140, KIP-290, KIP-373.
    """

    creations: list[CreateAclsRequestAclCreation] = array(CreateAclsRequestAclCreation, factory=list)


@struct
class CreateAclsResponseAclCreationResult:
    """One of `CreateAclsResponse.results`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(1, LAST), default="")


@message(key=30, versions=(1, 3), flexible=2, kind="response")
class CreateAclsResponse(Message):
    """The result for each ACL, in the order of the request (CreateAcls, API 30, v1-3; KIP-140)."""

    throttle_time_ms: int = field("int32", default=0)
    results: list[CreateAclsResponseAclCreationResult] = array(
        CreateAclsResponseAclCreationResult, factory=list
    )


@struct
class DeleteAclsRequestDeleteAclsFilter:
    """One of `DeleteAclsRequest.filters`."""

    resource_type_filter: int = field("int8", default=0)
    resource_name_filter: str | None = field("string", nullable=(1, LAST), default="")
    pattern_type_filter: int = field("int8", default=3)
    principal_filter: str | None = field("string", nullable=(1, LAST), default="")
    host_filter: str | None = field("string", nullable=(1, LAST), default="")
    operation: int = field("int8", default=0)
    permission_type: int = field("int8", default=0)


@message(key=31, versions=(1, 3), flexible=2, kind="request")
class DeleteAclsRequest(Message):
    """Delete the ACLs that any of the filters means; see `DescribeAclsRequest`.

    DeleteAcls, API 31, v1-3; KIP-140, KIP-290, KIP-373.
    """

    filters: list[DeleteAclsRequestDeleteAclsFilter] = array(DeleteAclsRequestDeleteAclsFilter, factory=list)


@struct
class DeleteAclsResponseDeleteAclsMatchingAcl:
    """One of `DeleteAclsResponseDeleteAclsFilterResult.matching_acls`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(1, LAST), default="")
    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")
    pattern_type: int = field("int8", default=3)
    principal: str = field("string", default="")
    host: str = field("string", default="")
    operation: int = field("int8", default=0)
    permission_type: int = field("int8", default=0)


@struct
class DeleteAclsResponseDeleteAclsFilterResult:
    """One of `DeleteAclsResponse.filter_results`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(1, LAST), default="")
    matching_acls: list[DeleteAclsResponseDeleteAclsMatchingAcl] = array(
        DeleteAclsResponseDeleteAclsMatchingAcl, factory=list
    )


@message(key=31, versions=(1, 3), flexible=2, kind="response")
class DeleteAclsResponse(Message):
    """The ACLs that each filter deleted, in the order of the request (DeleteAcls, API 31, v1-3; KIP-140)."""

    throttle_time_ms: int = field("int32", default=0)
    filter_results: list[DeleteAclsResponseDeleteAclsFilterResult] = array(
        DeleteAclsResponseDeleteAclsFilterResult, factory=list
    )
