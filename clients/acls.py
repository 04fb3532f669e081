"""ACLs as Kafka's tools say them, and the requests about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ringleader.clients.checks import wire_text
from ringleader.protocol.messages import (
    CreateAclsRequest,
    CreateAclsRequestAclCreation,
    DeleteAclsRequest,
    DeleteAclsRequestDeleteAclsFilter,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

ANY = 1
RESOURCE_TYPES = {
    "TOPIC": 2,
    "GROUP": 3,
    "CLUSTER": 4,
    "TRANSACTIONAL_ID": 5,
    "DELEGATION_TOKEN": 6,
    "USER": 7,
}
PATTERN_TYPES = {"LITERAL": 3, "PREFIXED": 4}
OPERATIONS = {
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
    "CREATE_TOKENS": 13,
    "DESCRIBE_TOKENS": 14,
    "TWO_PHASE_COMMIT": 15,
}
PERMISSIONS = {"DENY": 2, "ALLOW": 3}
CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """A principal's right to an operation on a resource, or its denial; types in Kafka's words, in capitals.
    Raises ValueError."""

    principal: str
    """`User:NAME`; `User:*` is every user."""
    operation: str
    resource_type: str
    resource_name: str
    """`*` is every resource of that type."""
    pattern_type: str = "LITERAL"
    """`PREFIXED`: `resource_name` is the beginning of names."""
    permission: str = "ALLOW"
    host: str = "*"

    def __post_init__(self) -> None:
        for what in ("principal", "resource_name", "host"):
            wire_text(what, getattr(self, what))
        _number(OPERATIONS, self.operation)
        _number(RESOURCE_TYPES, self.resource_type)
        _number(PATTERN_TYPES, self.pattern_type)
        _number(PERMISSIONS, self.permission)
        kind, colon, name = self.principal.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"a principal is TYPE:NAME, for example User:alice, not {self.principal!r}")


def _number(numbers: Mapping[str, int], word: str) -> int:
    if word not in numbers:
        raise ValueError(f"there are {', '.join(numbers)}, not {word!r}")
    return numbers[word]


def _word(numbers: Mapping[str, int], number: int) -> str:
    """Of a newer broker there may be some that are not known."""
    return next((word for word, one in numbers.items() if one == number), "")


def creation(acls: Iterable[Acl]) -> CreateAclsRequest:
    """To make them."""
    return CreateAclsRequest(creations=[CreateAclsRequestAclCreation(*_row(acl)) for acl in acls])


def deletion(acls: Iterable[Acl]) -> DeleteAclsRequest:
    """To delete exactly these."""
    return DeleteAclsRequest(filters=[DeleteAclsRequestDeleteAclsFilter(*_row(acl)) for acl in acls])


def _row(acl: Acl) -> tuple[int, str, int, str, str, int, int]:
    return (
        RESOURCE_TYPES[acl.resource_type],
        acl.resource_name,
        PATTERN_TYPES[acl.pattern_type],
        acl.principal,
        acl.host,
        OPERATIONS[acl.operation],
        PERMISSIONS[acl.permission],
    )


def question(
    principal: str | None, resource_type: str | None, resource_name: str | None
) -> DescribeAclsRequest:
    """About those of a principal and a resource; None: of any. Raises ValueError."""
    for what, text in (("principal", principal), ("resource_name", resource_name)):
        if text is not None:
            wire_text(what, text)
    kind = ANY if resource_type is None else _number(RESOURCE_TYPES, resource_type)
    return DescribeAclsRequest(kind, resource_name, ANY, principal, None, ANY, ANY)


def described(response: DescribeAclsResponse) -> list[Acl]:
    """Sorted; those of a kind that is not known are left out."""
    found = []
    for resource in response.resources:
        kind = _word(RESOURCE_TYPES, resource.resource_type)
        pattern = _word(PATTERN_TYPES, resource.pattern_type)
        for one in resource.acls:
            words = (_word(OPERATIONS, one.operation), _word(PERMISSIONS, one.permission_type))
            if kind and pattern and all(words):
                values = (one.principal, words[0], kind, resource.resource_name, pattern, words[1], one.host)
                found.append(Acl(*values))
    return sorted(found)
