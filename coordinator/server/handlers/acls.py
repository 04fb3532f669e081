"""ACLs: DescribeAcls (29), CreateAcls (30), DeleteAcls (31), all v1-3: v2 flexible, v3 users as resources.

A change is durable before it is answered, and counts from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, TypeVar

from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.security.acls import (
    MAX_ACLS,
    AclBinding,
    AclFilter,
    AllowAll,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check,
    in_words,
    to_key,
)
from ringleader.coordinator.security.store import SecurityStore
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services, set_error
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Acls(services)
    return {29: family.describe, 30: family.create, 31: family.delete}


class _Acls:
    def __init__(self, services: Services) -> None:
        self._services = services

    def _find(self, call: Call, operation: Operation, disabled: str) -> tuple[Authorizer, SecurityStore]:
        """Raises KafkaError: the caller may not, or there are no ACLs here."""
        checks.check_cluster(self._services, call, operation)
        security = self._services.security
        authorizer = self._services.authorizer
        if security is None or isinstance(authorizer, AllowAll):
            raise KafkaError(ErrorCode.SECURITY_DISABLED, disabled)
        return authorizer, security.store

    def describe(self, call: Call, request: kafka.DescribeAclsRequest) -> kafka.DescribeAclsResponse | None:
        """The ACLs that the filter matches, by pattern."""
        response = kafka.DescribeAclsResponse()
        try:
            authorizer, _ = self._find(call, Operation.DESCRIBE, "No Authorizer is configured on the broker")
            wanted = _filter(request)
        except KafkaError as error:
            set_error(response, error)
            return response
        except ValueError as error:
            call.close(str(error))
            return None
        matching = authorizer.matching(wanted)
        call.takes(HELD_ENTRY_BYTES * len(matching))
        response.resources = [
            kafka.DescribeAclsResponseDescribeAclsResource(
                kind,
                name,
                pattern_type,
                [kafka.DescribeAclsResponseAclDescription(*acl[3:]) for acl in acls],
            )
            for (kind, name, pattern_type), acls in groupby(matching, lambda acl: acl[:3])
        ]
        return response

    def create(self, call: Call, request: kafka.CreateAclsRequest) -> kafka.CreateAclsResponse | None:
        """Each by itself; an ACL that exists already stays."""
        results = [kafka.CreateAclsResponseAclCreationResult() for _ in request.creations]
        response = kafka.CreateAclsResponse(results=results)
        try:
            authorizer, store = self._find(call, Operation.ALTER, "No Authorizer is configured.")
            bindings = [_binding(creation) for creation in request.creations]
        except KafkaError as error:
            return _refused(response, results, error)
        except ValueError as error:
            call.close(str(error))
            return None
        self._services.spawn(None, self._create(call, response, authorizer, store, bindings))
        return None

    async def _create(
        self,
        call: Call,
        response: kafka.CreateAclsResponse,
        authorizer: Authorizer,
        store: SecurityStore,
        bindings: Sequence[AclBinding],
    ) -> None:
        added: dict[AclBinding, list[Any]] = {}
        for acl, result in zip(bindings, response.results, strict=True):
            try:
                check(acl)
                if acl in authorizer:
                    continue
                if len(authorizer) + len(added) >= MAX_ACLS and acl not in added:
                    raise KafkaError(ErrorCode.POLICY_VIOLATION, f"There are {MAX_ACLS:,} ACLs at most.")
            except KafkaError as error:
                set_error(result, error)
            else:
                added.setdefault(acl, []).append(result)
        try:
            if added:
                await store.change("acls", {to_key(acl): {} for acl in added})
        except KafkaError as error:
            _refused(response, [result for results in added.values() for result in results], error)
        else:
            self._note(call, "ACL created", added)
        call.answer(response)

    def delete(self, call: Call, request: kafka.DeleteAclsRequest) -> Slices:
        """Delete all ACLs that any of the filters matches, or none. A filter that is repeated matches nothing
        the second time."""
        results = [
            kafka.DeleteAclsResponseDeleteAclsFilterResult(error_message=None) for _ in request.filters
        ]
        response = kafka.DeleteAclsResponse(filter_results=results)
        try:
            authorizer, store = self._find(call, Operation.ALTER, "No Authorizer is configured.")
            filters = [_filter(wanted) for wanted in request.filters]
        except KafkaError as error:
            return _refused(response, results, error)
        except ValueError as error:
            call.close(str(error))
            return None
        found: list[list[AclBinding]] = []
        seen: set[AclFilter] = set()
        for wanted, result in zip(filters, results, strict=True):
            if 0 in (wanted.resource_type, wanted.pattern_type):
                set_error(result, KafkaError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter."))
            elif 0 in (wanted.operation, wanted.permission):
                set_error(result, KafkaError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter."))
            found.append([] if wanted in seen else authorizer.matching(wanted))
            seen.add(wanted)
            call.takes(HELD_ENTRY_BYTES * len(found[-1]))
            if call.done:
                return None
            yield
        self._services.spawn(None, self._delete(call, response, store, found))
        return None

    async def _delete(
        self,
        call: Call,
        response: kafka.DeleteAclsResponse,
        store: SecurityStore,
        found: Sequence[Sequence[AclBinding]],
    ) -> None:
        removed = {acl for acls in found for acl in acls}
        try:
            if removed:
                await store.change("acls", {to_key(acl): None for acl in removed})
        except KafkaError as error:
            _refused(response, response.filter_results, error)
        else:
            self._note(call, "ACL deleted", removed)
            for result, acls in zip(response.filter_results, found, strict=True):
                result.matching_acls = [_matching(acl) for acl in acls]
        call.answer(response)

    def _note(self, call: Call, event: str, acls: Iterable[AclBinding]) -> None:
        for acl in acls:
            self._services.changed(call, event, in_words(acl))


def _refused(response: T, results: Iterable[Any], error: KafkaError) -> T:
    """The response, with that error in all these results of it."""
    for result in results:
        set_error(result, error)
    return response


def _filter(request: kafka.DescribeAclsRequest | kafka.DeleteAclsRequestDeleteAclsFilter) -> AclFilter:
    """Raises ValueError for 0: as in Kafka such a request cannot be read. A number that is not known
    yet matches nothing."""
    return AclFilter(
        _known(ResourceType, request.resource_type_filter),
        request.resource_name_filter,
        _known(PatternType, request.pattern_type_filter),
        request.principal_filter,
        request.host_filter,
        _known(Operation, request.operation),
        _known(Permission, request.permission_type),
    )


def _binding(creation: kafka.CreateAclsRequestAclCreation) -> AclBinding:
    """Raises ValueError likewise, and KafkaError for what is for filters only."""
    acl = AclBinding(
        _known(ResourceType, creation.resource_type),
        creation.resource_name,
        _known(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        _known(Operation, creation.operation),
        _known(Permission, creation.permission_type),
    )
    # 1 is ANY, which is for filters as MATCH is.
    if acl.pattern_type == PatternType.MATCH or 1 in (
        acl[0],
        acl.pattern_type,
        acl.operation,
        acl.permission,
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return acl


def _known(kind: Any, number: int) -> Any:
    if number == 0:
        raise ValueError(f"{kind.__name__} 0 is no {kind.__name__}")
    return kind(number) if number in kind.__members__.values() else kind.UNKNOWN


def _matching(acl: AclBinding) -> kafka.DeleteAclsResponseDeleteAclsMatchingAcl:
    kind, name, pattern_type, principal, host, operation, permission = acl
    return kafka.DeleteAclsResponseDeleteAclsMatchingAcl(
        error_message=None,
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )
